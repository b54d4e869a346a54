//! What the ClaimKeeper is told, and what it shows.

use actix::Message;

use super::lease::SharedLease;
use super::record::RecordState;

/// A cycle has ended, and with it its claim.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct ClaimEnded {
    pub lease: SharedLease,
    pub round: u64,
    /// What to say in the bucket.
    pub state: RecordState,
}

/// Say that this instance is gone, once every ended claim is in the bucket.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct LeaveCluster;

/// The claims of this instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimSnapshot {
    /// Hosts claimed now.
    pub held: usize,
    /// Hosts that are another instance's first, kept in mind.
    pub kept: usize,
    /// The instances that are there, this one included.
    pub members: Vec<String>,
    /// What keeps claims from working, if anything.
    pub trouble: Option<String>,
}
