//! A real nats-server of a test's own: on a free port, with a written configuration, gone when dropped.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Authority, nats_server, skip};

/// How long a nats-server may take to become ready.
const READY_LIMIT: Duration = Duration::from_mins(1);

/// What the broker is to be like. The default: clear text, no login, 1 MiB of payload.
#[derive(Debug, Clone, Default)]
pub struct BrokerOptions {
    tls: Option<Tls>,
    users: Vec<(String, String)>,
    max_payload: Option<usize>,
    jetstream: bool,
    cluster: Option<(u16, Vec<u16>)>,
    extra: String,
}

#[derive(Debug, Clone)]
struct Tls {
    certificate: String,
    key: String,
    authority: String,
    verify: bool,
    allow_plain: bool,
}

impl BrokerOptions {
    /// The default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves TLS with a certificate of this authority.
    #[must_use]
    pub fn tls(mut self, authority: &Authority) -> Self {
        let issued = authority.server();
        self.tls = Some(Tls {
            certificate: issued.certificate,
            key: issued.key,
            authority: authority.pem().to_owned(),
            verify: false,
            allow_plain: false,
        });
        self
    }

    /// With TLS: clients must show a certificate of the same authority.
    #[must_use]
    pub fn verify_clients(mut self) -> Self {
        self.tls.as_mut().expect("tls() comes first").verify = true;
        self
    }

    /// With TLS: clear-text clients are served as well.
    #[must_use]
    pub fn allow_plain(mut self) -> Self {
        self.tls.as_mut().expect("tls() comes first").allow_plain = true;
        self
    }

    /// Adds a user; with any user, nobody gets in without one.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.users.push((name.to_owned(), password.to_owned()));
        self
    }

    /// Sets the largest payload, bytes.
    #[must_use]
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = Some(bytes);
        self
    }

    /// With JetStream; its files live as long as the broker value, over restarts.
    #[must_use]
    pub fn jetstream(mut self) -> Self {
        self.jetstream = true;
        self
    }

    /// Forms a cluster with others on this machine: its own port for them, and theirs. Clients are told of none of them.
    #[must_use]
    pub fn cluster(mut self, port: u16, others: &[u16]) -> Self {
        self.cluster = Some((port, others.to_vec()));
        self
    }

    /// Adds lines of nats-server configuration, for example `accounts { … }`.
    #[must_use]
    pub fn extra(mut self, lines: &str) -> Self {
        self.extra.push_str(lines);
        self.extra.push('\n');
        self
    }

    /// Starts it. `None`, after a line saying so, when this machine has no nats-server and cannot get one.
    pub fn start(self) -> Option<Broker> {
        match nats_server() {
            Ok(program) => Some(Broker::start(program, self)),
            Err(why) => {
                let test = std::thread::current().name().unwrap_or("a test").to_owned();
                skip(&test, why);
                None
            }
        }
    }

    fn config(&self, dir: &Path, port: i32, monitor: i32) -> String {
        let number = self.cluster.as_ref().map(|(port, _)| port.to_string()).unwrap_or_default();
        let mut text = format!(
            "listen: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\nserver_name: test{number}\n"
        );
        if let Some((port, others)) = &self.cluster {
            let routes: Vec<String> =
                others.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
            let _ = writeln!(
                text,
                "cluster {{ name: tests, listen: \"127.0.0.1:{port}\", no_advertise: true, routes: [{}] }}",
                routes.join(", ")
            );
        }
        if let Some(tls) = &self.tls {
            for (name, content) in
                [("tls.pem", &tls.certificate), ("tls.key", &tls.key), ("ca.pem", &tls.authority)]
            {
                std::fs::write(dir.join(name), content).unwrap();
            }
            let dir = dir.display();
            let _ = writeln!(
                text,
                "tls {{ cert_file: \"{dir}/tls.pem\", key_file: \"{dir}/tls.key\", ca_file: \"{dir}/ca.pem\", verify: {}, timeout: 10 }}",
                tls.verify
            );
            if tls.allow_plain {
                text.push_str("allow_non_tls: true\n");
            }
        }
        if !self.users.is_empty() {
            text.push_str("authorization { users: [\n");
            for (name, password) in &self.users {
                let _ = writeln!(text, "  {{ user: \"{name}\", password: \"{password}\" }}");
            }
            text.push_str("] }\n");
        }
        if let Some(bytes) = self.max_payload {
            let _ = writeln!(text, "max_payload: {bytes}");
        }
        if self.jetstream {
            let _ = writeln!(
                text,
                "jetstream {{ store_dir: \"{}/store\", max_memory_store: 64M, max_file_store: 256M }}",
                dir.display()
            );
        }
        text.push_str(&self.extra);
        text
    }
}

/// A running nats-server.
pub struct Broker {
    program: PathBuf,
    options: BrokerOptions,
    dir: TempDir,
    port: u16,
    monitor: u16,
    child: Option<Child>,
    starts: usize,
}

impl Broker {
    fn start(program: &Path, options: BrokerOptions) -> Self {
        let dir = TempDir::new().unwrap();
        let mut broker =
            Self { program: program.to_owned(), options, dir, port: 0, monitor: 0, child: None, starts: 0 };
        // The first start takes any free ports and reads from the server's own ports file which they are.
        broker.spawn(-1, -1, &["--ports_file_dir"]);
        broker.read_ports();
        broker.wait_ready();
        broker
    }

    /// The client port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address as a client's URL.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Kills it at once. Files and port are kept for [`Broker::restart`].
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops it if need be and starts it again on the same ports.
    pub fn restart(&mut self) {
        self.stop();
        self.spawn(i32::from(self.port), i32::from(self.monitor), &[]);
        self.wait_ready();
    }

    /// As [`Broker::restart`], with other options.
    pub fn restart_with(&mut self, options: BrokerOptions) {
        self.options = options;
        self.restart();
    }

    /// Stops its threads where they are: the link to it becomes half open.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks the monitoring port, for example for `/connz`.
    pub fn monitor(&self, path: &str) -> serde_json::Value {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.monitor)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer has a body");
        serde_json::from_str(body).expect("monitoring answers JSON")
    }

    /// How many clients are connected.
    pub fn connections(&self) -> u64 {
        self.monitor("/connz")["num_connections"].as_u64().unwrap()
    }

    /// How many subscriptions exist, the server's own not counted where it has none of them in the client's account.
    pub fn subscriptions(&self) -> u64 {
        let connz = self.monitor("/connz");
        connz["connections"].as_array().unwrap().iter().filter_map(|one| one["subscriptions"].as_u64()).sum()
    }

    /// What the server wrote to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) {
        let pid = self.pid().and_then(|pid| Pid::from_raw(i32::try_from(pid).unwrap())).expect("it runs");
        kill_process(pid, signal).unwrap();
    }

    fn spawn(&mut self, port: i32, monitor: i32, ports_file: &[&str]) {
        let dir = self.dir.path();
        let config = dir.join("nats.conf");
        std::fs::write(&config, self.options.config(dir, port, monitor)).unwrap();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(&config);
        for option in ports_file {
            command.arg(option).arg(dir);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.child = Some(child);
    }

    fn read_ports(&mut self) {
        let pid = self.pid().unwrap();
        let name = self.program.file_name().unwrap().to_string_lossy().into_owned();
        let file = self.dir.path().join(format!("{name}_{pid}.ports"));
        let end = Instant::now() + READY_LIMIT;
        let ports: serde_json::Value = loop {
            let read = std::fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str(&text).ok());
            if let Some(ports) = read {
                break ports;
            }
            self.check_alive(end);
            std::thread::sleep(Duration::from_millis(10));
        };
        let port = |key: &str| {
            let url = ports[key][0].as_str().expect("the ports file names the listener");
            url.rsplit(':').next().unwrap().parse().unwrap()
        };
        self.port = port("nats");
        self.monitor = port("monitoring");
    }

    /// Waits until its log says so: a probing connection would show up in the monitoring.
    fn wait_ready(&mut self) {
        self.starts += 1;
        let end = Instant::now() + READY_LIMIT;
        while self.log().matches("Server is ready").count() < self.starts {
            self.check_alive(end);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn check_alive(&mut self, end: Instant) {
        let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        assert!(ended.is_none(), "nats-server ended at once ({ended:?}):\n{}", self.log());
        assert!(Instant::now() < end, "nats-server was not ready within {READY_LIMIT:?}:\n{}", self.log());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}
