//! What a service manager hears of `quartermaster engine`, `node` and `vault`, and what its journal gets: sockets of the test's stand in
//! for both. The broker is away all the while.

use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use super::super::support::eventually;
use super::shipped::{BINARY, run, text_of};

/// Where nobody listens.
const AWAY: &str = "127.0.0.1:1";

/// A program under a service manager, killed when dropped.
struct Managed {
    process: Child,
    told: UnixDatagram,
    heard: Vec<String>,
    journal: Option<JoinHandle<Vec<String>>>,
}

impl Managed {
    fn start(dir: &Path, arguments: &[&str]) -> Self {
        let path = dir.join("notify");
        let _ = std::fs::remove_file(&path);
        let told = UnixDatagram::bind(&path).unwrap();
        told.set_nonblocking(true).unwrap();
        let (ours, its) = UnixStream::pair().unwrap();
        let about = rustix::fs::fstat(&its).unwrap();
        let process = Command::new(BINARY)
            .args(arguments)
            .current_dir(dir)
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", "4000000")
            .env("JOURNAL_STREAM", format!("{}:{}", about.st_dev, about.st_ino))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(OwnedFd::from(its))
            .spawn()
            .unwrap();
        let journal =
            std::thread::spawn(move || BufReader::new(ours).lines().map_while(Result::ok).collect());
        Self { process, told, heard: Vec::new(), journal: Some(journal) }
    }

    /// Takes in what has arrived.
    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        while let Ok(length) = self.told.recv(&mut bytes) {
            self.heard.extend(std::str::from_utf8(&bytes[..length]).unwrap().lines().map(str::to_owned));
        }
    }

    /// Waits until something was heard that begins like this, as often as this.
    async fn hears(&mut self, times: usize, begin: &str) {
        eventually(begin, || {
            if let Some(ended) = self.process.try_wait().unwrap() {
                panic!("it ended: {ended} {:?}", self.ended());
            }
            self.listen();
            self.heard.iter().filter(|line| line.starts_with(begin)).count() >= times
        })
        .await;
    }

    /// Its exit code once it has ended, and what the journal got.
    fn ended(&mut self) -> (Option<i32>, Vec<String>) {
        let code = self.process.wait().unwrap().code();
        (code, self.journal.take().unwrap().join().unwrap())
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[actix::test]
async fn the_node_sides_programs_tell_that_they_are_ready_and_live_and_their_lines_have_priorities() {
    let dir = tempfile::tempdir().unwrap();
    let site = dir.path().join("mesh").to_str().unwrap().to_owned();
    text_of(&run(BINARY, &["mesh", "init", "--site", &site]));
    text_of(&run(BINARY, &["mesh", "node", "add", "web1", "--site", &site]));
    let account = |name: &str| format!("{site}/accounts/{name}");
    let key = dir.path().join("vault.key");
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let own = rustix::process::geteuid().as_raw().to_string();
    let engine = ["engine", "--node", "web1", "--state", "e", "--socket", "e.sock", "--client", &own];
    let node = ["node", "--node", "web1", "--state", "n", "--socket", "e.sock", "--allow-root"];
    let vault = ["vault", "--store", "s", "--key-file", "vault.key", "--audit", "a", "--socket", "v.sock"];
    for (arguments, credentials, status, host) in [
        (&engine[..], account("engine.web1"), "STATUS=waits for the declarations", " host=web1"),
        (&node[..], account("provisioner.web1"), "STATUS=0 of 0 modules applied", " host=web1"),
        (&vault[..], account("mesh-vault"), "STATUS=waits for the assignments", ""),
    ] {
        let bus = ["--servers", AWAY, "--credentials", &credentials];
        let mut managed = Managed::start(dir.path(), &[arguments, &bus].concat());
        managed.hears(1, "READY=1").await;
        managed.hears(1, status).await;
        managed.hears(2, "WATCHDOG=1").await;
        kill_process(Pid::from_child(&managed.process), Signal::TERM).unwrap();
        let (code, journal) = managed.ended();
        assert_eq!(code, Some(0), "{journal:#?}");
        managed.listen();
        assert!(managed.heard.contains(&"STOPPING=1".to_owned()), "{:?}", managed.heard);
        let has_priority = |line: &String| ["<3>", "<4>", "<6>", "<7>"].contains(&&line[..3]);
        assert!(!journal.is_empty() && journal.iter().all(has_priority), "{journal:#?}");
        let warning = journal.iter().find(|line| line.contains("is pinned"));
        assert!(
            warning.is_some_and(|line| line.starts_with("<4>WARNING ") && line.contains(host)),
            "{journal:#?}"
        );
    }
}
