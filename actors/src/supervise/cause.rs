//! The endings an actor can have.

use std::fmt;

/// Why an actor ended. Closed: every ending has a counter and a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitCause {
    /// It stopped by itself or was asked to.
    Stopped,
    /// A handler or an actor future panicked.
    Panicked,
    /// It made no progress within the limit and was replaced; the old one may still be there, but nobody listens to it.
    Stuck,
    /// It said that it cannot go on, with a reason.
    Failed,
}

impl ExitCause {
    /// Every cause, in the order of the counters.
    pub const ALL: [Self; 4] = [Self::Stopped, Self::Panicked, Self::Stuck, Self::Failed];

    /// The word used in labels and sentences.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Panicked => "panicked",
            Self::Stuck => "stuck",
            Self::Failed => "failed",
        }
    }

    /// The position in [`ExitCause::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Stopped => 0,
            Self::Panicked => 1,
            Self::Stuck => 2,
            Self::Failed => 3,
        }
    }
}

impl fmt::Display for ExitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
