//! C66: a host that is killed leaves no provider behind, since a provider ends with its input.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::support::{have, program};

fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

fn eventually(what: &str, so: impl Fn() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_mins(1), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_provider_in_the_tutorials_style_ends_with_its_host_killed() {
    if !have(&["sh"]) {
        return;
    }
    let folder = TempDir::new().unwrap();
    // It describes itself and then takes its time over configure.
    let slow = r#"#!/bin/sh
schema='{"name":"slow","protocol":"1","actions":{}}'
[ "$1" = schema ] && { echo "$schema"; exit 0; }
read -r line
echo "{\"id\":1,\"result\":{\"schema\":$schema}}"
read -r line && echo $$ >> "${0%/*}/pids" && while read -r line; do :; done
"#;
    let slow = program(folder.path(), "slow", slow);
    let pids = folder.path().join("pids");
    let read = |pids: &Path| fs::read_to_string(pids).unwrap_or_default();
    let mut host = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["provider", "check", slow.to_str().unwrap(), "--timeout", "600"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the provider is being configured", || read(&pids).lines().count() == 1);
    let pid = read(&pids);
    assert!(alive(&pid));
    // SIGKILL: nothing of the host runs after this.
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("the provider has ended", || !alive(&pid));
}

#[test]
fn what_a_provider_of_the_python_kit_started_ends_with_a_host_that_was_killed() {
    if !have(&["python3"]) {
        return;
    }
    let folder = TempDir::new().unwrap();
    let slow = format!(
        "#!/usr/bin/env python3\nimport os, subprocess, sys\nsys.path.insert(0, {kit:?})\nimport provider_kit\n\
         here = os.path.dirname(os.path.abspath(__file__))\n\
         def configure(config):\n    child = subprocess.Popen(['sleep', '600'], stdin=subprocess.DEVNULL)\n    \
         open(here + '/pids', 'a').write('%d\\n%d\\n' % (os.getpid(), child.pid))\n    os.kill(os.getppid(), 9)\n\
         provider_kit.run({{'name': 'slow', 'version': '1', 'protocol': '1', 'actions': {{}}}}, {{}}, configure)\n",
        kit = super::support::sample("python").display().to_string()
    );
    let slow = program(folder.path(), "slow", &slow);
    // It kills its host as soon as it is configured.
    let mut host = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["provider", "check", slow.to_str().unwrap(), "--timeout", "600"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    host.wait().unwrap();
    let pids = fs::read_to_string(folder.path().join("pids")).unwrap();
    assert_eq!(pids.lines().count(), 2);
    eventually("both have ended", || pids.lines().all(|pid| !alive(pid)));
}

/// The samples of the three kits as programs that note their process's number before they begin, those that can be had here.
fn kits(folder: &Path) -> Vec<(&'static str, std::path::PathBuf, String)> {
    let mut kits = Vec::new();
    let noting = |name: &str, command: &str| {
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = schema ] || echo $$ >>\"${{0%/*}}/{name}.pid\"\nexec {command} \"$@\"\n"
        );
        program(folder, name, &text)
    };
    if have(&["python3"]) {
        let path =
            noting("python", &format!("python3 {}", super::support::sample("python/dns.py").display()));
        kits.push((
            "python",
            path,
            format!("file = {:?}", folder.join("records.json").display().to_string()),
        ));
    }
    if have(&["go"]) {
        let binary = folder.join("names");
        let mut build = Command::new("go");
        build.args(["build", "-o", binary.to_str().unwrap(), "."]).current_dir(super::support::sample("go"));
        let output = build.env("GOFLAGS", "-mod=mod").env("GOTOOLCHAIN", "local").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        kits.push(("go", noting("go", &binary.display().to_string()), String::new()));
    }
    let rust =
        Path::new(env!("CARGO_BIN_EXE_quartermaster")).with_file_name("examples").join("counter-provider");
    if rust.is_file() {
        kits.push(("rust", noting("rust", &rust.display().to_string()), String::new()));
    } else {
        super::support::skip("the examples are not built: cargo build --examples");
    }
    kits
}

#[test]
fn providers_of_all_three_kits_end_with_a_host_that_was_killed() {
    let folder = TempDir::new().unwrap();
    let kits = kits(folder.path());
    // One that never says that it is configured keeps the host waiting.
    let slow = "#!/bin/sh\nschema='{\"name\":\"slow\",\"protocol\":\"1\",\"actions\":{}}'\n[ \"$1\" = schema ] && { echo \"$schema\"; exit 0; }\n\
        read -r line\necho \"{\\\"id\\\":1,\\\"result\\\":{\\\"schema\\\":$schema}}\"\nread -r line\necho $$ >\"${0%/*}/slow.pid\"\nwhile read -r line; do :; done\n";
    program(folder.path(), "slow", slow);
    let names = || kits.iter().map(|(name, ..)| *name).chain(["slow"]);
    let limits = r#"timeouts = { describe = "1m", schema = "1m", configure = "10m" }"#;
    let entry = |name: &str| format!("    {name} = {{ source = \"exec:{name}\", {limits} }}\n");
    let entries = names().map(entry).collect::<Vec<_>>().concat();
    let config = |(name, _, config): &(&str, _, String)| format!("  provider \"{name}\" {{ {config} }}\n");
    let configs = kits.iter().map(config).collect::<Vec<_>>().concat();
    let steps = format!("scenario \"s\" {{\n  required_providers {{\n{entries}  }}\n{configs}}}\n");
    fs::write(folder.path().join("steps.hcl"), steps).unwrap();
    let mut host = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["apply", "steps.hcl"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = |name: &str| fs::read_to_string(folder.path().join(format!("{name}.pid"))).unwrap_or_default();
    eventually("all of them run", || names().all(|name| pid(name).ends_with('\n') && alive(&pid(name))));
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("all of them have ended", || names().all(|name| !alive(&pid(name))));
}
