//! Instances under control, a NATS client that asks them as anybody's would, and the verbs as processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use async_nats::Client;
use futures::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::prove_site::{PATIENCE, Site};
use super::support::eventually;

pub const BINARY: &str = env!("CARGO_BIN_EXE_quartermaster");

/// `quartermaster run` under a name of its own, with a folder for its state.
pub struct Instance {
    pub name: String,
    pub config: PathBuf,
    pub choria: PathBuf,
    pub state: PathBuf,
    log: PathBuf,
    child: Child,
}

impl Instance {
    /// Starts it with these lines beside those of the site.
    pub fn start(site: &Site, name: &str, yaml: &str) -> Self {
        let config = site.path(&format!("{name}.yaml"));
        let choria = site.path(&format!("{name}.cfg"));
        let state = site.path(&format!("{name}.state"));
        fs::create_dir_all(&state).unwrap();
        let text = fs::read_to_string(&site.files.config).unwrap();
        let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("listen:")).collect();
        fs::write(&config, format!("{}\n{yaml}\n", kept.join("\n"))).unwrap();
        let text = fs::read_to_string(&site.files.choria_config).unwrap();
        fs::write(&choria, text.replace("identity = provisioner.example.net", &format!("identity = {name}")))
            .unwrap();
        let log = site.path(&format!("{name}.log"));
        let child = Self::spawn(&config, &choria, &state, &log);
        Self { name: name.to_owned(), config, choria, state, log, child }
    }

    fn spawn(config: &Path, choria: &Path, state: &Path, log: &Path) -> Child {
        let out = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(BINARY);
        command.arg("run").arg("--config").arg(config).arg("--choria-config").arg(choria);
        command.env("STATE_DIRECTORY", state).stdin(Stdio::null()).stdout(Stdio::null()).stderr(out);
        command.spawn().unwrap()
    }

    /// Starts it again after its end.
    pub fn again(&mut self) {
        assert!(self.exited().is_some(), "it still runs");
        self.child = Self::spawn(&self.config, &self.choria, &self.state, &self.log);
    }

    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits for its end; answers with the exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the instance has ended", || {
            status = self.exited();
            status.is_some()
        })
        .await;
        status.and_then(|status| status.code())
    }

    /// The records of its audit file.
    pub fn audited(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.state.join("audit.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until it answers on this connection.
    pub async fn answers(&mut self, client: &Client) {
        let subject = format!("quartermaster.ping.{}", self.name);
        let mut left = 600;
        while !is_heard(client, &subject).await {
            assert!(self.exited().is_none(), "it ended:\n{}", self.log());
            assert!(left > 0, "it does not answer:\n{}", self.log());
            left -= 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether somebody answers, and not that it is too early: links are up before there is anybody behind them.
async fn is_heard(client: &Client, subject: &str) -> bool {
    let reply = client.request(subject.to_owned(), "".into()).await;
    let is_error = |headers: &async_nats::HeaderMap| headers.get("Nats-Service-Error-Code").is_some();
    reply.is_ok_and(|reply| !reply.headers.as_ref().is_some_and(is_error))
}

/// Waits until an instance, any one, answers on this connection.
pub async fn heard(client: &Client) {
    let end = Instant::now() + PATIENCE;
    while !is_heard(client, "quartermaster.ping").await {
        assert!(Instant::now() < end, "nobody answers");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub async fn client(site: &Site) -> Client {
    async_nats::connect(site.broker.url()).await.unwrap()
}

/// An answer and its error's number.
pub async fn ask(client: &Client, subject: &str, body: Value) -> (Value, Option<String>) {
    let reply = client.request(subject.to_owned(), body.to_string().into()).await.unwrap();
    let code = reply.headers.and_then(|headers| Some(headers.get("Nats-Service-Error-Code")?.to_string()));
    (serde_json::from_slice(&reply.payload).unwrap(), code)
}

/// An answer that must be a good one.
pub async fn good(client: &Client, subject: &str, body: Value) -> Value {
    let (answer, code) = ask(client, subject, body).await;
    assert_eq!(code, None, "{subject}: {answer}");
    answer
}

/// As many answers as are wanted, ordered by instance.
pub async fn all(client: &Client, subject: &str, body: Value, wanted: usize) -> Vec<Value> {
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.unwrap();
    client.publish_with_reply(subject.to_owned(), inbox, body.to_string().into()).await.unwrap();
    let mut given = Vec::new();
    while given.len() < wanted {
        let next = tokio::time::timeout(Duration::from_secs(20), answers.next());
        given.push(serde_json::from_slice::<Value>(&next.await.unwrap().unwrap().payload).unwrap());
    }
    given.sort_by_key(|answer| answer["instance"].as_str().unwrap().to_owned());
    given
}

pub fn by(who: &str, why: &str) -> Value {
    json!({"who": who, "why": why})
}

/// What a verb did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

/// Runs a verb to its end, without a terminal and without anything on its input.
pub async fn verb(arguments: &[&str]) -> Ran {
    let mut command = tokio::process::Command::new(BINARY);
    command.args(arguments).env_remove("QUARTERMASTER_SERVER").env("USER", "ann");
    let run = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: run.status.code(), out: text(run.stdout), err: text(run.stderr) }
}
