//! What the FleetKeeper is told and asked.

use std::time::Duration;

use quartermaster_proto::choria::identity::Identity;

use super::terms::Counts;
use crate::discovery::Seen;

/// A host was noticed.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct HostNoticed(pub Seen);

/// Every cycle in flight shall end at its next safe point.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub struct EndCycles;

/// The fleet in numbers, as last published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FleetSnapshot {
    /// Hosts by state.
    pub counts: Counts,
    /// Cycles that ended with the host provisioned, since the keeper's first life.
    pub provisioned: u64,
    /// Cycles that failed.
    pub failed: u64,
}

/// One host as shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostView {
    /// The host.
    pub identity: Identity,
    /// What it is doing.
    pub state: &'static str,
    /// Failed attempts in a row.
    pub failures: u32,
    /// The last failure: cause, reason, how long ago.
    pub failure: Option<(&'static str, String, Duration)>,
    /// How long until its next attempt, for a cooling host.
    pub retry_in: Option<Duration>,
}

/// Asks for hosts with a failure or in a cycle, at most `most`, ordered by name.
#[derive(Debug, actix::Message)]
#[rtype(result = "Vec<HostView>")]
pub struct ObserveTroubled {
    /// At most so many.
    pub most: usize,
}

/// Makes the actors of up to `most` hosts in a cycle end in a forced way; answers how many.
#[cfg(feature = "testing")]
#[derive(Debug, actix::Message)]
#[rtype(result = "usize")]
pub struct ForceHosts {
    /// How.
    pub ending: crate::supervise::Ending,
    /// At most so many.
    pub most: usize,
}

/// The keeper's clock.
#[derive(Debug, actix::Message)]
#[rtype(result = "()")]
pub(super) struct RosterDue;
