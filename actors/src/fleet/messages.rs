//! What the FleetKeeper is told and asked.

use quartermaster_proto::choria::identity::Identity;

use super::terms::Counts;
use super::view::{FleetOverview, Forgot, HostPage, HostQuery, HostView};
use crate::discovery::Seen;
use crate::journal::AttemptRecord;

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

/// Asks for hosts with a failure or in a cycle, at most `most`, ordered by name.
#[derive(Debug, actix::Message)]
#[rtype(result = "Vec<HostView>")]
pub struct ObserveTroubled {
    /// At most so many.
    pub most: usize,
}

/// Asks for one page of hosts.
#[derive(Debug, actix::Message)]
#[rtype(result = "HostPage")]
pub struct ObserveHosts(pub HostQuery);

/// Asks for one host; none when nobody knows it.
#[derive(Debug, actix::Message)]
#[rtype(result = "Option<HostView>")]
pub struct ObserveHost(pub Identity);

/// Asks what deserves a look, with so many failures at most.
#[derive(Debug, actix::Message)]
#[rtype(result = "FleetOverview")]
pub struct ObserveOverview {
    /// At most so many.
    pub failures: usize,
}

/// Asks for the attempt of a host that is under way.
#[derive(Debug, actix::Message)]
#[rtype(result = "Option<AttemptRecord>")]
pub struct RunningAttempt(pub Identity);

/// Try this host again now; answers whether anybody knows it.
#[derive(Debug, actix::Message)]
#[rtype(result = "bool")]
pub struct RetryHost(pub Identity);

/// Forget this host and its history.
#[derive(Debug, actix::Message)]
#[rtype(result = "Forgot")]
pub struct ForgetHost(pub Identity);

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
