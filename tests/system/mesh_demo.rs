//! `quartermaster demo-node` shows all of it, and ends everything it started, however it ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::support::{mentions, nats_server, skip};

fn started(dir: &Path) -> Option<Child> {
    let nats = match nats_server() {
        Ok(nats) => nats,
        Err(why) => {
            skip("the demo of the node side", why);
            return None;
        }
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    command.args(["demo-node", "--json", "--keep"]).arg(dir.join("kept"));
    command.env("QM_NATS_SERVER", nats).env("TMPDIR", dir);
    Some(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Somewhere every account may come through to, as a demo with root rights needs it.
fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

#[test]
fn every_file_is_filled_rotated_and_put_back() {
    let dir = folder();
    let Some(child) = started(dir.path()) else { return };
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let seen: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!((output.status.code(), &seen["ok"]), (Some(0), &Value::Bool(true)), "{told}\n{seen:#}");
    let files: Vec<(&str, &str)> = seen["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["action"].as_str().unwrap()))
        .collect();
    assert_eq!(
        files,
        [
            ("etc/db/consumers.json", "written"),
            ("etc/db/db.conf", "written"),
            ("etc/web/session.key", "written"),
            ("etc/web/site.toml", "written"),
            ("etc/web/web.conf", "written"),
            ("var/web/index.html", "seeded"),
            ("etc/profile.d/mesh.sh", "restored"),
        ]
    );
    assert_eq!(mentions(dir.path()), Vec::<String>::new());
}

#[test]
fn an_interrupt_ends_the_whole_mesh() {
    let dir = folder();
    let Some(mut child) = started(dir.path()) else { return };
    let begin = Instant::now();
    while !dir.path().join("kept/web1/fill.sock").exists() {
        assert!(begin.elapsed() < Duration::from_mins(2), "the machines did not start");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!mentions(dir.path()).is_empty(), "the broker runs");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(mentions(dir.path()), Vec::<String>::new());
}

#[test]
fn what_an_earlier_run_left_is_not_taken_for_this_one() {
    let dir = folder();
    std::fs::create_dir(dir.path().join("kept")).unwrap();
    std::fs::write(dir.path().join("kept/nats-server_1.ports"), "{}").unwrap();
    let Some(child) = started(dir.path()) else { return };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it is not empty"));
}
