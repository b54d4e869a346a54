//! What the ClaimKeeper shares with whoever claims, and what outlives one life of it. Nobody holds a lock over a wait.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quartermaster_proto::choria::identity::Identity;
use tokio::sync::watch;
use tokio::time::Instant;

use super::board::Board;
use super::lease::{Lease, SharedLease, Writer};
use super::messages::ClaimSnapshot;

/// A claim, and since when its cycle is over.
#[derive(Debug)]
struct Held {
    lease: SharedLease,
    ended: Option<Instant>,
}

/// The shared part.
pub(super) struct Shared {
    pub writer: Writer,
    /// How long values live, once the bucket is there and its content is known.
    pub lives: watch::Sender<Option<Duration>>,
    pub published: watch::Sender<ClaimSnapshot>,
    board: Mutex<Board>,
    leases: Mutex<HashMap<Identity, Held>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(writer: Writer, board: Board) -> Self {
        Self {
            writer,
            lives: watch::Sender::new(None),
            published: watch::Sender::new(ClaimSnapshot::default()),
            board: Mutex::new(board),
            leases: Mutex::default(),
        }
    }

    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        // Plain data; the worst that a panic leaves in it is a host that another instance takes.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<Identity, Held>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The claim of a host whose cycle begins.
    pub(super) fn begin(&self, host: &Identity) -> SharedLease {
        let mut leases = self.leases();
        let held = leases
            .entry(host.clone())
            .or_insert_with(|| Held { lease: Arc::new(Lease::new(host, &self.writer)), ended: None });
        held.ended = None;
        Arc::clone(&held.lease)
    }

    /// The cycle of a claim is over.
    pub(super) fn end(&self, lease: &SharedLease, now: Instant) {
        if let Some(held) = self.leases().get_mut(&lease.host)
            && Arc::ptr_eq(&held.lease, lease)
        {
            held.ended = Some(now);
        }
    }

    /// Claims to be renewed. Forgets those whose value in the bucket has expired.
    pub(super) fn due(&self, lives: Duration, now: Instant) -> Vec<SharedLease> {
        let mut leases = self.leases();
        leases.retain(|_, held| held.ended.is_none_or(|ended| now < ended + 2 * lives));
        let due = leases.values().filter(|held| held.ended.is_none() && held.lease.is_due(lives));
        due.map(|held| Arc::clone(&held.lease)).collect()
    }

    /// How many hosts are claimed now.
    pub(super) fn held(&self) -> usize {
        self.leases().values().filter(|held| held.ended.is_none()).count()
    }
}
