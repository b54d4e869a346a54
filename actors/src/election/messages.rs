//! What the elector says to itself, and what it shows of itself.

use actix::Message;

use super::sight::KnownLeader;

/// The next move is due.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct MoveDue;

/// Give the lead away, if it is held, and campaign no more. Answers whether the others could be told.
#[derive(Debug, Message)]
#[rtype(result = "bool")]
pub struct HandOver;

/// What a leader that stops tells the others of ours.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Offer {
    /// Its identity.
    pub by: String,
    /// The sequence number of its last write.
    pub seq: u64,
}

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
    /// Who leads, if anybody was heard.
    pub leader: Option<KnownLeader>,
    /// What keeps the election from working, if anything; that somebody else leads is no trouble.
    pub trouble: Option<String>,
}

impl ElectionSnapshot {
    /// Before the first move.
    pub(super) const fn new() -> Self {
        Self { state: ElectionState::Candidate, campaigns: 0, leader: None, trouble: None }
    }
}
