//! What a host's cycle and its owner say to each other.

use std::fmt;
use std::sync::Arc;

use quartermaster_proto::helper::HelperReply;

/// A helper's decision, kept for the next cycle of a host that was busy, so that no helper run is wasted on it twice.
#[derive(Clone)]
pub struct Kept(pub(crate) Arc<HelperReply>);

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept(..)")
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Kept {}

/// How a cycle ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Configured and told to restart.
    Provisioned,
    /// Told to update itself; it comes back in provisioning mode with the new version.
    Updating,
    /// Told to shut down, as the helper asked.
    ShutDown {
        /// What the helper says about it, escaped and bounded.
        msg: String,
    },
    /// It is no longer in provisioning mode.
    AlreadyServing,
    /// The helper put it off.
    Deferred {
        /// The helper's words, bounded and free of control characters.
        msg: String,
    },
    /// Someone else holds its provisioning lock.
    Busy {
        /// The helper's decision, when it had been taken already.
        kept: Option<Kept>,
    },
    /// The instance was paused or is stopping; the host is as it was.
    Interrupted,
    /// Another instance of the cluster has the host; nothing was done here.
    Elsewhere,
    /// What providers did for it in an earlier cycle was taken back; it can begin anew.
    TakenBack,
    /// It failed.
    Failed {
        /// One of the fixed causes.
        cause: &'static str,
        /// The whole reason.
        error: String,
    },
}

impl Ending {
    /// The ending's name, as the journal keeps it and queries show it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Provisioned => "provisioned",
            Self::Updating => "updating",
            Self::ShutDown { .. } => "shut_down",
            Self::AlreadyServing => "already_serving",
            Self::Deferred { .. } => "deferred",
            Self::Busy { .. } => "busy",
            Self::Interrupted => "interrupted",
            Self::Elsewhere => "elsewhere",
            Self::TakenBack => "taken_back",
            Self::Failed { .. } => "failed",
        }
    }

    /// The fixed cause of a failure.
    pub const fn cause(&self) -> Option<&'static str> {
        match self {
            Self::Failed { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// The reason of a failure, or what the helper says about its decision.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::Deferred { msg } | Self::ShutDown { msg } if !msg.is_empty() => Some(msg),
            _ => None,
        }
    }
}

/// A cycle has ended.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct HostFinished {
    /// The cycle's number.
    pub cycle: u64,
    /// How.
    pub ending: Ending,
    /// Whether the last thing that went out was a step that changes the host, and no reply came back.
    pub reply_lost: bool,
}

/// The host has not answered its first call within a short patience.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct HostSilent {
    /// The cycle's number.
    pub cycle: u64,
}

/// The host has answered for the first time.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct HostAnswered {
    /// The cycle's number.
    pub cycle: u64,
}

/// The owner asks a cycle to end at its next safe point.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct CycleStopAsked;
