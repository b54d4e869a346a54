use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use quartermaster_proto::provider::{Executed, Invocation, Limits, Members, ProviderError, Schema, Value};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::catalog::Builtin;
use super::handle::BuiltinHandle;
use super::work::{Hands, Voice};
use crate::child::Orphans;

fn members(json: &str) -> Members {
    Value::from_json(json, &Limits::PROVIDER).unwrap().as_object().unwrap().clone()
}

fn json(members: Members) -> String {
    Value::Object(members).to_json()
}

fn start(builtin: Builtin) -> (BuiltinHandle, tokio::sync::mpsc::Receiver<String>) {
    let (voice, words) = Voice::new();
    let environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
    let hands = Hands { environment, directory: None, orphans: Orphans::unadopted(), voice };
    (BuiltinHandle::start(builtin, hands), words)
}

async fn act(handle: &BuiltinHandle, action: &str, attrs: &str) -> Result<Executed, ProviderError> {
    let call = quartermaster_proto::provider::Execute {
        action: action.to_owned(),
        attrs: members(attrs),
        undo: true,
        context: None,
    };
    handle.execute(call, CancellationToken::new()).await.unwrap()
}

/// `code: message`
async fn fails(handle: &BuiltinHandle, action: &str, attrs: &str) -> String {
    act(handle, action, attrs).await.unwrap_err().to_string()
}

async fn undo(handle: &BuiltinHandle, calls: &[Invocation]) {
    for call in calls {
        act(handle, &call.action, &json(call.attrs.clone())).await.unwrap();
    }
}

async fn files() -> (TempDir, BuiltinHandle) {
    let root = TempDir::new().unwrap();
    let (handle, _) = start(Builtin::File);
    let config = format!(r#"{{"root":{:?}}}"#, root.path());
    handle.configure(members(&config)).await.unwrap().unwrap();
    (root, handle)
}

#[test]
fn every_schema_can_be_read_without_a_remark_and_is_found_by_its_name() {
    for builtin in Builtin::ALL {
        let read = Schema::from_probe(builtin.schema_text().as_bytes()).unwrap();
        assert!(read.warnings.is_empty(), "{builtin}: {:?}", read.warnings);
        assert_eq!(read.value.name, builtin.name());
        assert_eq!(Builtin::find(builtin.name()), Some(builtin));
    }
    assert_eq!(Builtin::find("postgres"), None);
}

#[actix::test]
async fn nothing_is_done_before_it_is_configured_nor_what_is_not_declared() {
    let (handle, _) = start(Builtin::File);
    assert!(fails(&handle, "remove", r#"{"path":"a"}"#).await.starts_with("not_configured"));
    let wrong = handle.configure(members("{}")).await.unwrap().unwrap_err().to_string();
    assert!(wrong.starts_with("invalid_config: `root`"), "{wrong}");
    let none = handle.configure(members(r#"{"root":"not/there"}"#)).await.unwrap().unwrap_err().to_string();
    assert!(none.contains("no folder"), "{none}");
    let (_root, handle) = files().await;
    assert!(fails(&handle, "chmod", "{}").await.starts_with("unknown_action"));
    assert!(fails(&handle, "write", r#"{"path":"a"}"#).await.starts_with("invalid_attrs: `content`"));
}

#[actix::test]
async fn what_a_file_was_comes_back() {
    let (root, handle) = files().await;
    let file = root.path().join("hosts/web1.json");
    let new =
        act(&handle, "write", r#"{"path":"hosts/web1.json","content":"one","mode":"0600"}"#).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(json(new.outputs), format!(r#"{{"changed":true,"path":{file:?}}}"#));
    let over = act(&handle, "write", r#"{"path":"hosts/web1.json","content":"two"}"#).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    undo(&handle, &over.undo).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    undo(&handle, &new.undo).await;
    assert!(!file.exists());
    assert!(fails(&handle, "remove", r#"{"path":"hosts/web1.json"}"#).await.starts_with("not_found"));
    let beside = fs::read_dir(root.path().join("hosts")).unwrap().count();
    assert_eq!(beside, 0, "nothing is left beside");
}

#[actix::test]
async fn lines_are_added_once_and_only_they_go() {
    let (root, handle) = files().await;
    fs::write(root.path().join("list"), "first").unwrap();
    let added = act(&handle, "line_add", r#"{"path":"list","line":"web1"}"#).await.unwrap();
    let again = act(&handle, "line_add", r#"{"path":"list","line":"web1"}"#).await.unwrap();
    assert!(json(again.outputs).contains(r#""changed":false"#));
    assert_eq!(again.undo, added.undo, "repeated after a crash it takes back the same");
    assert_eq!(fs::read_to_string(root.path().join("list")).unwrap(), "first\nweb1\n");
    undo(&handle, &added.undo).await;
    assert_eq!(fs::read_to_string(root.path().join("list")).unwrap(), "first\n");
    assert!(fails(&handle, "line_remove", r#"{"path":"list","line":"web1"}"#).await.starts_with("not_found"));
    assert!(
        fails(&handle, "line_add", r#"{"path":"list","line":"a\nb"}"#).await.starts_with("invalid_attrs")
    );
    // Many at once: none is lost.
    let each = (0..50).map(|number| {
        let handle = &handle;
        async move { act(handle, "line_add", &format!(r#"{{"path":"many","line":"w{number}"}}"#)).await }
    });
    assert!(futures::future::join_all(each).await.iter().all(Result::is_ok));
    assert_eq!(fs::read_to_string(root.path().join("many")).unwrap().lines().count(), 50);
}

#[actix::test]
async fn nothing_outside_the_folder_is_reached_and_no_link_followed() {
    let (root, handle) = files().await;
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("kept"), "kept").unwrap();
    symlink(outside.path(), root.path().join("way")).unwrap();
    symlink(outside.path().join("kept"), root.path().join("link")).unwrap();
    fs::write(root.path().join("binary"), [0xff, 0xfe]).unwrap();
    for (path, code) in [
        ("../x", "invalid_attrs"),
        ("/etc/x", "invalid_attrs"),
        ("", "invalid_attrs"),
        ("way/kept", "conflict"),
        ("link", "conflict"),
        ("binary", "conflict"),
    ] {
        let attrs = format!(r#"{{"path":"{path}","content":"changed"}}"#);
        let error = fails(&handle, "write", &attrs).await;
        assert!(error.starts_with(code), "{path}: {error}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("kept")).unwrap(), "kept");
    assert_eq!(fs::read(root.path().join("binary")).unwrap(), [0xff, 0xfe]);
}

#[actix::test]
async fn a_program_gets_its_input_and_its_output_and_failure_are_told() {
    let (handle, mut words) = start(Builtin::Exec);
    handle.configure(Members::new()).await.unwrap().unwrap();
    let run = r#"{"command":["sh","-c","tr a-z A-Z; echo note >&2"],"stdin":"hello","undo":["true"]}"#;
    let done = act(&handle, "run", run).await.unwrap();
    assert_eq!(json(done.outputs), r#"{"stdout":"HELLO"}"#);
    assert_eq!(done.undo.len(), 1);
    assert_eq!(words.recv().await.as_deref(), Some("note"));
    let error =
        act(&handle, "run", r#"{"command":["sh","-c","echo because >&2; exit 3"]}"#).await.unwrap_err();
    assert_eq!(error.code.label(), "failed");
    assert!(error.message.contains('3') && error.detail.as_deref() == Some("because"), "{error:?}");
    assert!(fails(&handle, "run", r#"{"command":["/not/there"]}"#).await.starts_with("invalid_attrs"));
    assert!(fails(&handle, "run", r#"{"command":[]}"#).await.starts_with("invalid_attrs"));
}

#[actix::test]
async fn a_program_that_is_called_off_ends_with_what_it_started() {
    let folder = TempDir::new().unwrap();
    let (handle, _) = start(Builtin::Exec);
    handle.configure(Members::new()).await.unwrap().unwrap();
    let pid = folder.path().join("pid");
    let attrs = format!(
        r#"{{"command":["sh","-c","sleep 600 & echo $! >{0}.new; mv {0}.new {0}; wait"]}}"#,
        pid.display()
    );
    let call = quartermaster_proto::provider::Execute {
        action: "run".to_owned(),
        attrs: members(&attrs),
        undo: false,
        context: None,
    };
    let stop = CancellationToken::new();
    let mut called = std::pin::pin!(handle.execute(call, stop.clone()));
    while !pid.exists() {
        let wait = tokio::time::sleep(std::time::Duration::from_millis(5));
        tokio::select! { _ = &mut called => panic!("ended"), () = wait => {} }
    }
    stop.cancel();
    assert_eq!(called.await.unwrap().unwrap_err().code.label(), "cancelled");
    let pid = fs::read_to_string(&pid).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    let alive =
        || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "));
    while alive() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
