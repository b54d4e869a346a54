//! A real broker of a test's own, with one user for each account of the mesh and exactly the rights of its table: the broker's
//! configuration is the one that `mesh accounts` prints.
#![allow(dead_code, reason = "several test programs share this and each uses a part of it")]

pub mod engine;
pub mod kv;
pub mod kv_lab;
pub mod vault_site;
pub mod web;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use nkeys::KeyPair;
use quartermaster_node::{
    client::bus::{Bus, BusSettings},
    mesh::{User, configuration},
};
use quartermaster_proto::mesh::accounts::Account;
use tempfile::TempDir;

pub mod machine;

/// The nats-server, found or fetched once; none, and a line that says so, where that cannot be done. With `QM_REQUIRE_ALL=1` that
/// is a failure.
fn nats_server() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/get-nats-server");
        let run = Command::new(tool).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        run.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&run.stdout).trim()))
    });
    if found.is_none() {
        assert!(
            std::env::var("QM_REQUIRE_ALL").as_deref() != Ok("1"),
            "QM_REQUIRE_ALL=1 wants a nats-server"
        );
        eprintln!("SKIPPED: there is no nats-server here and none can be fetched");
    }
    found.as_deref()
}

/// A broker that ends when dropped.
pub struct Broker {
    process: Child,
    server: &'static Path,
    dir: TempDir,
    port: u16,
}

impl Broker {
    /// Starts a broker for these accounts.
    pub fn start(accounts: &[Account]) -> Option<Self> {
        let server = nats_server()?;
        let dir = TempDir::new().unwrap();
        let mut users = Vec::new();
        for account in accounts {
            let pair = KeyPair::new_user();
            fs::write(dir.path().join(account.name()), pair.seed().unwrap()).unwrap();
            users.push(User { account: account.clone(), key: pair.public_key().parse().unwrap() });
        }
        let users = configuration(&users);
        let store = dir.path().join("store");
        let config = format!("listen: \"127.0.0.1:$PORT\"\njetstream {{ store_dir: {store:?} }}\n{users}");
        fs::write(dir.path().join("template.conf"), config).unwrap();
        let (process, port) = run(server, dir.path(), None);
        Some(Self { process, server, dir, port })
    }

    /// Ends the broker and starts it again on the same port with what it had stored.
    pub fn restart(&mut self) {
        self.stop();
        (self.process, self.port) = run(self.server, self.dir.path(), Some(self.port));
    }

    /// Ends the broker; what it stored stays.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// How this account connects.
    pub fn settings(&self, account: &Account) -> BusSettings {
        BusSettings {
            servers: format!("127.0.0.1:{}", self.port),
            account: account.clone(),
            credentials: Some(self.dir.path().join(account.name())),
        }
    }

    /// A connection as this account.
    pub async fn connect(&self, account: &Account) -> Bus {
        Bus::connect(self.settings(account)).await.unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts the process and waits until it says its port.
fn run(server: &Path, dir: &Path, port: Option<u16>) -> (Child, u16) {
    let config = fs::read_to_string(dir.join("template.conf")).unwrap();
    let wanted = port.map_or("-1".to_owned(), |port| port.to_string());
    fs::write(dir.join("nats.conf"), config.replace("$PORT", &wanted)).unwrap();
    let mut process = Command::new(server)
        .arg("-c")
        .arg(dir.join("nats.conf"))
        .arg("--ports_file_dir")
        .arg(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let name = server.file_name().unwrap().to_string_lossy();
    let ports = dir.join(format!("{name}_{}.ports", process.id()));
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        let found = fs::read(&ports)
            .ok()
            .and_then(|text| serde_json::from_slice::<HashMap<String, Vec<String>>>(&text).ok());
        let port = found.and_then(|ports| ports.get("nats")?.first()?.rsplit(':').next()?.parse().ok());
        if let Some(port) = port {
            return (process, port);
        }
        // The file appears when the broker listens; there is nothing else that could be awaited.
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = process.kill();
    let _ = process.wait();
    panic!("the broker says no port");
}
