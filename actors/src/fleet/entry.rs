//! One host's entry in the roster.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::terms::Sighting;
use crate::host::{Ending, Kept, Resume};
use crate::journal::HelperRecord;
use crate::steps::StepLog;

/// How far a cycle has come, as far as places are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its first call is under way.
    Contacting,
    /// The host has not answered within a short patience.
    Silent,
    /// The host answers.
    Talking,
}

/// What a host is doing. Instants are tokio's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Seen, but the queue was full.
    Known,
    /// In the queue.
    Waiting {
        /// Since when.
        since: Instant,
    },
    /// In a cycle.
    InFlight {
        /// The cycle's number.
        cycle: u64,
        /// Since when.
        since: Instant,
        /// Whether it answers.
        phase: Phase,
        /// Whether it may be configured already.
        committed: bool,
        /// Whether it was seen as an ordinary server since.
        serves: bool,
    },
    /// Held back after a good ending.
    Held {
        /// Since when.
        since: Instant,
        /// When its cycle began.
        began: Instant,
        /// Which ending.
        ending: Ending,
        /// Whether it was seen as an ordinary server since.
        confirmed: bool,
    },
    /// Waiting for its next attempt.
    Cooling {
        /// Since when.
        since: Instant,
        /// Until when.
        until: Instant,
        /// When the cycle that failed began.
        began: Instant,
    },
    /// Left alone after too many attempts, until it starts anew.
    GaveUp {
        /// Since when.
        since: Instant,
    },
    /// Nothing to do; remembered for a while so that replayed events are known as such.
    Done,
}

impl State {
    /// The state's name, as shown to people and as queries name it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Waiting { .. } => "waiting",
            Self::InFlight { .. } => "in_flight",
            Self::Held { .. } => "held",
            Self::Cooling { .. } => "cooling",
            Self::GaveUp { .. } => "gave_up",
            Self::Done => "done",
        }
    }
}

/// Why the last attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// One of the fixed causes (the label of a counter).
    pub cause: Cow<'static, str>,
    /// The whole reason, bounded and free of control characters.
    pub error: String,
    /// When.
    pub at: Instant,
    /// The helper run of that attempt, if it came to one.
    pub helper: Option<HelperRecord>,
}

impl Failure {
    pub(super) fn new(cause: &'static str, error: impl Into<String>, at: Instant) -> Self {
        Self { cause: Cow::Borrowed(cause), error: error.into(), at, helper: None }
    }
}

/// A host's entry.
#[derive(Debug)]
pub struct Entry {
    /// What it is doing.
    pub state: State,
    /// When it was noticed first.
    pub first_seen: Instant,
    /// When it was noticed last.
    pub last_seen: Instant,
    /// How long it was in the queue before its latest cycle.
    pub waited: Duration,
    /// Failed attempts in a row.
    pub failures: u32,
    /// Attempts since the last success that ended with this instance, or with a part of it.
    pub(super) lost: u32,
    /// The last failure, until an attempt succeeds.
    pub failure: Option<Failure>,
    /// When the first of these failures was.
    pub(super) failing_since: Option<Instant>,
    /// The helper's decision, kept while someone else holds the host's lock.
    pub(super) kept: Option<Kept>,
    /// What its next cycle has to make good instead of beginning anew.
    pub(super) resume: Option<Resume>,
    /// What providers did for it that is not over.
    pub(super) steps: Option<StepLog>,
    /// It is counted among those of whom something is left.
    pub(super) counted: bool,
    /// When the roster's clock looks at it next.
    pub(super) due: Option<Instant>,
    /// Digest and timestamp of the newest startup event seen.
    pub(super) newest_event: Option<(u64, i64)>,
}

impl Entry {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            state: State::Known,
            first_seen: now,
            last_seen: now,
            waited: Duration::ZERO,
            failures: 0,
            lost: 0,
            failure: None,
            failing_since: None,
            kept: None,
            resume: None,
            steps: None,
            counted: false,
            due: None,
            newest_event: None,
        }
    }

    /// Since when it has been in its state; for a host that does nothing, since it was noticed last.
    pub(super) const fn since(&self) -> Instant {
        match &self.state {
            State::Waiting { since }
            | State::InFlight { since, .. }
            | State::Held { since, .. }
            | State::Cooling { since, .. }
            | State::GaveUp { since } => *since,
            State::Known | State::Done => self.last_seen,
        }
    }

    /// Whether this event is the newest one seen, or older than it by the host's own clock.
    pub(super) fn has_seen(&self, event: u64, stamp: i64) -> bool {
        self.newest_event.is_some_and(|(known, newest)| known == event || stamp < newest)
    }

    /// The number of the attempt under way, or of the next one.
    pub(super) const fn attempt(&self) -> u32 {
        self.failures.saturating_add(self.lost).saturating_add(1)
    }

    /// Forgets the failures: an attempt succeeded.
    pub(super) fn succeed(&mut self) {
        self.failures = 0;
        self.lost = 0;
        self.failure = None;
        self.failing_since = None;
    }

    pub(super) fn remember(&mut self, sighting: Sighting) {
        if let Sighting::Started { event, stamp, .. } = sighting {
            self.newest_event = Some((event, stamp));
        }
    }
}
