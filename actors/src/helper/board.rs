//! What the runner shows of itself. Written at the start and end of each run, read by anybody without asking the actor.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many ended runs are remembered.
const REMEMBERED: usize = 20;

/// The runner at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperSnapshot {
    /// How many helpers may run at once.
    pub slots: usize,
    /// Those running now, longest running first.
    pub running: Vec<RunningHelper>,
    /// How many runs wait for a slot.
    pub queued: usize,
    /// Runs that gave a reply, since this process started.
    pub answered: u64,
    /// Runs that did not.
    pub failed: u64,
    /// The last runs that ended, newest first.
    pub last: Vec<EndedHelper>,
}

/// A helper that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningHelper {
    /// The host it runs for.
    pub host: String,
    /// Since how long.
    pub for_now: Duration,
}

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedHelper {
    /// The host it ran for.
    pub host: String,
    /// How long it took.
    pub took: Duration,
    /// Why it failed; none when it answered.
    pub error: Option<String>,
    /// Its last lines on standard error, oldest first; escaped and bounded.
    pub stderr: Vec<String>,
}

/// The writing and the reading side of the snapshot; it outlives the actor, so that the page has something to show while the
/// runner is being restarted.
#[derive(Debug)]
pub(super) struct Board {
    slots: NonZeroUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    running: BTreeMap<u64, (String, Instant)>,
    queued: usize,
    answered: u64,
    failed: u64,
    last: VecDeque<EndedHelper>,
}

impl Board {
    pub(super) fn new(slots: NonZeroUsize) -> Arc<Self> {
        Arc::new(Self { slots, state: Mutex::default() })
    }

    pub(super) fn snapshot(&self) -> HelperSnapshot {
        let state = self.lock();
        HelperSnapshot {
            slots: self.slots.get(),
            running: state
                .running
                .values()
                .map(|(host, since)| RunningHelper { host: host.clone(), for_now: since.elapsed() })
                .collect(),
            queued: state.queued,
            answered: state.answered,
            failed: state.failed,
            last: state.last.iter().rev().cloned().collect(),
        }
    }

    pub(super) fn set_queued(&self, queued: usize) {
        self.lock().queued = queued;
    }

    /// Enters a run. It is shown as running until the answer is dropped.
    pub(super) fn enter(self: &Arc<Self>, host: String, since: Instant) -> Entry {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.running.insert(number, (host, since));
        Entry { board: Arc::clone(self), number }
    }

    pub(super) fn ended(&self, run: EndedHelper) {
        let mut state = self.lock();
        match run.error {
            None => state.answered += 1,
            Some(_) => state.failed += 1,
        }
        if state.last.len() == REMEMBERED {
            state.last.pop_front();
        }
        state.last.push_back(run);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change leaves the state right, so a panic elsewhere spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run's line on the board.
#[derive(Debug)]
pub(super) struct Entry {
    board: Arc<Board>,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.board.lock().running.remove(&self.number);
    }
}
