//! A program as a process of its own, with its log.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::eventually;

/// A running program, killed when dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    log: PathBuf,
    name: String,
}

impl Program {
    /// Starts it in this folder, which gets its log; several lives append to the same one.
    pub fn start(mut command: Command, dir: &Path, name: &str) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let log = dir.join(format!("{name}.log"));
        let output = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let also = output.try_clone().unwrap();
        let child =
            command.current_dir(dir).stdin(Stdio::null()).stdout(also).stderr(output).spawn().unwrap();
        Self { child, log, name: name.to_owned() }
    }

    /// Starts one of our own programs at its most talkative.
    pub fn quartermaster(
        verb: &str,
        arguments: &[String],
        environment: &[(String, String)],
        dir: &Path,
    ) -> Self {
        Self::quartermaster_after("", verb, arguments, environment, dir)
    }

    /// The same after a few words of shell. Core files of any size are allowed, as far as the test itself may have some.
    pub fn quartermaster_after(
        before: &str,
        verb: &str,
        arguments: &[String],
        environment: &[(String, String)],
        dir: &Path,
    ) -> Self {
        let own = env!("CARGO_BIN_EXE_quartermaster");
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -c unlimited 2>/dev/null; {before}exec \"$0\" \"$@\""))
            .arg(own);
        command.arg(verb).args(["--debug", "--log-format", "json"]).args(arguments);
        command.env("RUST_BACKTRACE", "1").envs(environment.iter().map(|(name, value)| (name, value)));
        Self::start(command, dir, verb)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything it, and earlier lives of it, wrote.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// True until it ends.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Fails unless it still runs.
    #[track_caller]
    pub fn assert_running(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "{} has ended ({ended:?}):\n{}", self.name, self.log());
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        let name = format!("the end of {}", self.name);
        eventually(&name, || self.child.try_wait().unwrap()).await
    }

    /// Asks it to stop and waits.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Also one that is stopped where it is.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let from = lines.len().saturating_sub(40);
            eprintln!("--- the last lines of {}:\n{}", self.name, lines[from..].join("\n"));
        }
    }
}
