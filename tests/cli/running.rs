//! A running instance: its log file and its end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::site::{BINARY, CFG, Held, Site, YAML};

/// A running instance whose log goes to `q.log`; it looks for a broker that is not there.
struct Running {
    child: Held,
    log: PathBuf,
}

impl Running {
    fn start(site: &Site) -> Self {
        // The umask that hides nothing.
        let line =
            format!("umask 000; exec {BINARY} run --config p.yaml --choria-config choria.cfg --pid p.pid");
        let child = Held(site.command(Path::new("/bin/sh"), &["-c", &line]).spawn().unwrap());
        let running = Self { child, log: site.path("q.log") };
        until("the log has lines", || running.lines(&running.log) > 0);
        running
    }

    #[expect(clippy::unused_self, reason = "reads as a question to the instance")]
    fn lines(&self, log: &Path) -> usize {
        fs::read_to_string(log).unwrap_or_default().lines().count()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

/// Waits for what another process does; fails after a minute.
#[track_caller]
fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_mins(1), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn with_log() -> Site {
    Site::new(&format!("{YAML}logfile: FOLDER/q.log\n"), CFG)
}

#[test]
fn a_log_file_is_private_json_without_secrets_whatever_the_umask() {
    let site = with_log();
    let mut running = Running::start(&site);
    until("the instance is up", || site.path("p.pid").exists());
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(
        running.child.0.wait().unwrap().code(),
        Some(0),
        "{}",
        fs::read_to_string(&running.log).unwrap()
    );
    assert!(!site.path("p.pid").exists());
    let mode = fs::metadata(&running.log).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640, "{mode:o}");
    let text = fs::read_to_string(&running.log).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        for key in ["time", "level", "msg", "component"] {
            assert!(line[key].is_string(), "{key}: {line}");
        }
    }
}

#[test]
fn a_hangup_opens_the_log_anew() {
    let site = with_log();
    let running = Running::start(&site);
    until("the instance is up", || site.path("p.pid").exists());
    fs::rename(&running.log, site.path("q.log.1")).unwrap();
    running.signal(rustix::process::Signal::HUP);
    until("a new log has lines", || running.lines(&running.log) > 0);
    assert!(
        fs::read_to_string(&running.log)
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .contains("Opened the log file anew")
    );
}
