//! `quartermaster helper test` as an author meets it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::support::{IDENTITY, recorded, repository};

const GOOD: &str = r#"cat >/dev/null; echo '{"configuration":{"plugin.choria.server.provision":"false","x.password":"hunter2"}}'"#;

/// A folder with a helper script and the configuration that names it.
struct Site {
    folder: TempDir,
}

impl Site {
    fn new(script: &str, more: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let helper = folder.path().join("my helper");
        fs::write(&helper, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
        let config =
            format!("helper: \"'{}' --site 'a b'\"\ntoken: t0ken-of-the-site\n{more}", helper.display());
        fs::write(folder.path().join("c.yaml"), config).unwrap();
        Self { folder }
    }

    fn test(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_quartermaster"))
            .args(["helper", "test", "--config"])
            .arg(self.folder.path().join("c.yaml"))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn json(&self, arguments: &[&str]) -> (Value, Option<i32>) {
        let output = self.test(&[arguments, &["--json"]].concat());
        (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
    }
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_good_helper_is_shown_whole_without_its_secrets() {
    let site = Site::new(
        &format!("echo \"site: $2\" >&2; {GOOD}"),
        "features:\n  jwt: true\njwt_verify_cert: /absent\n",
    );
    let output = site.test(&["--identity", IDENTITY]);
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output);
    for part in [
        "/my helper' --site 'a b'\n",
        "server    web1.example.net (sample)",
        "exit status 0",
        "what it said on standard error\n  site: a b\n",
        "choria_provision#configure",
        "choria_provision#restart",
        "good: the server would be configured",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("hunter2") && !shown.contains("t0ken-of-the-site"), "{shown}");
    let shown = text(&site.test(&["--identity", IDENTITY, "--show-secrets"]));
    assert!(shown.contains("hunter2") && shown.contains("\"cht\": \"t0ken-of-the-site\""), "{shown}");
}

#[test]
fn a_recorded_input_reaches_the_helper_byte_for_byte() {
    let site = Site::new(&format!("tee \"$0.got\" >/dev/null; {GOOD}"), "");
    let file = repository().join("proto/tests/vectors/v1-x509.helper-input.json");
    let (report, code) = site.json(&["--server", file.to_str().unwrap()]);
    assert_eq!((report["decision"].as_str(), code), (Some("configure"), Some(0)), "{report:#}");
    assert_eq!(fs::read(site.folder.path().join("my helper.got")).unwrap(), recorded("v1-x509"));
    assert_eq!(report["requests"][0]["arguments"]["ssldir"], "/etc/choria/ssl");
}

#[test]
fn the_helper_gets_the_daemons_environment_rules() {
    let site = Site::new(&format!("env >&2; {GOOD}"), "helper_env: [PATH, HELPER_*]\n");
    let output = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["helper", "test", "--identity", IDENTITY, "--config"])
        .arg(site.folder.path().join("c.yaml"))
        .env("HELPER_DB", "db1")
        .env("SOME_PASSWORD", "hunter3")
        .output()
        .unwrap();
    let shown = text(&output);
    assert!(shown.contains("HELPER_DB=db1") && !shown.contains("hunter3"), "{shown}");
}

#[track_caller]
fn check_failure(script: &str, more: &str, code: i32, expected: &str) {
    let (report, exit) = Site::new(script, more).json(&["--identity", IDENTITY]);
    assert_eq!(exit, Some(code), "{report:#}");
    assert_eq!(report["decision"], "fail");
    assert!(report["errors"][0].as_str().unwrap().contains(expected), "{report:#}");
}

#[test]
fn every_way_of_failing_has_its_sentence_and_code() {
    check_failure("exit 0", "", 6, "zero bytes received");
    check_failure("echo no database >&2; exit 7", "", 6, "exited with status 7; its last words: no database");
    check_failure("kill -9 $$", "", 6, "was killed by signal 9");
    check_failure("sleep 60", "helper_timeout: 200ms\n", 6, "did not finish within 200ms");
    check_failure("echo hello; echo '{}'", "", 6, "text before the JSON object, at byte 0");
    check_failure(
        "echo '{\"configuration\":{\"a\":4222}}'",
        "",
        6,
        "`configuration[\"a\"]` should be a string but is",
    );
    check_failure("echo '{}'", "", 6, "`configuration` is empty");
}

#[test]
fn output_that_is_no_json_is_shown_only_with_the_secrets() {
    let site = Site::new("echo hunter2", "");
    let output = site.test(&["--identity", IDENTITY]);
    assert!(!text(&output).contains("hunter2"), "{}", text(&output));
    assert!(text(&site.test(&["--identity", IDENTITY, "--show-secrets"])).contains("hunter2"));
}

#[test]
fn a_missing_helper_a_bad_line_and_a_bad_name_are_told_apart() {
    let site = Site::new("", "");
    let config = site.folder.path().join("c.yaml");
    fs::write(&config, "helper: /absent/helper\n").unwrap();
    let output = site.test(&["--identity", IDENTITY]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    fs::write(&config, "helper: \"'/unbalanced\"\n").unwrap();
    let output = site.test(&["--identity", IDENTITY]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let site = Site::new(GOOD, "");
    assert_eq!(site.test(&["--identity", "a b"]).status.code(), Some(2));
    assert_eq!(site.test(&[]).status.code(), Some(2));
    assert_eq!(site.test(&["--identity", "a", "--server", "b"]).status.code(), Some(2));
    assert_eq!(site.test(&["--server", "/absent"]).status.code(), Some(4));
    assert_eq!(site.test(&["--server", "-"]).status.code(), Some(4), "an empty standard input");
}

#[test]
fn what_the_helper_leaves_behind_is_gone_with_it() {
    let site = Site::new(&format!("(setsid sleep 600 >/dev/null 2>&1 &); {GOOD}"), "");
    let marker = site.folder.path().to_str().unwrap().to_owned();
    let output = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["helper", "test", "--identity", IDENTITY, "--config"])
        .arg(site.folder.path().join("c.yaml"))
        .env("HELPER_MARKER", &marker)
        .output()
        .unwrap();
    assert!(output.status.success());
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        fs::read(entry.path().join("environ")).is_ok_and(|env| {
            env.split(|byte| *byte == 0).any(|entry| entry == format!("HELPER_MARKER={marker}").as_bytes())
        })
    });
    assert_eq!(left.count(), 0);
}
