//! What the elector says to itself, and what it shows of itself.

use actix::Message;

/// The next move is due.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct MoveDue;

/// Where an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElectionState {
    /// Trying to become the leader.
    Candidate,
    /// Has won the key but does not act yet.
    Winning,
    /// Leads.
    Leader,
}

/// The election as this instance sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionSnapshot {
    /// Where this instance stands.
    pub state: ElectionState,
    /// Its attempts to become the leader, in its present life.
    pub campaigns: u64,
    /// What keeps the election from working, if anything; that somebody else leads is no trouble.
    pub trouble: Option<String>,
}

impl ElectionSnapshot {
    /// Before the first move.
    pub(super) const fn new() -> Self {
        Self { state: ElectionState::Candidate, campaigns: 0, trouble: None }
    }
}
