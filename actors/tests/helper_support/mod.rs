//! Small shell scripts as helpers, and what is needed to look at their processes. Each test binary uses its part of it.
#![allow(dead_code, reason = "shared by several test binaries, none of which uses all of it")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quartermaster_actors::helper::{Execution, HelperError, HelperSettings, Orphans, execute};
use quartermaster_proto::helper::HelperReply;
use tempfile::TempDir;

/// A helper script in a directory of its own.
pub struct Script {
    pub dir: TempDir,
    pub settings: HelperSettings,
}

/// What one run showed.
pub struct Seen {
    pub execution: Result<Execution, HelperError>,
    pub result: Result<HelperReply, HelperError>,
    pub said: Vec<String>,
    pub took: Duration,
}

impl Seen {
    /// The error with its sources, or "answered".
    pub fn error(&self) -> String {
        self.result.as_ref().err().map_or("answered".to_owned(), HelperError::chain)
    }
}

/// A shell script with short limits: 5 s (so that a busy machine does not matter where the deadline is not the subject), a grace
/// of 500 ms.
pub fn script(text: &str) -> Script {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("helper.sh");
    write_program(&path, &format!("#!/bin/sh\n{text}\n"));
    let mut settings = HelperSettings::new(path.to_str().unwrap(), Vec::new());
    settings.timeout = Duration::from_secs(5);
    settings.grace = Duration::from_millis(500);
    settings.pipe_grace = Duration::from_millis(100);
    settings.environment.push(("HELPER_DIR".into(), dir.path().into()));
    Script { dir, settings }
}

pub fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Script {
    /// The same with this deadline, for tests in which it passes.
    pub fn within(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs it once, without adopting anything.
    pub async fn run(&self, input: &[u8]) -> Seen {
        let mut said = Vec::new();
        let start = Instant::now();
        let execution = execute(&self.settings, &Orphans::unadopted(), input, |line| said.push(line)).await;
        let took = start.elapsed();
        let (execution, result) = match execution {
            Ok(execution) => {
                let result = execution.reply(&self.settings);
                (Ok(execution), result)
            }
            Err(error) => (Err(HelperError::Lost), Err(error)),
        };
        Seen { execution, result, said, took }
    }
}

/// Pids of live (not defunct) processes whose environment says they were started for the script in `dir`.
pub fn alive_in(dir: &Path) -> Vec<i32> {
    let wanted = format!("HELPER_DIR={}", dir.display());
    all_processes()
        .into_iter()
        .filter(|(pid, state)| {
            *state != 'Z'
                && fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|env| env.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
        })
        .map(|(pid, _)| pid)
        .collect()
}

/// Every process and its state.
pub fn all_processes() -> BTreeMap<i32, char> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, state_of(pid)?)))
        .collect()
}

fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// All children of this process with their states, whichever thread they belong to.
pub fn children() -> BTreeMap<i32, char> {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids: Vec<i32> = lists
        .flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    pids.into_iter().filter_map(|pid| Some((pid, state_of(pid)?))).collect()
}

/// Children of this process that have exited and were not reaped.
pub fn defunct_children() -> usize {
    children().values().filter(|state| **state == 'Z').count()
}

/// How many file descriptors this process has open.
pub fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits until `done` says so. The system offers no event for the end of a process that is not our child, hence the polling; the
/// limit is only there so that a failing test ends.
pub async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < limit, "{what}: not within 20 s");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
