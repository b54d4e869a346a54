//! A real broker with one user for each account of the mesh and exactly the rights of its table, as `mesh accounts` prints them,
//! and one more user that sees and may do everything: the test itself.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions};
use nkeys::KeyPair;
use quartermaster_proto::mesh::accounts::Account;
use rustix::process::Signal;

use super::Program;

/// What ends the list of users in the broker's configuration.
const END: &str = "  ]\n}\n";

/// The nats-server, found or fetched once; none, and a line that says so, where that cannot be done. With `QM_REQUIRE_ALL=1` that
/// is a failure.
fn nats_server() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/get-nats-server");
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
    server: &'static Path,
    dir: PathBuf,
    tester: String,
    port: u16,
    program: Option<Program>,
}

impl Broker {
    /// Starts a broker for these accounts in this folder, which also gets a credentials file for each.
    pub fn start(dir: &Path, accounts: &[Account]) -> Option<Self> {
        let server = nats_server()?;
        fs::create_dir_all(dir).unwrap();
        let mut broker = Self {
            server,
            dir: dir.to_owned(),
            tester: KeyPair::new_user().seed().unwrap(),
            port: 0,
            program: None,
        };
        for account in accounts {
            broker.renew(account);
        }
        broker.configure(accounts);
        broker.run(None);
        Some(broker)
    }

    /// Gives an account another key; the broker takes it once it is configured with it.
    pub fn renew(&self, account: &Account) {
        let seed = KeyPair::new_user().seed().unwrap();
        let file = self.credentials(account);
        let beside = file.with_extension("new");
        fs::write(&beside, seed).unwrap();
        fs::rename(beside, file).unwrap();
    }

    /// Writes the configuration: what `quartermaster mesh accounts` prints for these, and the test's own user.
    pub fn configure(&self, accounts: &[Account]) {
        let listed: Vec<String> = accounts
            .iter()
            .map(|account| {
                let seed = fs::read_to_string(self.credentials(account)).unwrap();
                format!("{}={}", account.name(), KeyPair::from_seed(&seed).unwrap().public_key())
            })
            .collect();
        let run = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
            .args(["mesh", "accounts"])
            .args(listed)
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let printed = String::from_utf8(run.stdout).unwrap();
        let users = printed.strip_suffix(END).expect("the list of users ends as it always did");
        let tester = KeyPair::from_seed(&self.tester).unwrap().public_key();
        let store = self.dir.join("store");
        let config = format!(
            "listen: \"127.0.0.1:$PORT\"\nmax_payload: 8MB\njetstream {{ store_dir: {store:?} }}\n{users}    {{ nkey: {tester} }}\n{END}"
        );
        fs::write(self.dir.join("template.conf"), config).unwrap();
    }

    /// The credentials file of an account.
    pub fn credentials(&self, account: &Account) -> PathBuf {
        self.dir.join(account.name())
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A connection as this account, past the programs.
    pub async fn connect(&self, account: &Account) -> Client {
        let seed = fs::read_to_string(self.credentials(account)).unwrap();
        ConnectOptions::with_nkey(seed)
            .custom_inbox_prefix(account.inbox_prefix())
            .connect(self.address())
            .await
            .unwrap()
    }

    /// A connection that may do everything; it comes back by itself.
    pub async fn connect_tester(&self) -> Client {
        ConnectOptions::with_nkey(self.tester.clone())
            .subscription_capacity(1 << 16)
            .reconnect_delay_callback(|_| Duration::from_millis(20))
            .connect(self.address())
            .await
            .unwrap()
    }

    /// Kills it at once; what it stored stays.
    pub fn kill(&mut self) {
        self.program = None;
    }

    /// Starts it again on its port.
    pub fn start_again(&mut self) {
        self.kill();
        self.run(Some(self.port));
    }

    /// Has it read its configuration anew.
    pub fn reload(&self) {
        let config = fs::read_to_string(self.dir.join("template.conf")).unwrap();
        fs::write(self.dir.join("nats.conf"), config.replace("$PORT", &self.port.to_string())).unwrap();
        self.program.as_ref().unwrap().signal(Signal::HUP);
    }

    /// Stops it where it is, as a cable that is pulled; the other way round with [`Broker::thaw`].
    pub fn freeze(&self) {
        self.program.as_ref().unwrap().signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.program.as_ref().unwrap().signal(Signal::CONT);
    }

    /// Starts the process and waits until it says its port.
    fn run(&mut self, port: Option<u16>) {
        let config = fs::read_to_string(self.dir.join("template.conf")).unwrap();
        let wanted = port.map_or("-1".to_owned(), |port| port.to_string());
        fs::write(self.dir.join("nats.conf"), config.replace("$PORT", &wanted)).unwrap();
        let mut command = Command::new(self.server);
        command.arg("-c").arg(self.dir.join("nats.conf")).arg("--ports_file_dir").arg(&self.dir);
        let mut program = Program::start(command, &self.dir, "nats");
        let name = self.server.file_name().unwrap().to_string_lossy();
        let ports = self.dir.join(format!("{name}_{}.ports", program.pid()));
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let found = fs::read(&ports)
                .ok()
                .and_then(|text| serde_json::from_slice::<HashMap<String, Vec<String>>>(&text).ok());
            if let Some(port) =
                found.and_then(|ports| ports.get("nats")?.first()?.rsplit(':').next()?.parse().ok())
            {
                self.port = port;
                self.program = Some(program);
                return;
            }
            assert!(
                Instant::now() < end && program.is_running(),
                "the broker says no port: {}",
                program.log()
            );
            // The file appears when the broker listens; there is nothing else that could be awaited.
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
