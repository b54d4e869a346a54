//! Helpers that are providers: `helper test`, `check`, the samples, and an older helper behind `provider wrap`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::{IDENTITY, have, recorded, repository};

const SCHEMA: &str = r#"{"name":"site","version":"1","protocol":"1","actions":{"provision":{"attrs":{"identity":{"type":"string"},"inventory":{"type":"string"}},"outputs":{"type":"any"}}}}"#;

const CFG: &str = "identity = prov.example.net\nplugin.choria.middleware_hosts = 127.0.0.1:1\n";

/// A folder with the configuration of a helper that is a provider.
struct Site {
    folder: TempDir,
}

impl Site {
    fn new(helper: &str, more: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let yaml = format!(
            "helper: {helper}\nhelper_protocol: provider\ntoken: t0ken-of-the-site\nchoria_insecure: true\n{more}\n"
        );
        fs::write(folder.path().join("choria.cfg"), CFG).unwrap();
        fs::write(folder.path().join("c.yaml"), yaml.replace("FOLDER", folder.path().to_str().unwrap()))
            .unwrap();
        Self { folder }
    }

    /// A provider that prints this schema and does nothing else.
    fn declaring(schema: &str, more: &str) -> Self {
        let site = Self::new("FOLDER/provider", more);
        site.program("provider", &format!("[ \"$1\" = schema ] && echo '{schema}'"));
        site
    }

    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn test(&self, arguments: &[&str]) -> (Value, Option<i32>) {
        let output = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
            .args(["helper", "test", "--json", "--config"])
            .arg(self.folder.path().join("c.yaml"))
            .args(arguments)
            .env("HELPER_SITE", "london")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}")), output.status.code())
    }

    /// What `check` says of the helper.
    fn check(&self) -> Vec<String> {
        let output = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
            .args(["check", "--json", "--config"])
            .arg(self.folder.path().join("c.yaml"))
            .args(["--choria-config"])
            .arg(self.folder.path().join("choria.cfg"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let faults = report["faults"].as_array().unwrap().iter();
        let errors = faults.filter(|fault| fault["severity"] == "error");
        errors
            .map(|fault| format!("{} {}", fault["key"].as_str().unwrap_or_default(), fault["what"]))
            .collect()
    }
}

fn built(example: &str) -> PathBuf {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_quartermaster"));
    binary.parent().unwrap().join("examples").join(example)
}

#[test]
fn the_python_sample_decides() {
    if !have(&["python3"]) {
        return;
    }
    let sample = repository().join("examples/providers/python/provision.py");
    let (report, code) = Site::new(sample.to_str().unwrap(), "").test(&["--identity", IDENTITY]);
    assert_eq!((report["decision"].as_str(), code), (Some("configure"), Some(0)), "{report:#}");
    assert_eq!(report["ended"], "answered");
    assert_eq!(report["stderr"], json!(["web1.example.net becomes web"]));
    assert_eq!(report["warnings"], json!([]));
    assert_eq!(
        report["stdout"]["configuration"]["plugin.choria.middleware_hosts"],
        "nats://broker.example.net:4222"
    );
    let (report, _) = Site::new(sample.to_str().unwrap(), "").test(&["--identity", "web1.elsewhere.net"]);
    assert_eq!(report["decision"], "defer", "{report:#}");
}

#[test]
fn the_rust_sample_decides() {
    // Built with every test of the package, but not with one test alone.
    let sample = built("provision-provider");
    if !sample.exists() {
        eprintln!("skipped: the samples are not built; cargo build --examples");
        return;
    }
    let (report, code) = Site::new(sample.to_str().unwrap(), "").test(&["--identity", IDENTITY]);
    assert_eq!((report["decision"].as_str(), code), (Some("configure"), Some(0)), "{report:#}");
}

#[test]
fn an_older_helper_is_wrapped_without_being_rewritten() {
    let wrap =
        format!("{} provider wrap -- FOLDER/old --site 'north sea'", env!("CARGO_BIN_EXE_quartermaster"));
    let site = Site::new(&wrap, "");
    let old = site.program(
        "old",
        "cat > \"$0.got\"; echo \"site $2 in $HELPER_SITE\" >&2; echo '{\"configuration\":{\"plugin.choria.server.provision\":\"false\"}}'",
    );
    let file = repository().join("proto/tests/vectors/v2.helper-input.json");
    let (report, code) = site.test(&["--server", file.to_str().unwrap()]);
    assert_eq!((report["decision"].as_str(), code), (Some("configure"), Some(0)), "{report:#}");
    assert_eq!(report["stderr"], json!(["site north sea in london"]));
    let got: Value = serde_json::from_slice(&fs::read(old.with_extension("got")).unwrap()).unwrap();
    assert_eq!(got, serde_json::from_slice::<Value>(&recorded("v2")).unwrap());

    site.program("old", "echo no such role >&2; exit 3");
    let (report, code) = site.test(&["--identity", IDENTITY]);
    assert_eq!((report["ended"].as_str(), code), (Some("not_answered"), Some(6)));
    let error = report["errors"][0].as_str().unwrap();
    assert!(error.contains("exited with status 3; its last words: no such role"), "{error}");
}

#[test]
fn a_wrapped_helper_that_is_called_off_ends_with_everything_it_started() {
    let site = Site::new("unused", "");
    let old = site.program("old", "cat >/dev/null; echo $$ > \"$0.pid\"; sleep 600 & wait");
    let mut wrap = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["provider", "wrap", "--"])
        .arg(&old)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = wrap.stdin.take().unwrap();
    let frames = [
        r#"{"id":1,"method":"configure","params":{"config":{}}}"#,
        r#"{"id":2,"method":"execute","params":{"action":"provision","attrs":{"identity":"web1"}}}"#,
    ];
    writeln!(input, "{}", frames.join("\n")).unwrap();
    let pid = loop {
        match fs::read_to_string(old.with_extension("pid")).unwrap_or_default().trim() {
            "" => std::thread::sleep(std::time::Duration::from_millis(10)),
            pid => break pid.to_owned(),
        }
    };
    writeln!(input, r#"{{"method":"x/cancel","params":{{"id":2,"reason":"timeout","grace_ms":1000}}}}"#)
        .unwrap();
    writeln!(input, r#"{{"id":3,"method":"shutdown","params":{{}}}}"#).unwrap();
    let output = wrap.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[1]["error"]["code"], "cancelled", "{answers:?}");
    assert_eq!(answers[2], json!({"id": 3, "result": {}}));
    assert_eq!(output.status.code(), Some(0));
    // Who reaps it is whoever got it, so it may be defunct for a moment.
    let is_gone = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_none_or(|rest| rest.is_empty() || rest.trim_start().starts_with(['Z', 'X']))
    };
    let end = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !is_gone() {
        assert!(std::time::Instant::now() < end, "what the helper was is still there");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn check_says_why_a_provider_is_no_helper() {
    assert_eq!(Site::declaring(SCHEMA, "").check(), Vec::<String>::new());
    let cases = [
        (SCHEMA.replace("\"provision\"", "\"decide\""), "no action `provision`; its actions: decide"),
        (
            SCHEMA.replace(
                "\"identity\":{\"type\":\"string\"}",
                "\"role\":{\"type\":\"string\",\"required\":true}",
            ),
            "requires `role`",
        ),
        (
            SCHEMA.replace(
                "\"inventory\":{\"type\":\"string\"}",
                "\"jwt\":{\"type\":\"any\",\"required\":true}",
            ),
            "requires `jwt`, which is not there",
        ),
        (
            SCHEMA.replace("\"inventory\":{\"type\":\"string\"}", "\"inventory\":{\"type\":\"map(string)\"}"),
            "`inventory` is declared as map(string)",
        ),
        (SCHEMA.replace(",\"outputs\":{\"type\":\"any\"}", ""), "declares no outputs"),
        (SCHEMA.replace("\"protocol\":\"1\"", "\"protocol\":\"2\""), "protocol"),
    ];
    for (schema, words) in cases {
        let faults = Site::declaring(&schema, "").check();
        assert!(faults.len() == 1 && faults[0].starts_with("helper "), "{words}: {faults:?}");
        assert!(faults[0].contains(words), "{words}: {faults:?}");
    }
    let exec = Site::new("FOLDER/old", "");
    exec.program("old", "cat >/dev/null; echo '{}'");
    let faults = exec.check();
    assert!(faults[0].contains("schema"), "{faults:?}");
}

#[test]
fn what_goes_wrong_is_told_to_the_author() {
    if !have(&["python3"]) {
        return;
    }
    let cases = [
        (
            "answer({'outputs': {'configuration': {'a': 1}}})",
            "`configuration[\"a\"]` should be a string but is number 1",
            6,
        ),
        ("error('conflict', 'no rack')", "conflict: no rack", 6),
        ("sys.exit('gave up')", "exited with status 1", 6),
        ("print('hello', flush=True)", "bad_frame", 6),
    ];
    for (line, words, exit) in cases {
        let site = Site::new("FOLDER/provider", "");
        let program = format!(
            "#!/usr/bin/env python3\nimport json, sys\ndef send(frame): print(json.dumps(frame), flush=True)\n\
             for line in sys.stdin:\n    frame = json.loads(line)\n    id, method = frame['id'], frame['method']\n    \
             answer = lambda result: send({{'id': id, 'result': result}})\n    \
             error = lambda code, message: send({{'id': id, 'error': {{'code': code, 'message': message}}}})\n    \
             if method == 'describe': answer({{'schema': json.loads('''{SCHEMA}''')}})\n    \
             elif method == 'execute': {line}\n    else: answer({{}})\n    if method == 'shutdown': break\n"
        );
        let path = site.folder.path().join("provider");
        fs::write(&path, program).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let (report, code) = site.test(&["--identity", IDENTITY]);
        let error = report["errors"][0].as_str().unwrap_or_default();
        assert!(error.contains(words), "{words}: {report:#}");
        assert_eq!(code, Some(exit), "{report:#}");
    }
}

#[test]
fn c60_a_line_of_a_hundred_mebibytes_is_refused_for_what_it_is_in_bounded_memory() {
    let site = Site::new("FOLDER/provider", "helper_timeout: 5m");
    site.program(
        "provider",
        &format!(
            "schema='{SCHEMA}'\n[ \"$1\" = schema ] && {{ echo \"$schema\"; exit 0; }}\n\
             read -r line; echo \"{{\\\"id\\\":1,\\\"result\\\":{{\\\"schema\\\":$schema}}}}\"\n\
             read -r line; echo '{{\"id\":2,\"result\":{{}}}}'\n\
             read -r line; head -c 104857600 /dev/zero | tr '\\0' x; echo; read -r line"
        ),
    );
    let mut host = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["helper", "test", "--json", "--identity", IDENTITY, "--config"])
        .arg(site.folder.path().join("c.yaml"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut peak = 0u64;
    while host.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", host.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(now.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let report: Value = serde_json::from_slice(&host.wait_with_output().unwrap().stdout).unwrap();
    let error = report["errors"][0].as_str().unwrap_or_default();
    assert!(error.contains("frame_too_large") && error.contains("16777216 bytes"), "{report:#}");
    assert!(peak > 0 && peak < 100 * 1024, "{peak} KiB at the most");
}
