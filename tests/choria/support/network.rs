//! One network of the lab: a folder, its broker, its tap and its servers.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::lab::Lab;
use super::process::Process;
use super::server::Server;
use super::tap::Tap;

/// The three kinds of network a provisioner meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A plain nats-server, protocol 1 without signatures.
    Plain,
    /// The Choria broker with certificates, protocol 1 signed.
    X509,
    /// The Choria broker with an Organization Issuer, protocol 2.
    Issuer,
}

/// A running network. Everything in it ends on drop; after a failure its folder stays and the ends of its logs are shown.
pub struct Network {
    lab: &'static Lab,
    kind: Kind,
    port: u64,
    monitor_port: u16,
    servers: BTreeMap<&'static str, Process>,
    tap: Tap,
    _broker: Process,
    folder: Option<TempDir>,
}

impl Network {
    /// Prepares a network with a folder for each of `servers`, and starts its broker and its tap, but no server.
    pub fn prepare(lab: &'static Lab, kind: Kind, servers: &[&'static str]) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("choria-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .expect("a folder");
        let path = folder.path();
        let word = match kind {
            Kind::Plain => "plain",
            Kind::X509 => "x509",
            Kind::Issuer => "issuer",
        };
        let dir = path.to_str().expect("a path in UTF-8");
        lab.run(path, &[&["network", word, dir], servers].concat());
        let facts: Value =
            serde_json::from_slice(&fs::read(path.join("network.json")).expect("network.json"))
                .expect("JSON");
        let broker = Process::start(lab.command(path).args(["broker", dir]), &path.join("broker.log"));
        let tap = Tap::start(lab.command(path).args(["tap", dir]), &path.join("tap.log"));
        Self {
            lab,
            kind,
            port: facts["port"].as_u64().expect("a port"),
            monitor_port: facts["monitor_port"].as_u64().and_then(|p| u16::try_from(p).ok()).expect("a port"),
            servers: BTreeMap::new(),
            tap,
            _broker: broker,
            folder: Some(folder),
        }
    }

    /// Starts a server and waits until it has announced itself in provisioning mode.
    pub fn start_server(&mut self, name: &'static str) {
        let command = self.lab.command(self.path());
        self.start(name, command);
    }

    /// Starts a server from a program file of its own, which an upgrade may replace.
    pub fn start_upgradable_server(&mut self, name: &'static str) {
        let program = self.server(name).folder().join("choria");
        let command = self.lab.copy(&program, self.path());
        self.start(name, command);
    }

    fn start(&mut self, name: &'static str, mut command: Command) {
        command.arg("server");
        if self.kind == Kind::Plain {
            // In provisioning mode a server uses TLS whatever it is told; this is for afterwards.
            command.arg("--disable-tls");
        }
        let server = self.server(name);
        let process = Process::start(command.arg(server.folder()), &self.path().join(format!("{name}.log")));
        self.servers.insert(name, process);
        self.tap.startup(name, "provision_mode_server", 1);
    }

    /// Ends a server as a power cut would.
    pub fn cut_power(&mut self, name: &str) {
        self.servers.remove(name).expect("a server that was started");
    }

    /// The process of a server that was started.
    pub fn process(&mut self, name: &str) -> &mut Process {
        self.servers.get_mut(name).expect("a server that was started")
    }

    /// The files of a server.
    pub fn server(&self, name: &'static str) -> Server {
        Server::new(name, &self.path().join("servers").join(name))
    }

    /// What passes in the network.
    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// Starts a member of the provisioners' election that uses the peer's own library.
    pub fn start_candidate(&self, name: &str) -> Process {
        let mut command = self.lab.command(self.path());
        let log = self.path().join(format!("candidate-{name}.log"));
        Process::start(command.arg("candidate").arg(self.path()).arg(name), &log)
    }

    /// Runs a command of the lab about this network.
    pub fn lab(&self, command: &str, server: &str) -> String {
        self.lab.run(self.path(), &[command, self.path().to_str().expect("a path in UTF-8"), server])
    }

    /// The folder all of it is in.
    pub fn path(&self) -> &Path {
        self.folder.as_ref().expect("the folder stays until drop").path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The broker's port.
    pub fn port(&self) -> u64 {
        self.port
    }

    /// Where the provisioner shows its metrics.
    pub fn monitor_port(&self) -> u16 {
        self.monitor_port
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let Some(folder) = self.folder.take() else { return };
        let path = folder.keep();
        eprintln!("everything of the failed network is in {}", path.display());
        for file in fs::read_dir(&path).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|e| e == "log") {
                let text = String::from_utf8_lossy(&fs::read(file.path()).unwrap_or_default()).into_owned();
                let lines: Vec<_> = text.lines().collect();
                let tail = lines.len().saturating_sub(40);
                eprintln!("--- {} ---\n{}", file.path().display(), lines[tail..].join("\n"));
            }
        }
    }
}
