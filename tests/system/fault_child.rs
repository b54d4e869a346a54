//! The provisioner as a process of its own that, beside its work, ends parts of itself when told to.

use std::fs;
use std::io::{BufRead as _, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::dev::ToEnvelope;
use actix::{Actor, Handler};
use quartermaster::app::{App, Pace, Positions, RunOptions};
use quartermaster::config::{LogConfig, LogLevel, LogTarget, load};
use quartermaster::machine::surroundings;
use quartermaster::telemetry::{self, LogFormat};
use quartermaster_actors::fleet::ForceHosts;
use quartermaster_actors::link::AgentDeadlines;
use quartermaster_actors::supervise::{Ending, Force, Slot};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use super::prove_site::watched_closely;

const CHILD_FILES: &str = "QM_FAULT_FILES";
/// As long as the shipped unit gives it.
const STOP_LIMIT: Duration = Duration::from_mins(4);

/// The parts that can be told to end. The hosts are those in flight.
pub const PARTS: [&str; 8] = ["link", "fleet", "helper", "vault", "discovery", "control", "metrics", "hosts"];
/// The ways in which they end. Blocked threads are not among them: they end with the process only.
pub const ENDINGS: [Ending; 4] = [Ending::Stop, Ending::Panic, Ending::PanicInFuture, Ending::Hang];

/// Not a test by itself: others run it in a process of its own.
#[test]
fn process_that_provisions() {
    let Ok(files) = std::env::var(CHILD_FILES).map(PathBuf::from) else { return };
    let log = LogConfig { target: LogTarget::Stderr, level: LogLevel::Info };
    telemetry::init(&log, Some(LogFormat::Text)).unwrap();
    let around = surroundings();
    let loaded = load(&files.join("provisioner.yaml"), Some(&files.join("choria.cfg")), &around);
    let mut config = loaded.usable().unwrap().0;
    // Many rounds in little time: what really takes minutes takes seconds here.
    config.interval = Duration::from_secs(2);
    config.retry.first = Duration::from_millis(300);
    config.retry.cap = Duration::from_secs(1);
    config.broker.connect_timeout = Duration::from_secs(1);
    config.broker.discovery_timeout = Duration::from_secs(1);
    let pace = Pace {
        ping_interval: Duration::from_millis(250),
        backoff_scale: 0.02,
        deadlines: AgentDeadlines { provision: Duration::from_secs(2), other: Duration::from_secs(2) },
        lost_grace: Duration::from_millis(500),
    };
    let options = RunOptions { watching: watched_closely(), pace, ..RunOptions::default() };
    let exit = actix_rt::System::new().block_on(async move {
        let app = App::start(&Arc::new(config), &options).unwrap();
        let at = app.positions().clone();
        std::thread::spawn(move || obey(&at));
        app.serve().await
    });
    std::process::exit(i32::from(exit.code()));
}

/// Reads orders until nobody is there to give any; then nobody wants this process.
fn obey(at: &Positions) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Some((part, ending)) = line.split_once(' ') else { continue };
        let Some(ending) = ENDINGS.into_iter().find(|known| format!("{known:?}") == ending) else { continue };
        match part {
            "link" => strike(&at.link, ending),
            "fleet" => strike(&at.fleet, ending),
            "helper" => strike(&at.helper, ending),
            "vault" => strike(&at.vault, ending),
            "discovery" => strike(&at.discovery, ending),
            "control" => strike(&at.control, ending),
            "metrics" => strike(&at.metrics, ending),
            _ => {
                if let Some(keeper) = at.fleet.addr() {
                    keeper.do_send(ForceHosts { ending, most: 3 });
                }
            }
        }
    }
    std::process::exit(99);
}

/// Whoever is in the position ends so; nobody may be there, since others were hit before.
fn strike<A>(slot: &Slot<A>, ending: Ending)
where
    A: Actor + Handler<Force>,
    A::Context: ToEnvelope<A, Force>,
{
    if let Some(addr) = slot.addr() {
        addr.do_send(Force(ending));
    }
}

/// Which program a provisioner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The library's, in a child of the tests that obeys orders, and in little time: see [`process_that_provisions`].
    Obeying,
    /// `quartermaster run`, as it is shipped: nothing in it can be told to end, and it has the patience of every day.
    Shipped,
}

/// The running process, killed when dropped.
pub struct Provisioner {
    child: Child,
    orders: Option<ChildStdin>,
    monitor: u16,
    log: PathBuf,
}

/// What a process holds on to.
#[derive(Debug, Clone, Copy)]
pub struct Held {
    pub files: usize,
    pub threads: usize,
    pub children: usize,
    /// Bytes of memory.
    pub resident: u64,
}

impl Provisioner {
    /// Starts it with the files in `dir`; it listens for web requests on `monitor`.
    pub fn start(program: Program, dir: &Path, monitor: u16, log: &Path) -> Self {
        let errors = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = match program {
            Program::Obeying => {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["--exact", "fault_child::process_that_provisions", "--nocapture"]);
                command.env(CHILD_FILES, dir).stdin(Stdio::piped());
                command
            }
            Program::Shipped => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
                command.arg("run").arg("--config").arg(dir.join("provisioner.yaml"));
                command.arg("--choria-config").arg(dir.join("choria.cfg")).stdin(Stdio::null());
                command
            }
        };
        let mut child = command.stdout(Stdio::null()).stderr(errors).process_group(0).spawn().unwrap();
        let orders = child.stdin.take();
        Self { child, orders, monitor, log: log.to_owned() }
    }

    /// Whether parts of it can be told to end.
    pub const fn obeys(&self) -> bool {
        self.orders.is_some()
    }

    /// Ends a part of it, if it obeys and has not just ended as a whole; whoever minds that looks at [`Self::ended`].
    pub fn strike(&mut self, part: &str, ending: Ending) {
        if let Some(orders) = &mut self.orders {
            let _ = writeln!(orders, "{part} {ending:?}");
        }
    }

    /// SIGKILL, to it alone: helpers that run are left to themselves.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM, and its end. It stays for a server between configure and restart, whose reply may have been lost, until all tries
    /// of that call are over.
    pub async fn stop(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let end = Instant::now() + STOP_LIMIT;
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            assert!(Instant::now() < end, "the provisioner does not stop:\n{}", self.tail());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How it ended, once it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    pub fn assert_alive(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the provisioner has ended ({ended:?}):\n{}", self.tail());
    }

    /// The end of its log.
    pub fn tail(&self) -> String {
        let log = String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    /// Its status page; none while it does not answer.
    pub fn status(&self) -> Option<Value> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.monitor)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        write!(stream, "GET /api/v1/status HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Whether it is connected, as far as it says.
    pub fn is_connected(&self) -> bool {
        self.status().is_some_and(|status| status["link"]["connected"] == true)
    }

    /// Kills up to `most` of its children, which are helpers.
    pub fn kill_helpers(&self, most: usize) -> usize {
        let victims: Vec<i32> = children(self.child.id()).into_iter().take(most).collect();
        for victim in &victims {
            let _ = Pid::from_raw(*victim).map(|pid| kill_process(pid, Signal::KILL));
        }
        victims.len()
    }

    pub fn held(&self) -> Held {
        let pid = self.child.id();
        let count = |what| fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().count();
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        Held {
            files: count("fd"),
            threads: count("task"),
            children: children(pid).len(),
            resident: kilobytes * 1024,
        }
    }
}

impl Drop for Provisioner {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        for helper in children(self.child.id()) {
            let _ = Pid::from_raw(helper).map(|pid| kill_process(pid, Signal::KILL));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes whose parent this one is.
fn children(parent: u32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let child = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name, in brackets, may hold anything; state and parent follow it.
        let of = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        (of.parse() == Ok(parent)).then_some(pid)
    };
    processes.filter_map(child).collect()
}
