//! When to look for hosts. Every cause sets the same mark, a look is always the whole one, and a period sets it too.

use std::time::{Duration, Instant};

/// The first wait after a look that failed; doubled with each further one up to the interval.
const FAILED_LOOK_WAIT: Duration = Duration::from_secs(2);

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The period, or the wait after a failure, is over.
    Due,
    /// Somebody wants a look, and why.
    Wanted(&'static str),
    /// The look under way has ended, well or not.
    Ended {
        /// Whether it could be made.
        ok: bool,
    },
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Look now, for this reason.
    Look(&'static str),
    /// Say that a look was due but the instance is paused.
    SayPaused,
    /// Nothing; the next time to come back is [`Plan::due`].
    Nothing,
}

/// The state of looking.
#[derive(Debug)]
pub struct Plan {
    interval: Duration,
    looking: bool,
    wanted: Option<&'static str>,
    failures: u32,
    due: Instant,
}

impl Plan {
    /// Looks at once, then every `interval`.
    pub const fn new(interval: Duration, now: Instant) -> Self {
        Self { interval, looking: false, wanted: None, failures: 0, due: now }
    }

    /// When to hand in [`Input::Due`] next.
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// What to do about `input`; `paused` says whether looking is allowed.
    pub fn handle(&mut self, input: Input, paused: bool, now: Instant) -> Effect {
        match input {
            Input::Due if now < self.due => return Effect::Nothing,
            Input::Due => {
                self.due = now + self.interval;
                if paused {
                    return Effect::SayPaused;
                }
                self.wanted.get_or_insert("interval");
            }
            Input::Wanted(cause) => {
                self.wanted.get_or_insert(cause);
            }
            Input::Ended { ok } => {
                self.looking = false;
                if ok {
                    self.failures = 0;
                } else {
                    let wait = FAILED_LOOK_WAIT.saturating_mul(2u32.saturating_pow(self.failures.min(16)));
                    self.failures = self.failures.saturating_add(1);
                    self.due = now + wait.min(self.interval);
                }
            }
        }
        if self.looking || paused {
            return Effect::Nothing;
        }
        match self.wanted.take() {
            Some(cause) => {
                self.looking = true;
                Effect::Look(cause)
            }
            None => Effect::Nothing,
        }
    }
}
