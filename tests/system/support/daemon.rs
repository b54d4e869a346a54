//! `quartermaster run` as a process of its own, with its log, its pages and its numbers.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use quartermaster::emulate::NetworkFiles;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::eventually;

/// A running provisioner, killed when dropped.
pub struct Daemon {
    child: Child,
    dir: PathBuf,
}

impl Daemon {
    /// Starts `quartermaster run` with these files, its log as JSON on standard error at the lowest level.
    pub fn start(files: &NetworkFiles) -> Self {
        Self::start_with(files, &["--debug", "--log-format", "json"], &[])
    }

    /// As [`Daemon::start`], with other log arguments and with additions to its environment.
    pub fn start_with(files: &NetworkFiles, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let output = |name: &str| std::fs::File::create(files.dir.join(name)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.arg("run").args(arguments).arg("--config").arg(&files.config);
        command.arg("--choria-config").arg(&files.choria_config).envs(environment.iter().copied());
        command.current_dir(&files.dir).stdin(Stdio::null());
        let child = command.stdout(output("stdout")).stderr(output("stderr")).spawn().unwrap();
        Self { child, dir: files.dir.clone() }
    }

    /// What it wrote to standard error so far: its log, when `logfile` is stderr.
    pub fn stderr(&self) -> String {
        String::from_utf8(std::fs::read(self.dir.join("stderr")).unwrap()).expect("the log is text")
    }

    /// What it wrote to standard output so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join("stdout")).unwrap()).into_owned()
    }

    /// The log's lines as JSON objects; a line that is not finished yet is left out.
    pub fn lines(&self) -> Vec<Value> {
        let text = self.stderr();
        let end = text.rfind('\n').map_or(0, |at| at + 1);
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        text[..end].lines().map(parse).collect()
    }

    /// Fails unless it still runs.
    pub fn assert_alive(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the provisioner has ended ({ended:?}):\n{}", self.stderr());
    }

    /// Waits until it listens for web requests, which the configuration must ask for.
    pub async fn listens(&mut self) {
        eventually("it listens for web requests", || {
            self.assert_alive();
            self.web_port().is_some()
        })
        .await;
    }

    /// The port of its web listener.
    pub fn port(&self) -> u16 {
        self.web_port().expect("it listens for web requests")
    }

    /// Where its web listener is.
    pub fn web_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    /// Asks its web listener: status and body.
    pub fn get(&self, path: &str) -> (u16, String) {
        let port = self.web_port().expect("it listens for web requests");
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer has a body");
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Every value of one metric by the label's value.
    pub fn metric(&self, name: &str, label: &str) -> BTreeMap<String, u64> {
        let (status, text) = self.get("/metrics");
        assert_eq!(status, 200);
        let series = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
        series
            .map(|line| {
                let (labels, value) = line.split_once("} ").unwrap();
                let value = value.trim().parse::<f64>().unwrap();
                let wanted = format!("{label}=\"");
                let of_label = labels.split(&wanted).nth(1).and_then(|rest| rest.split('"').next());
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
                (of_label.unwrap_or_default().to_owned(), value as u64)
            })
            .collect()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("it has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }

    /// The port of its web listener, once it listens.
    pub fn web_port(&self) -> Option<u16> {
        const SAID: &str = "Listening for web requests on http";
        let said = |log: &str| {
            let address = log.split(SAID).nth(1)?.trim_start_matches('s').strip_prefix("://127.0.0.1:")?;
            port_of(address)
        };
        let log = [self.stderr(), self.stdout()].concat();
        said(&log).or_else(|| said(&std::fs::read_to_string(self.dir.join("log")).ok()?))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn port_of(text: &str) -> Option<u16> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    text[..end].parse().ok()
}

/// Replaces a text that must be in the file.
pub fn replace(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from} is not in {}", file.display());
    std::fs::write(file, text.replace(from, to)).unwrap();
}

/// Appends lines to a file.
pub fn append(file: &Path, lines: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).open(file).unwrap();
    file.write_all(lines.as_bytes()).unwrap();
}
