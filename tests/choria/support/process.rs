//! A child process whose end is ours to bring about.
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::wait_for;

/// Killed and reaped on drop. Its output is in a file, to be looked at while it runs and after a failure. Its standard input
/// stays open as long as this value lives, which is how the lab's programs know that somebody still wants them.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with both outputs in `log`.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let out = File::create(log).expect("a log file");
        let err = out.try_clone().expect("a log file");
        let child =
            command.stdin(Stdio::piped()).stdout(out).stderr(err).spawn().expect("the program starts");
        Self { child, log: log.to_owned() }
    }

    /// Starts `command` with only standard error in `log`; standard output is for the caller to read.
    pub fn start_piped(command: &mut Command, log: &Path) -> (Self, ChildStdout) {
        let err = File::create(log).expect("a log file");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(err)
            .spawn()
            .expect("the program starts");
        let out = child.stdout.take().expect("a pipe");
        (Self { child, log: log.to_owned() }, out)
    }

    /// All it has printed so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the state of a child")
    }

    /// Waits for its own end.
    ///
    /// # Panics
    /// When it still runs after `limit`.
    pub fn wait(&mut self, what: &str, limit: Duration) -> ExitStatus {
        wait_for(what, limit, || self.ended())
    }

    /// Asks it to stop, as a service manager would.
    pub fn terminate(&self) {
        let pid =
            i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("the child takes a signal");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
