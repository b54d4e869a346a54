//! `quartermaster demo` ends everything it started, however it ends.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::support::{mentions, nats_server, skip};

fn demo(dir: &Path, provisioner: &str) -> Option<Child> {
    let script = dir.join("provisioner.sh");
    std::fs::write(&script, format!("#!/bin/sh\n{provisioner}\n")).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    started(dir, &["--provisioner", script.to_str().unwrap()])
}

fn started(dir: &Path, arguments: &[&str]) -> Option<Child> {
    let nats = match nats_server() {
        Ok(nats) => nats,
        Err(why) => {
            skip("the demo", why);
            return None;
        }
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    command.args(["demo", "--servers", "5", "--keep"]).arg(dir.join("kept")).args(arguments);
    command.env("QM_NATS_SERVER", nats).env("TMPDIR", dir);
    Some(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn a_provisioner_that_ends_is_shown_with_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let Some(child) = demo(dir.path(), "echo the key is missing >&2; exit 4") else { return };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("provisioner ended with exit status: 4\nthe key is missing"), "{told}");
    assert_eq!(mentions(dir.path()), Vec::<String>::new());
}

#[test]
fn an_interrupt_ends_every_process() {
    let dir = tempfile::tempdir().unwrap();
    let started = dir.path().join("started");
    let Some(mut child) = demo(dir.path(), &format!("touch {}; exec sleep 300", started.display())) else {
        return;
    };
    let begin = Instant::now();
    while !started.exists() {
        assert!(begin.elapsed() < Duration::from_mins(2), "the provisioner was not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!mentions(dir.path()).is_empty(), "the broker runs");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(mentions(dir.path()), Vec::<String>::new());
}

fn summed_up(dir: &Path, arguments: &[&str]) -> Option<(Option<i32>, serde_json::Value, String)> {
    let child = started(dir, &[&["--json", "--restart-delay", "100ms"], arguments].concat())?;
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let summary = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(mentions(dir), Vec::<String>::new());
    Some((output.status.code(), summary, told))
}

#[test]
fn all_servers_are_provisioned_in_both_networks() {
    for network in ["plain", "issuer"] {
        let dir = tempfile::tempdir().unwrap();
        let Some((code, summary, told)) = summed_up(dir.path(), &["--network", network]) else { return };
        assert_eq!(code, Some(0), "{told}");
        for (figure, expected) in
            [("provisioned", 5), ("confirmed", 5), ("failed", 0), ("helper_runs", 5), ("configured_twice", 0)]
        {
            assert_eq!(summary[figure], expected, "{network} {figure}: {summary}");
        }
    }
}

#[test]
fn a_server_that_cannot_be_provisioned_is_counted_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    let faults = ["--fault", "public_key_short=@node3.example.net", "--time-limit", "30"];
    let Some((code, summary, told)) = summed_up(dir.path(), &faults) else { return };
    assert_eq!(code, Some(6), "{told}");
    assert_eq!((&summary["provisioned"], &summary["failed"]), (&4.into(), &1.into()), "{summary}");
    assert!(told.contains("Could not provision node3.example.net: "), "{told}");
}
