//! One child process and its group: started, signalled, reaped. Whoever lets go of a [`Leader`] early has killed the group.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep};

use super::launch::Launch;
use super::orphans::{OwnChild, RunMark};

/// The variable that marks every process of a run, so that one that left the group can still be told.
pub const MARK: &str = "QUARTERMASTER_RUN";

/// A busy program file or a full process table is often free again at once.
const START_RETRIES: u32 = 6;
const FIRST_START_RETRY: Duration = Duration::from_millis(10);
/// How often an exit is looked for on a kernel without pidfd (before Linux 5.3).
const POLL: Duration = Duration::from_millis(10);

/// The parent's ends of the three pipes.
#[derive(Debug)]
pub struct Pipes {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: ChildStdout,
    /// What it complains.
    pub stderr: ChildStderr,
}

/// The process we started: leader of its own group, which bears its number. Until it is reaped the number cannot come to
/// mean another group, so signals go to the group only before that.
#[derive(Debug)]
pub struct Leader {
    pid: Pid,
    /// Readable once the process has exited. Nothing is ever read from it: the runtime's pipe type is the one that may be made
    /// of any descriptor without unsafe code, and only its readiness is asked for.
    exit: Option<pipe::Receiver>,
    /// Taken when reaped.
    child: Option<Child>,
    own: Option<OwnChild>,
}

impl Leader {
    /// Starts the process. "Text file busy" (somebody is just replacing the program) and a full process table are tried again
    /// for a moment, but not beyond `deadline`.
    pub async fn start(launch: &Launch, mark: &RunMark, deadline: Instant) -> io::Result<(Self, Pipes)> {
        let mut wait = FIRST_START_RETRY;
        for _ in 0..START_RETRIES {
            match Self::start_once(launch, mark) {
                Err(error) if passes_soon(&error) && Instant::now() + wait < deadline => sleep(wait).await,
                result => return result,
            }
            wait *= 2;
        }
        Self::start_once(launch, mark)
    }

    fn start_once(launch: &Launch, mark: &RunMark) -> io::Result<(Self, Pipes)> {
        let mut command = Command::new(&launch.program);
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        command
            .args(&launch.arguments)
            .env_clear()
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .env(MARK, mark.text())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut child, own) = mark.start(|| command.spawn())?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pid = Pid::from_child(&child);
        // From here on an early return kills what was started.
        let mut leader = Self { pid, exit: None, child: Some(child), own };
        leader.exit = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(fd) => Some(pipe::Receiver::from_owned_fd_unchecked(fd)?),
            Err(_) => None,
        };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("a pipe to the process is missing"));
        };
        let pipes = Pipes {
            stdin: ChildStdin::from_std(stdin)?,
            stdout: ChildStdout::from_std(stdout)?,
            stderr: ChildStderr::from_std(stderr)?,
        };
        Ok((leader, pipes))
    }

    /// Waits until the process has exited and leaves it there to be reaped. Says whether its exit status was 0. May be dropped
    /// and called again.
    pub async fn exited(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if let Some(exit) = &self.exit {
            exit.readable().await?;
        }
        loop {
            if let Some(status) = waitid(WaitId::Pid(self.pid), options)? {
                return Ok(status.exit_status() == Some(0));
            }
            sleep(POLL).await;
        }
    }

    /// How an exited process ended, in words: `exited with status 3`.
    pub fn how_it_ended(&self) -> String {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::Pid(self.pid), options).ok().flatten();
        match status.map(|status| (status.exit_status(), status.terminating_signal())) {
            Some((Some(code), _)) => format!("exited with status {code}"),
            Some((None, Some(signal))) => format!("was killed by signal {signal}"),
            _ => "ended".to_owned(),
        }
    }

    /// The number of the process and of its group.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends `signal` to every process of the group.
    pub fn signal(&self, signal: Signal) {
        if self.child.is_some() {
            // The one expected error is that nobody is left.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Kills what is left of the group and reaps the process, if it has exited; else it is reaped in the background, once it
    /// has, and there is no status.
    pub fn end(mut self) -> io::Result<Option<ExitStatus>> {
        self.signal(Signal::KILL);
        let Some(mut child) = self.child.take() else { return Ok(None) };
        let status = child.try_wait();
        if !matches!(status, Ok(Some(_))) {
            reap_later(child, self.own.take());
        }
        status
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(mut child) = self.child.take()
            && !matches!(child.try_wait(), Ok(Some(_)))
        {
            reap_later(child, self.own.take());
        }
    }
}

/// A killed process needs a moment to die, and one in a hung file system more. A thread of its own waits for it, because the
/// runtime may be just ending too.
fn reap_later(mut child: Child, own: Option<OwnChild>) {
    let wait = move || {
        let _ = child.wait();
        drop(own);
    };
    if let Err(error) =
        std::thread::Builder::new().name("child-reaper".into()).stack_size(64 * 1024).spawn(wait)
    {
        tracing::warn!(%error, "no thread to wait for a killed process; it stays defunct until this process ends");
    }
}

fn passes_soon(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::TXTBSY | Errno::AGAIN))
}
