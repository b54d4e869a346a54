//! What the runner is told once, at start.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::child::allowed_environment;

/// The time limit of one run when nothing else is set, which is the peer's fixed limit (seed 000, "The child process").
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a process group has between TERM and KILL.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(1);
/// How long an exited helper's output is waited for while something it started still holds the pipe.
pub const DEFAULT_PIPE_GRACE: Duration = Duration::from_millis(200);
/// The most a helper may write to standard output, in bytes.
pub const DEFAULT_MAX_STDOUT: usize = 16 * 1024 * 1024;
/// The variables a helper gets of the daemon's environment; a name that ends in `*` stands for all with that prefix.
pub const DEFAULT_ENVIRONMENT: [&str; 5] = ["PATH", "LANG", "HOME", "TZ", "HELPER_*"];

/// Everything the runner has to know. Plain data: reading the process's own environment is the caller's part, so that it
/// happens once.
#[derive(Debug, Clone)]
pub struct HelperSettings {
    /// The program (a path, or a name looked up in the helper's PATH), as configured.
    pub program: String,
    /// Its arguments, already split. No secret ever goes here: a command line is readable by everybody on the machine.
    pub arguments: Vec<String>,
    /// How many helpers run at once (`workers`).
    pub slots: NonZeroUsize,
    /// How many may wait for a slot; the next one is refused.
    pub queue: usize,
    /// The limit of one run, from the moment its slot was taken.
    pub timeout: Duration,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// How long the output of a helper that has exited is waited for while a process it started holds the pipe.
    pub pipe_grace: Duration,
    /// The most it may write to standard output, in bytes.
    pub max_stdout: usize,
    /// The whole environment of the helper: nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
}

impl HelperSettings {
    /// Settings with every limit at its default: one slot, a queue of 1,024, the environment this process would pass on.
    pub fn new(program: impl Into<String>, arguments: Vec<String>) -> Self {
        Self {
            program: program.into(),
            arguments,
            slots: NonZeroUsize::MIN,
            queue: 1_024,
            timeout: DEFAULT_TIMEOUT,
            grace: DEFAULT_GRACE,
            pipe_grace: DEFAULT_PIPE_GRACE,
            max_stdout: DEFAULT_MAX_STDOUT,
            environment: allowed_environment(std::env::vars_os(), &DEFAULT_ENVIRONMENT),
        }
    }
}
