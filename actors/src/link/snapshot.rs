//! What can be seen of the link from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Whether there is a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// Not connected; trying for ever.
    Connecting {
        /// Rounds over all brokers that have failed since the link was last up (or started).
        rounds: u32,
        /// What the last attempt ended with; empty before the first.
        last_error: String,
        /// True when the last attempt ended with the broker refusing the login.
        refused: bool,
    },
    /// Connected and subscribed.
    Connected {
        /// The broker's address, as it was found.
        server: String,
        /// The broker's own name.
        server_name: String,
        /// Largest message it takes, bytes.
        max_payload: usize,
    },
}

impl LinkState {
    /// True while connected.
    pub const fn is_connected(&self) -> bool {
        matches!(self, Self::Connected { .. })
    }
}

/// The numbers of the link since its process started, plus its state now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSnapshot {
    /// The state.
    pub state: LinkState,
    /// How long the state has been what it is.
    pub since: Duration,
    /// Connections made, the first included.
    pub connects: u64,
    /// Logins that a broker refused.
    pub refused_logins: u64,
    /// Requests awaiting a reply now.
    pub pending: u64,
    /// Requests sent.
    pub requests: u64,
    /// Replies that counted.
    pub replies: u64,
    /// Replies that came after their request had ended; ignored.
    pub late: u64,
    /// Replies that could not count: wrong hash, sender, agent, or undecodable.
    pub rejected: u64,
    /// Requests with two different replies.
    pub conflicts: u64,
    /// Events and sightings that a full lane turned away.
    pub dropped: u64,
}

/// The counters behind a snapshot; they outlive a restart of the actor.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connects: AtomicU64,
    pub(super) refused_logins: AtomicU64,
    pub(super) pending: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) replies: AtomicU64,
    pub(super) late: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) conflicts: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// The published state and when it began.
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub(super) state: Arc<LinkState>,
    pub(super) since: tokio::time::Instant,
}

impl Published {
    pub(super) fn new(state: LinkState) -> Self {
        Self { state: Arc::new(state), since: tokio::time::Instant::now() }
    }
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self, published: &Published) -> LinkSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LinkSnapshot {
            state: published.state.as_ref().clone(),
            since: published.since.elapsed(),
            connects: read(&self.connects),
            refused_logins: read(&self.refused_logins),
            pending: read(&self.pending),
            requests: read(&self.requests),
            replies: read(&self.replies),
            late: read(&self.late),
            rejected: read(&self.rejected),
            conflicts: read(&self.conflicts),
            dropped: read(&self.dropped),
        }
    }
}
