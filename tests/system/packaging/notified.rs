//! What a service manager hears of `quartermaster run`: a socket of the test's stands in for it.

use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quartermaster::emulate::{NetworkFiles, PrepareSettings, prepare};
use rustix::process::Signal;
use tempfile::TempDir;

use super::super::support::{Broker, BrokerOptions, Daemon, append, eventually, skip};
use super::shipped::has;

/// The overseer gives a sign of life every two seconds; this is three of them.
const THREE_BEATS: Duration = Duration::from_secs(6);

/// A provisioner and what its service manager hears.
struct Managed {
    daemon: Daemon,
    socket: UnixDatagram,
    heard: Vec<String>,
    _broker: Broker,
    files: NetworkFiles,
    dir: TempDir,
}

impl Managed {
    fn start(environment: &[(&str, &str)]) -> Option<Self> {
        let broker = BrokerOptions::new().start()?;
        let dir = tempfile::tempdir().unwrap();
        let settings =
            PrepareSettings { broker: format!("127.0.0.1:{}", broker.port()), ..PrepareSettings::default() };
        let files = prepare(dir.path(), &settings).unwrap().plain;
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let all = [&[("NOTIFY_SOCKET", path.to_str().unwrap())], environment].concat();
        let daemon = Daemon::start_with(&files, &["--log-format", "json"], &all);
        Some(Self { daemon, socket, heard: Vec::new(), _broker: broker, files, dir })
    }

    /// Takes in what has arrived.
    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            self.heard.extend(std::str::from_utf8(&bytes[..length]).unwrap().lines().map(str::to_owned));
        }
    }

    /// Waits until a message that fits has arrived, and forgets what came before it.
    async fn hears(&mut self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let mut found = None;
        eventually(what, || {
            self.daemon.assert_alive();
            self.listen();
            found = self.heard.iter().position(|message| fits(message));
            found.is_some()
        })
        .await;
        let rest = self.heard.split_off(found.unwrap() + 1);
        std::mem::replace(&mut self.heard, rest).pop().unwrap()
    }

    /// Messages that fit and arrive within so long.
    async fn count_for(&mut self, time: Duration, fits: impl Fn(&str) -> bool) -> usize {
        let end = Instant::now() + time;
        self.heard.clear();
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.listen();
        }
        self.heard.iter().filter(|message| fits(message)).count()
    }
}

fn is_ping(message: &str) -> bool {
    message == "WATCHDOG=1"
}

#[actix::test]
async fn the_service_manager_hears_of_readiness_work_and_the_end() {
    let Some(mut managed) = Managed::start(&[]) else { return };
    managed.hears("it is ready", |message| message == "READY=1").await;
    let status =
        managed.hears("what it does", |m| m.starts_with("STATUS=") && m.contains("; connected;")).await;
    assert_eq!(status, "STATUS=working; connected; 0 in flight, 0 waiting, 0 provisioned, 0 failed");
    managed.daemon.signal(Signal::TERM);
    let mut stopping = false;
    eventually("it says that it stops", || {
        managed.listen();
        stopping |= managed.heard.iter().any(|message| message == "STOPPING=1");
        stopping
    })
    .await;
    assert_eq!(managed.daemon.ended().await.code(), Some(0));
    assert!(!managed.heard.iter().any(|message| is_ping(message)), "nobody asked for signs of life");
}

#[actix::test]
async fn a_hangup_is_a_reload_and_ends_nothing_even_without_a_log_file() {
    let Some(mut managed) = Managed::start(&[]) else { return };
    managed.hears("it is ready", |message| message == "READY=1").await;
    managed.daemon.signal(Signal::HUP);
    managed.hears("it reloads", |message| message == "RELOADING=1").await;
    managed.hears("since when", |message| message.starts_with("MONOTONIC_USEC=")).await;
    managed.hears("it is ready again", |message| message == "READY=1").await;
    managed.daemon.assert_alive();
}

#[actix::test]
async fn a_status_of_many_lines_is_one_line() {
    let Some(mut managed) = Managed::start(&[]) else { return };
    drop(std::mem::replace(&mut managed.daemon, {
        append(&managed.files.config, "site: \"x\\nREADY=0\"\n");
        let socket = managed.dir.path().join("notify");
        Daemon::start_with(&managed.files, &[], &[("NOTIFY_SOCKET", socket.to_str().unwrap())])
    }));
    managed.hears("what it does", |message| message.starts_with("STATUS=")).await;
    assert!(!managed.heard.iter().any(|message| message == "READY=0"));
}

/// Keeps one thread of a process from running for as long as it lives.
struct Frozen(Child);

impl Frozen {
    /// Seizes the thread as a debugger would, and stops it alone.
    fn thread(id: u32) -> Self {
        const SCRIPT: &str = "import ctypes, sys\n\
            libc = ctypes.CDLL(None, use_errno=True)\n\
            for request in (0x4206, 0x4207):\n\
            \x20   if libc.ptrace(request, int(sys.argv[1]), None, None) != 0: sys.exit(ctypes.get_errno())\n\
            print('frozen', flush=True)\n\
            sys.stdin.read()\n";
        let mut child = Command::new("python3")
            .args(["-c", SCRIPT, &id.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let said = std::io::BufRead::read_line(
            &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
            &mut line,
        );
        assert!(said.is_ok() && line == "frozen\n", "the thread could not be stopped: {:?}", child.wait());
        Self(child)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The overseer's thread: the first of the actors' that was started.
fn overseer_of(pid: u32) -> u32 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let actors = threads.filter(|thread| {
        std::fs::read_to_string(thread.path().join("comm"))
            .is_ok_and(|name| name.starts_with("actix-rt|system"))
    });
    actors.filter_map(|thread| thread.file_name().to_str()?.parse().ok()).min().expect("it has actors")
}

#[actix::test]
async fn signs_of_life_are_the_overseers_and_stop_when_it_hangs() {
    if !has("python3") {
        return skip("a hanging overseer", "there is no python3 to stop its thread with");
    }
    let Some(mut managed) = Managed::start(&[("WATCHDOG_USEC", "4000000")]) else { return };
    managed.hears("it is ready", |message| message == "READY=1").await;
    managed.hears("a sign of life", is_ping).await;
    managed.hears("another one", is_ping).await;
    let frozen = Frozen::thread(overseer_of(managed.daemon.pid()));
    // One beat may have been under way.
    managed.count_for(Duration::from_secs(2), is_ping).await;
    assert_eq!(managed.count_for(THREE_BEATS, is_ping).await, 0, "the process as a whole still runs");
    managed.daemon.assert_alive();
    drop(frozen);
    managed.hears("signs of life come again", is_ping).await;
}

#[actix::test]
async fn a_watchdog_meant_for_another_process_is_not_fed() {
    let environment = [("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "1")];
    let Some(mut managed) = Managed::start(&environment) else { return };
    managed.hears("it is ready", |message| message == "READY=1").await;
    managed.hears("what it does", |message| message.contains("; connected;")).await;
    assert!(!managed.heard.iter().any(|message| is_ping(message)));
}
