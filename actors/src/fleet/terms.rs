//! The roster's words: what it is told, what it answers, and its bounds.

use std::time::Duration;

use quartermaster_proto::choria::identity::Identity;
use serde::{Deserialize, Serialize};

use super::retry::RetryPolicy;
use crate::host::{Kept, Resume};

/// The bounds of a roster.
#[derive(Debug, Clone, Copy)]
pub struct RosterSettings {
    /// Hosts waiting at most.
    pub queue: usize,
    /// Cycles that talk to a host at once.
    pub in_flight: usize,
    /// Cycles more, that wait for a host which has not answered at all yet.
    pub silent: usize,
    /// The discovery interval; a host not seen for two of them is no longer believed to be there.
    pub interval: Duration,
    /// How long a provisioned host is held back (the peer: 60 s), and how long its return as a server is awaited.
    pub hold: Duration,
    /// How long to wait when someone else holds a host's lock (the node keeps it for two minutes).
    pub busy: Duration,
    /// Delays between attempts.
    pub retry: RetryPolicy,
}

/// How a host was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// It answered a broadcast.
    Answered,
    /// It published a startup event: a digest of the event's id, its own timestamp (Unix seconds by the host's clock)
    /// and our clock now.
    Started {
        /// A digest of the event's id.
        event: u64,
        /// Seconds since the epoch, by the host.
        stamp: i64,
        /// Seconds since the epoch, by us.
        now: i64,
    },
}

/// What became of a sighting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noticed {
    /// The host waits in the queue now.
    Queued,
    /// The queue is full; the host is known and will be taken at its next sighting.
    QueueFull,
    /// It is waiting or in flight already, or held back, or cooling: nothing to do.
    Known,
    /// An old event seen again, or one older than two intervals.
    Replayed,
    /// The host was provisioned and came back asking for more: a failure of the last cycle, retried after the delay
    /// (none: given up).
    CameBack {
        /// The failed attempts so far.
        attempt: u32,
        /// The delay before the next.
        retry_in: Option<Duration>,
    },
}

/// A host that may start its cycle now.
#[derive(Debug)]
pub struct Admission {
    /// The host.
    pub identity: Identity,
    /// The number of the cycle, unique in this roster.
    pub cycle: u64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The helper's decision of an earlier cycle that found the host busy.
    pub kept: Option<Kept>,
    /// What an earlier cycle that was cut off left to make good.
    pub resume: Option<Resume>,
    /// How long the host waited in the queue.
    pub waited: Duration,
}

/// What the end of a cycle means for its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Provisioned (or stopped, or updating): held back.
    Held {
        /// From the first call to the end.
        took: Duration,
    },
    /// Tried again after the delay; none: given up.
    Retry {
        /// The attempt that ended.
        attempt: u32,
        /// The delay.
        retry_in: Option<Duration>,
    },
    /// Back in the queue, as if the cycle had not been: the instance was paused.
    Requeued,
    /// Another instance has the host; this roster has forgotten it.
    Elsewhere,
    /// The cycle is not this roster's (an actor that was already replaced).
    Unknown,
}

/// Something that time brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passed {
    /// A cooling host waits in the queue again.
    Requeued(Identity),
    /// A host was not seen for two intervals and left.
    AgedOut(Identity),
    /// A host is no longer held back after a good ending: nothing of it has to be remembered.
    Released(Identity),
    /// A provisioned host was not seen as a server within the limit.
    Unconfirmed(Identity),
}

/// How many hosts are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Counts {
    /// In the queue.
    pub waiting: usize,
    /// In a cycle.
    pub in_flight: usize,
    /// Of those, the ones that have not answered yet.
    pub silent: usize,
    /// Known, but turned away by a full queue.
    pub known: usize,
    /// Held back after success.
    pub held: usize,
    /// Waiting for their next attempt.
    pub cooling: usize,
    /// Left alone after too many attempts.
    pub gave_up: usize,
    /// Of all, those of whom something that providers did could not be taken back yet.
    pub not_taken_back: usize,
    /// Of those, the ones about which only an operator can decide.
    pub undecided: usize,
}
