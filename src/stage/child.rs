//! Child processes of a demo or a measurement: each in a process group of its own, each ended by its pid, whatever happens.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, ChildStdout, Command};

use super::usage::Usage;

/// How much of a child's log is kept for a failure.
const TAIL_BYTES: u64 = 64 * 1024;

/// Why a child could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    /// Its log could not be created.
    #[error("could not create the log {}", path.display())]
    Log {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// It could not be started.
    #[error("could not start {name}")]
    Start {
        name: &'static str,
        #[source]
        source: std::io::Error,
    },
}

/// A running child. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Running {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts `command`. Its stderr, and its stdout unless that is read by us, go to a log in `dir`.
    pub(crate) fn start(
        name: &'static str,
        mut command: Command,
        dir: &Path,
        piped: bool,
    ) -> Result<Self, ChildError> {
        let log = dir.join(format!("{name}.log"));
        let failed = |source| ChildError::Log { path: log.clone(), source };
        let file = File::create(&log).map_err(failed)?;
        command.stderr(file.try_clone().map_err(failed)?).stdin(std::process::Stdio::null());
        if piped {
            command.stdout(std::process::Stdio::piped());
        } else {
            command.stdout(file);
        }
        // Ctrl-C at the terminal shall reach us alone, who then end them in the right order.
        command.process_group(0).kill_on_drop(true);
        let child = command.spawn().map_err(|source| ChildError::Start { name, source })?;
        Ok(Self { name, child, log })
    }

    /// Its stdout, once, if it was started with a pipe.
    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Completes when it ends, with how it ended as text.
    pub(crate) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => format!("{} ended with {status}", self.name),
            Err(error) => format!("{} cannot be waited for: {error}", self.name),
        }
    }

    /// Asks it to end, and kills it when it has not within `grace`.
    pub(crate) async fn stop(&mut self, grace: Duration) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { return };
        // It may just have ended by itself; then there is nothing left to ask.
        let _ = kill_process(pid, Signal::TERM);
        if tokio::time::timeout(grace, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }

    /// Its number, until it has ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// The most memory it has held at once so far, in MiB; none once it has ended.
    pub(crate) fn peak_memory_mib(&self) -> Option<u64> {
        self.usage()?.peak_kib.map(|kib| kib.div_ceil(1024))
    }

    /// What it has used so far; none once it has ended.
    pub(crate) fn usage(&self) -> Option<Usage> {
        Usage::of(self.pid()?)
    }

    /// The last lines of its log.
    pub(crate) fn tail(&self, lines: usize) -> Vec<String> {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.log)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let text = read().unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all.iter().skip(all.len().saturating_sub(lines)).map(|line| (*line).to_owned()).collect()
    }
}
