//! Commands: programs of one folder, run without a shell and with nothing of our environment.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::Told;

/// How long a command may run.
const LIMIT: Duration = Duration::from_mins(1);
/// How often a program that somebody is just writing is tried again, and how long after the last time.
const BUSY_TRIES: u32 = 25;
const BUSY_WAIT: Duration = Duration::from_millis(20);

/// The folder of the commands that may be run; without one, none may.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    folder: Option<PathBuf>,
    limit: Option<Duration>,
}

impl Commands {
    /// Commands of this folder.
    pub const fn below(folder: PathBuf) -> Self {
        Self { folder: Some(folder), limit: None }
    }

    /// With another limit than a minute.
    #[must_use]
    pub const fn limited(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Says why a command may not be run.
    fn refusal(&self, program: &str) -> Option<&'static str> {
        let Some(folder) = &self.folder else { return Some("the engine allows no commands") };
        let path = Path::new(program);
        let is_plain = !program.split('/').skip(1).any(|part| matches!(part, "" | "." | ".."));
        if !program.starts_with('/') || !is_plain {
            return Some("a command is a plain absolute path");
        }
        (path.parent() != Some(folder)).then_some("it does not lie in the folder of allowed commands")
    }

    /// Runs a command and waits for its end; its whole group is killed at the limit.
    pub(super) async fn run(&self, words: &[String]) -> Told {
        let Some((program, arguments)) = words.split_first() else {
            return Told::Failed("the command is empty".to_owned());
        };
        if let Some(why) = self.refusal(program) {
            return Told::Failed(why.to_owned());
        }
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir("/");
        run(command, self.limit.unwrap_or(LIMIT)).await
    }
}

/// Runs a prepared program to its end, in a group of its own that does not outlive this call.
pub(super) async fn run(mut command: Command, limit: Duration) -> Told {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).kill_on_drop(true);
    let child = match started(&mut command).await {
        Ok(child) => child,
        Err(error) => return Told::Failed(format!("it cannot be started: {error}")),
    };
    let mut group = Group::of(child);
    match tokio::time::timeout(limit, group.child.wait()).await {
        Ok(Ok(status)) if status.success() => Told::Done,
        Ok(Ok(status)) => Told::Failed(format!("it ended with {status}")),
        Ok(Err(error)) => Told::Failed(format!("its end could not be seen: {error}")),
        Err(_) => Told::Failed(format!("it was still running after {} s", limit.as_secs())),
    }
}

/// Starts it; while the file is open for writing somewhere, which passes when it has just been replaced, once more.
async fn started(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                tokio::time::sleep(BUSY_WAIT).await;
            }
            started => return started,
        }
    }
    command.spawn()
}

/// A child and whatever it started in its group, killed when this goes.
struct Group {
    child: Child,
    leader: Option<Pid>,
}

impl Group {
    fn of(child: Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { child, leader }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // An empty group is no error worth telling.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
