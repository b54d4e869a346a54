//! What owners and children say to each other.

use std::time::Duration;

use actix::Message;

use super::{ChildId, ExitCause, Liveness};

/// From a child's [`super::ExitNotice`] to its owner: this life is over.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct ChildExited {
    /// Which life of which child.
    pub child: ChildId,
    /// How it ended; never [`ExitCause::Stuck`], which only an owner can find.
    pub cause: ExitCause,
    /// The reason the child gave, when it gave one.
    pub detail: Option<String>,
}

/// From the owner to a child: show that your mailbox moves, and say whether your own work does.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "Liveness")]
pub struct Ping;

/// From the owner to a child: stop now. Draining comes before it, through the run state.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct Stop;

/// To the overseer: stop every child, last started first, each within the limit.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "Vec<&'static str>")]
pub(super) struct StopAll {
    /// How long one child may take before it is abandoned.
    pub each: Duration,
}

/// To the overseer, from a handle in a test: end yourself by a panic.
#[cfg(feature = "testing")]
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct ForceOverseer(pub super::Ending);
