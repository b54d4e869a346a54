//! What the overseer publishes: read by the status page, the health checks and the tests.

use std::time::Duration;

use super::{ChildId, ExitCause};

/// Where one child stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildState {
    /// Started, has not yet answered a ping.
    Starting,
    /// Alive at the last ping.
    Running,
    /// Ended; the next life begins after the delay, counted from the ending.
    Waiting {
        /// The delay the policy asked for.
        delay: Duration,
    },
    /// Its owner is down; it starts with the owner.
    OwnerDown,
    /// Ended as it should, or stopped with the process.
    Retired,
    /// Cannot be kept alive; the process ends.
    GaveUp,
}

impl ChildState {
    /// The word used on the status page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Waiting { .. } => "waiting",
            Self::OwnerDown => "owner down",
            Self::Retired => "retired",
            Self::GaveUp => "gave up",
        }
    }
}

/// One child, as published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildSnapshot {
    /// Its position and how many lives it has had.
    pub child: ChildId,
    /// Where it stands.
    pub state: ChildState,
    /// Lives ended, in the order of [`ExitCause::ALL`].
    pub endings: [u64; 4],
    /// The sentence of the last decision; empty before the first.
    pub last_decision: String,
}

/// All children, in the order they are started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SupervisionSnapshot {
    /// The children.
    pub children: Vec<ChildSnapshot>,
}

impl SupervisionSnapshot {
    /// The child with this name.
    pub fn child(&self, name: &str) -> Option<&ChildSnapshot> {
        self.children.iter().find(|child| child.child.name == name)
    }

    /// True when every child is running or has properly retired.
    pub fn all_running(&self) -> bool {
        self.children.iter().all(|c| matches!(c.state, ChildState::Running | ChildState::Retired))
    }
}

/// An ending and what was decided, for the log and the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorEnding {
    /// Which life.
    pub child: ChildId,
    /// How it ended.
    pub cause: ExitCause,
    /// What the owner decided, as a sentence.
    pub decision: String,
}
