//! N103: what held a secret is wiped, and no core file is written. The engine is a process of its own, and its memory is looked
//! through from outside.

#![cfg(test)]

use std::{
    env, fs,
    os::unix::process::ExitStatusExt as _,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use quartermaster_node::vault::{
    Value,
    service::{AdminReply, AdminRequest, AdminValue, run},
};
use quartermaster_proto::time::WallClock;
use rustix::process::Signal;
use support::{
    engine::{Engine, count_in_memory, run_if_asked},
    vault_site::{NAME, Site},
};
use zeroize::Zeroizing;

mod support;

const ENGINE: &str = "is_an_engine_where_it_is_started_as_one";

const VAULT: &str = "is_a_vault_where_it_is_started_as_one";
/// The folder and the broker's port of a vault, where this process is one.
const SITE: &str = "QM_TEST_VAULT";

#[test]
fn is_an_engine_where_it_is_started_as_one() {
    run_if_asked();
}

#[test]
fn is_a_vault_where_it_is_started_as_one() {
    let Ok(site) = env::var(SITE) else { return };
    let (folder, rest) = site.split_once('\n').unwrap();
    let (servers, credentials) = rest.split_once('\n').unwrap();
    let settings = Site::settings_in(folder.as_ref(), servers.to_owned(), credentials.into());
    let clock = Arc::new(|| WallClock::from_seconds(1_795_975_200));
    actix::System::new().block_on(run(settings, clock, |_| (), std::future::pending())).unwrap();
}

/// A process that is killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[actix::test]
async fn nothing_of_a_secret_is_left_in_the_vaults_memory_when_it_was_stored_and_handed_out() {
    let Some(site) = Site::start().await else { return };
    site.make_stream().await;
    let bus = site.settings().bus;
    let about = [
        site.folder.path().display().to_string(),
        bus.servers,
        bus.credentials.unwrap().display().to_string(),
    ];
    let vault = Killed(
        Command::new(env::current_exe().unwrap())
            .args(["--exact", VAULT, "--nocapture"])
            .env(SITE, about.join("\n"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    while !site.at("vault.sock").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let revision = site.assign("pw").await;
    site.answer(revision).await;
    for round in ["first", "second"] {
        let secret = canary(round);
        let value = AdminValue(Value::new(Zeroizing::new(secret.clone().into_bytes())));
        let set = site.admin(AdminRequest::Set { name: NAME.to_owned(), value }).await;
        assert!(matches!(set, AdminReply::Version(_)), "{set:?}");
        assert_eq!(site.open(&site.answer(revision).await).0, secret);
    }
    let wanted = [tail("first"), tail("second"), site.at("audit").display().to_string()];
    match count_in_memory(vault.0.id(), &wanted).as_deref() {
        None => eprintln!("SKIPPED: the memory of another process cannot be read here"),
        Some([first, second, audit]) => {
            assert!(*audit > 0 && (*first, *second) == (0, 0), "{first} {second}");
        }
        Some(other) => panic!("{other:?}"),
    }
}

/// A secret that stands nowhere as it is, not even in this program.
fn canary(format: &str) -> String {
    format!("a-long-beginning-because-memory-that-is-freed-loses-its-first-bytes-{}", tail(format))
}

/// The end of it, which is looked for.
fn tail(format: &str) -> String {
    format.chars().rev().collect::<String>().repeat(5)
}

/// A module's file of each kind with the secret in it.
fn formats() -> Vec<(&'static str, &'static str, &'static str, String)> {
    let managed = |format: &'static str| match format {
        "block" => r##""owner-at-runtime":"managed","managed":{"format":"block","comment":"#"}"##,
        "ini" => r#""owner-at-runtime":"managed","managed":{"format":"ini"}"#,
        "toml" => r#""owner-at-runtime":"managed","managed":{"format":"toml"}"#,
        "json" => r#""owner-at-runtime":"managed","managed":{"format":"json"}"#,
        _ => r#""owner-at-runtime":"managed","managed":{"format":"yaml"}"#,
    };
    vec![
        ("owned", r#""owner-at-runtime":"owned""#, "", format!("password {}\n", canary("owned"))),
        ("seed", r#""owner-at-runtime":"seed""#, "", format!("password {}\n", canary("seed"))),
        ("block", managed("block"), "theirs = 1\n", format!("password {}\n", canary("block"))),
        ("ini", managed("ini"), "[other]\nkey = 1\n", format!("[db]\npassword = {}\n", canary("ini"))),
        (
            "json",
            managed("json"),
            "{\n  \"other\": 1\n}\n",
            format!(r#"{{"db":{{"password":"{}"}}}}"#, canary("json")),
        ),
        ("yaml", managed("yaml"), "other: 1\n", format!("db:\n  password: \"{}\"\n", canary("yaml"))),
        ("toml", managed("toml"), "other = 1\n", format!("[db]\npassword = \"{}\"\n", canary("toml"))),
    ]
}

#[test]
fn nothing_of_a_secret_is_left_in_the_engines_memory_when_its_file_is_written() {
    let mut engine = Engine::new();
    let files: Vec<String> = formats().iter().map(|(name, members, ..)| engine.file(name, members)).collect();
    let plan = engine.declare("forge", &files.join(","));
    for (name, _, before, _) in formats().iter().filter(|(_, _, before, _)| !before.is_empty()) {
        fs::write(engine.path(name), before).unwrap();
    }
    engine.start(ENGINE);
    // What is no secret is found, so what is not found is not there.
    let socket = engine.at("fill.sock").to_str().unwrap().to_owned();
    match count_in_memory(engine.pid(), &[socket]).map(|counts| counts[0]) {
        None => return eprintln!("SKIPPED: the memory of another process cannot be read here"),
        Some(count) => assert!(count > 0),
    }
    for round in 0..3 {
        for (name, _, _, content) in formats() {
            let written = engine.write("forge", plan, vec![engine.filled(name, content.as_bytes())]);
            assert!(written.files[0].err.is_none(), "{name}: {written:?}");
            assert!(fs::read_to_string(engine.path(name)).unwrap().contains(&canary(name)), "{name}");
        }
        let canaries: Vec<_> = formats().iter().map(|(name, ..)| tail(name)).collect();
        let left = count_in_memory(engine.pid(), &canaries).unwrap();
        let counts: Vec<_> = formats().iter().map(|(name, ..)| *name).zip(left).collect();
        // The library for TOML frees what it read without wiping it: docs/node.md says so.
        let unwiped: Vec<_> = counts.iter().filter(|(name, count)| *name != "toml" && *count > 0).collect();
        assert!(unwiped.is_empty(), "round {round}: {unwiped:?} of {counts:?}");
    }
    assert!(fs::read(engine.at("state/status.json")).is_ok());
}

#[test]
fn an_engine_that_is_aborted_leaves_no_core_file() {
    let mut engine = Engine::new();
    engine.start(ENGINE);
    let limits = fs::read_to_string(format!("/proc/{}/limits", engine.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["1", "1"], "{core}");
    let status = engine.end(Signal::ABORT);
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false));
}
