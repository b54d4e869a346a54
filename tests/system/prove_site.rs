//! A whole site for one test: broker, files, emulated servers, and the provisioner as a process or inside this one.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quartermaster::app::{App, Positions, RunOptions, Watching};
use quartermaster::config::{Config, load};
use quartermaster::emulate::{
    Fleet, FleetHandle, FleetSettings, Network, NetworkFiles, PrepareSettings, prepare,
};
use quartermaster::machine::surroundings;
use quartermaster_actors::fleet;
use quartermaster_actors::supervise::{OverseerHandle, OverseerSettings, release_blocked_threads};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::support::{Broker, BrokerOptions};

pub const PATIENCE: Duration = Duration::from_mins(1);

/// Everything of one site; gone when dropped.
pub struct Site {
    pub broker: Broker,
    pub files: NetworkFiles,
    pub monitor: u16,
    dir: TempDir,
}

impl Site {
    /// A plain network around a broker of its own; none when there is no broker to be had.
    pub fn new() -> Option<Self> {
        Self::with(BrokerOptions::new().extra("max_pending: 256MB"))
    }

    /// The same around a broker of that kind.
    pub fn with(options: BrokerOptions) -> Option<Self> {
        let broker = options.start()?;
        let dir = tempfile::tempdir().unwrap();
        let settings = PrepareSettings {
            broker: format!("127.0.0.1:{}", broker.port()),
            workers: Some(2),
            ..PrepareSettings::default()
        };
        let files = prepare(dir.path(), &settings).unwrap().plain;
        let monitor = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let site = Self { broker, files, monitor, dir };
        site.yaml(&format!("listen: 127.0.0.1:{monitor}"));
        Some(site)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Adds lines to the YAML file; a key that is there already is replaced.
    pub fn yaml(&self, lines: &str) {
        let text = fs::read_to_string(&self.files.config).unwrap();
        let key = |line: &str| line.split_once(':').map(|(key, _)| format!("{key}:"));
        let new: Vec<String> = lines.lines().filter_map(key).collect();
        let mut kept: Vec<&str> =
            text.lines().filter(|line| !new.iter().any(|key| line.starts_with(key))).collect();
        kept.extend(lines.lines());
        fs::write(&self.files.config, kept.join("\n") + "\n").unwrap();
    }

    /// Lets the helper run these shell lines after it has read its input, before it answers; `$identity` is the server.
    pub fn helper_also(&self, lines: &str) {
        let text = fs::read_to_string(&self.files.helper).unwrap();
        let (before, after) = text.split_once("printf").expect("the sample helper answers with printf");
        // A new file, since one that is being run cannot be written to.
        fs::remove_file(&self.files.helper).unwrap();
        fs::write(&self.files.helper, format!("{before}{lines}\nprintf{after}")).unwrap();
        fs::set_permissions(&self.files.helper, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// `count` emulated servers named `<prefix>1.example.net` and so on, that restart at once.
    pub async fn servers(
        &self,
        prefix: &str,
        count: usize,
        change: impl FnOnce(&mut FleetSettings),
    ) -> FleetHandle {
        let network = Network::load(&self.files.dir).unwrap();
        let mut settings = FleetSettings::new(network, self.broker.url(), count);
        settings.tls = false;
        settings.identity_format = format!("{prefix}{{}}.example.net");
        settings.restart_delay = Some(Duration::from_millis(20));
        change(&mut settings);
        Fleet::start(settings).await.unwrap()
    }

    /// A shell command that ends up as `quartermaster run`.
    pub fn run_shell(&self, line: &str) -> Process {
        let log = self.path("log");
        let out = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(line);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(out).process_group(0);
        Process { child: child.spawn().unwrap(), log, monitor: self.monitor }
    }

    fn config(&self) -> Config {
        let around = surroundings();
        let loaded = load(&self.files.config, Some(&self.files.choria_config), &around);
        loaded.usable().unwrap_or_else(|faults| panic!("{faults:?}")).0
    }

    /// `quartermaster run` as a process.
    pub fn run(&self) -> Process {
        self.run_with(&[])
    }

    pub fn run_with(&self, arguments: &[&str]) -> Process {
        let log = self.path("log");
        Process::start(&self.files.config, &self.files.choria_config, log, self.monitor, arguments)
    }

    /// The whole provisioner inside this process, on threads of its own, looking and retrying every few seconds.
    pub async fn inside(&self, change: impl FnOnce(&mut Config)) -> Inside {
        let mut config = self.config();
        config.listen = None;
        config.interval = Duration::from_secs(3);
        config.retry.first = Duration::from_secs(1);
        config.retry.cap = Duration::from_secs(2);
        change(&mut config);
        Inside::start(config).await
    }

    /// As [`Self::inside`], without anything around it: for a process of its own.
    pub fn inside_files(config: &Path, choria: &Path) -> Config {
        let around = surroundings();
        let mut config = load(config, Some(choria), &around).usable().unwrap().0;
        config.listen = None;
        config
    }
}

/// An actor that does not answer for two seconds counts as stuck. The watchdog is left out of it: it would end the test.
pub fn watched_closely() -> Watching {
    Watching {
        overseer: OverseerSettings {
            ping_every: Duration::from_millis(200),
            stuck_after: Duration::from_secs(2),
            restarts_at_once: 4,
        },
        hosts_every: Duration::from_millis(500),
        ..Watching::default()
    }
}

/// `quartermaster run`.
pub struct Process {
    child: Child,
    log: PathBuf,
    monitor: u16,
}

impl Process {
    /// Starts it with these files, its log appended to `log`; `monitor` is the port of its listener.
    pub fn start(config: &Path, choria: &Path, log: PathBuf, monitor: u16, arguments: &[&str]) -> Self {
        let out = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.arg("run").arg("--config").arg(config);
        command.arg("--choria-config").arg(choria).args(arguments);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(out).process_group(0);
        Self { child: child.spawn().unwrap(), log, monitor }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    pub fn log_bytes(&self) -> Vec<u8> {
        fs::read(&self.log).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its end; panics with its log when that takes too long.
    pub async fn wait(&mut self, limit: Duration) -> ExitStatus {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.exited() {
                return status;
            }
            assert!(Instant::now() < end, "still there after {limit:?}:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until it is connected.
    pub async fn ready(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.get("/readyz").is_none_or(|(code, _)| code != 200) {
            assert!(self.exited().is_none(), "it ended:\n{}", self.log());
            assert!(Instant::now() < end, "not ready after {PATIENCE:?}:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A page of its listener; none while nobody listens.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.monitor)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    pub fn status(&self) -> Value {
        let (code, body) = self.get("/api/v1/status").expect("the status page is served");
        assert_eq!(code, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    pub fn fleet(&self, key: &str) -> u64 {
        self.status()["fleet"][key].as_u64().expect("a number")
    }

    /// The lines of its metrics that are series.
    pub fn series(&self) -> Vec<String> {
        let (code, body) = self.get("/metrics").expect("the metrics are served");
        assert_eq!(code, 200);
        body.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    /// The sum of the counter's series, over its labels.
    pub fn metric(&self, name: &str) -> u64 {
        let of = |line: &String| {
            let rest = line.strip_prefix(name)?;
            rest.starts_with(['{', ' ']).then(|| rest.rsplit(' ').next()?.parse::<u64>().ok()).flatten()
        };
        self.series().iter().filter_map(of).sum()
    }

    /// The sum of the counter's series that have this label.
    pub fn metric_with(&self, name: &str, label: &str) -> u64 {
        let of = |line: &String| {
            let labels = line.strip_prefix(name)?.strip_prefix('{')?;
            labels.contains(label).then(|| labels.rsplit(' ').next()?.parse::<u64>().ok()).flatten()
        };
        self.series().iter().filter_map(of).sum()
    }

    /// Resident memory, bytes.
    pub fn resident(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Open files.
    pub fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

enum Ask {
    ReleaseThreads,
    Stop,
}

/// The provisioner inside this process.
pub struct Inside {
    pub positions: Positions,
    pub overseer: OverseerHandle,
    pub fleet: fleet::FleetHandle,
    asks: mpsc::UnboundedSender<Ask>,
    thread: Option<JoinHandle<()>>,
}

impl Inside {
    async fn start(config: Config) -> Self {
        let (asks, mut asked) = mpsc::unbounded_channel();
        let (tell, told) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let options = RunOptions { watching: watched_closely(), ..RunOptions::default() };
                let app = App::start(&Arc::new(config), &options).expect("it starts");
                let parts = (app.positions().clone(), app.overseer().clone(), app.fleet().clone());
                assert!(tell.send(parts).is_ok());
                while let Some(Ask::ReleaseThreads) = asked.recv().await {
                    release_blocked_threads();
                }
                release_blocked_threads();
                app.stop().await;
            });
        });
        let (positions, overseer, fleet) = told.await.expect("it starts");
        Self { positions, overseer, fleet, asks, thread: Some(thread) }
    }

    /// Lets threads that were blocked by force go on.
    pub fn release_threads(&self) {
        let _ = self.asks.send(Ask::ReleaseThreads);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.asks.send(Ask::Stop);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the instance panicked");
        }
    }
}
