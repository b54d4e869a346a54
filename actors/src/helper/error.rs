//! Why a helper run gave no reply.

use std::io;
use std::time::Duration;

use quartermaster_proto::helper::HelperReplyError;

use crate::provider::CallError;

/// Why a helper run gave no reply. Every text names the helper; none holds anything the helper wrote to standard output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelperError {
    /// This instance is paused, by an operator or because another one leads; nothing was started.
    #[error("helper `{program}` was not started: this instance is paused")]
    Paused {
        /// The helper's path as configured.
        program: String,
    },
    /// All slots are taken and as many runs as allowed wait already.
    #[error("helper `{program}` was not started: {queued} runs are waiting already")]
    QueueFull {
        /// The helper's path as configured.
        program: String,
        /// How many wait.
        queued: usize,
    },
    /// There is no runner at the moment; its owner is restarting it.
    #[error("the helper runner is not running")]
    Down,
    /// The runner or this run ended without an answer; the helper, if it ran, was killed.
    #[error("the helper run was lost: the runner ended or failed under it")]
    Lost,
    /// The process could not be started.
    #[error("failed to start helper `{program}`")]
    Start {
        /// The helper's path as configured.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Its pipes or its end could not be watched.
    #[error("failed to follow helper `{program}`")]
    Follow {
        /// The helper's path as configured.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It did not end in time and was stopped with everything it started.
    #[error("helper `{program}` was stopped: it did not finish within {after:?}{}", said(.stderr))]
    TimedOut {
        /// The helper's path as configured.
        program: String,
        /// The limit.
        after: Duration,
        /// Its last lines on standard error.
        stderr: Vec<String>,
    },
    /// It wrote more than it may.
    #[error("helper `{program}` was stopped: it wrote more than {limit} bytes to standard output{}", said(.stderr))]
    TooMuchOutput {
        /// The helper's path as configured.
        program: String,
        /// The limit in bytes.
        limit: usize,
        /// Its last lines on standard error.
        stderr: Vec<String>,
    },
    /// It said itself that it failed.
    #[error("helper `{program}` exited with status {code}{}", said(.stderr))]
    Exited {
        /// The helper's path as configured.
        program: String,
        /// Its exit status, 1 to 255.
        code: i32,
        /// Its last lines on standard error.
        stderr: Vec<String>,
    },
    /// Something killed it that was not us.
    #[error("helper `{program}` was killed by signal {signal}{}", said(.stderr))]
    Killed {
        /// The helper's path as configured.
        program: String,
        /// The signal's number.
        signal: i32,
        /// Its last lines on standard error.
        stderr: Vec<String>,
    },
    /// It exited cleanly without writing anything.
    #[error("zero bytes received from helper `{program}`{}", said(.stderr))]
    Silent {
        /// The helper's path as configured.
        program: String,
        /// Its last lines on standard error.
        stderr: Vec<String>,
    },
    /// It is a provider, and its answer was an error, or none.
    #[error("helper `{program}` did not decide{}", said(.stderr))]
    Provider {
        /// The helper's path as configured.
        program: String,
        /// Its own error or the host's.
        #[source]
        source: CallError,
        /// The last lines of its process on standard error.
        stderr: Vec<String>,
    },
    /// What it wrote is no reply.
    #[error("the reply of helper `{program}` is not usable{}", said(.stderr))]
    Reply {
        /// The helper's path as configured.
        program: String,
        /// What is wrong with it: key path, expected and found type, or the offset.
        #[source]
        source: HelperReplyError,
        /// Its last lines on standard error.
        stderr: Vec<String>,
    },
}

/// Whether the same thing may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// After a while.
    Later,
    /// It cannot work until somebody changes something.
    Never,
}

impl HelperError {
    /// Whether the host may come again. A site repairs its helper, or the systems behind it, while we run; so no ending of a
    /// run condemns the host it was for.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::Paused { .. }
            | Self::QueueFull { .. }
            | Self::Down
            | Self::Lost
            | Self::Start { .. }
            | Self::Follow { .. }
            | Self::TimedOut { .. }
            | Self::TooMuchOutput { .. }
            | Self::Exited { .. }
            | Self::Killed { .. }
            | Self::Silent { .. }
            | Self::Provider { .. }
            | Self::Reply { .. } => Retry::Later,
        }
    }

    /// The error with all its sources, as one line.
    pub fn chain(&self) -> String {
        crate::text::causes(self)
    }

    /// The helper's last lines on standard error, oldest first; escaped and bounded.
    pub fn stderr(&self) -> &[String] {
        match self {
            Self::TimedOut { stderr, .. }
            | Self::TooMuchOutput { stderr, .. }
            | Self::Exited { stderr, .. }
            | Self::Killed { stderr, .. }
            | Self::Silent { stderr, .. }
            | Self::Provider { stderr, .. }
            | Self::Reply { stderr, .. } => stderr,
            Self::Paused { .. }
            | Self::QueueFull { .. }
            | Self::Down
            | Self::Lost
            | Self::Start { .. }
            | Self::Follow { .. } => &[],
        }
    }
}

/// The last line of standard error, as the end of an error text.
fn said(stderr: &[String]) -> String {
    stderr.last().map(|line| format!("; its last words: {line}")).unwrap_or_default()
}
