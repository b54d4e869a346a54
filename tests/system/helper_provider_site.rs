//! A site whose helper is a provider in Python, which misbehaves as the names of its servers ask for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use super::prove_site::Site;
use super::support::skip;

/// `first(host)` is true once for each host.
const PROGRAM: &str = r#"
import json, os, subprocess, sys, threading, time
here = os.path.dirname(os.path.abspath(__file__))
lock = threading.Lock()

def note(name, text):
    with lock, open(os.path.join(here, name), "a") as file:
        file.write(text + "\n")

def lines(name):
    path = os.path.join(here, name)
    return open(path).read().split("\n") if os.path.exists(path) else []

def send(frame):
    with lock:
        sys.stdout.write(json.dumps(frame) + "\n")
        sys.stdout.flush()

def first(host):
    found = host not in lines("met")
    note("met", host)
    return found

CONFIGURATION = {"plugin.choria.server.provision": "false", "identity": ""}
ATTRS = {"identity": {"type": "string", "required": True}, "inventory": {"type": "string", "required": True},
         "csr": {"type": "any"}, "ed25519_pubkey": {"type": "any"}, "jwt": {"type": "any"}}
SCHEMA = {"name": "site", "version": "1.0.0", "protocol": "1", "config": {},
          "actions": {"provision": {"attrs": ATTRS, "outputs": {"type": "any"}}}}

def decide(host, attrs):
    return {"outputs": {"configuration": dict(CONFIGURATION, identity=host)}}

def execute(id, params, decide):
    attrs = params["attrs"]
    note("asked", attrs["identity"])
    answer = decide(attrs["identity"], attrs)
    if answer:
        send(dict({"id": id}, **(answer if "error" in answer else {"result": answer})))

def serve(schema=SCHEMA, decide=decide, threads=False):
    if sys.argv[1:] == ["schema"]:
        return print(json.dumps(schema))
    note("started", str(os.getpid()))
    for line in iter(sys.stdin.buffer.readline, b""):
        frame = json.loads(line)
        note("received", line.decode().rstrip("\n"))
        id, method, params = frame.get("id"), frame["method"], frame.get("params", {})
        if method == "describe":
            send({"id": id, "result": {"schema": schema}})
        elif method == "execute" and threads:
            threading.Thread(target=execute, args=(id, params, decide), daemon=True).start()
        elif method == "execute":
            execute(id, params, decide)
        elif id:
            send({"id": id, "result": {}})
        if method == "shutdown":
            note("ended", str(os.getpid()))
            return
"#;

/// A site with this provider; `body` may change `decide` and has to call `serve`.
pub struct Provided {
    pub site: Site,
}

impl Provided {
    /// None, said in one line, where there is no broker or no Python.
    pub fn new(body: &str) -> Option<Self> {
        let Some(python) = python() else {
            skip("helpers that are providers", "python3 is not on the PATH");
            return None;
        };
        let site = Site::new()?;
        let this = Self { site };
        let program = this.path("provider");
        fs::create_dir(this.site.path("helper")).unwrap();
        fs::write(&program, format!("#!{python} -Ss\n{PROGRAM}\n{body}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        this.site.yaml(&format!("helper: {}\nhelper_protocol: provider", program.display()));
        this.site.yaml("retry:\n  first: 1s\n  cap: 2s");
        Some(this)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.site.path("helper").join(name)
    }

    /// What it wrote down, line by line.
    pub fn noted(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Its processes that still live, or are defunct.
    pub fn processes(&self) -> Vec<String> {
        let there = |pid: &String| PathBuf::from(format!("/proc/{pid}")).exists();
        self.noted("started").into_iter().filter(there).collect()
    }
}

/// The interpreter itself: the one on the `PATH` may be a script that looks for it.
fn python() -> Option<String> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
