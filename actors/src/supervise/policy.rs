//! When an ended child is started again. Pure: time and randomness arrive as arguments.

use std::time::{Duration, Instant};

use super::ExitCause;

/// The longest delay a policy may ask for; anything longer is retirement by another name.
const MAX_CAP: Duration = Duration::from_hours(24);

/// Why a policy was refused.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// The first delay is zero; a policy that restarts at once still needs a delay for the second time.
    #[error("restart policy: the first delay must be longer than zero")]
    NoFirstDelay,
    /// The cap is below the first delay or above a day.
    #[error("restart policy: the longest delay must lie between the first delay and one day")]
    CapOutOfRange,
    /// The jitter is not within 0..=1.
    #[error("restart policy: the jitter must be a fraction between 0 and 1")]
    JitterOutOfRange,
    /// Giving up after no restart at all.
    #[error("restart policy: the number of restarts before giving up must be at least one")]
    GivesUpBeforeStart,
}

/// What to do with an ended child. Each carries the sentence shown on the status page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Start a new life after this delay.
    RestartAfter(Duration, String),
    /// This ending is the proper end of the child: nothing more to do.
    Retire(String),
    /// The child cannot be kept alive; its owner has to end too.
    GiveUp(String),
}

impl Decision {
    /// The sentence that says why.
    pub fn why(&self) -> &str {
        match self {
            Self::RestartAfter(_, why) | Self::Retire(why) | Self::GiveUp(why) => why,
        }
    }
}

/// The past of one child: what a policy needs to know, and counters by cause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    started: Option<Instant>,
    streak: u32,
    counts: [u64; 4],
}

impl History {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A life began.
    pub const fn note_start(&mut self, now: Instant) {
        self.started = Some(now);
    }

    /// A life ended; `policy` says after how much calm the streak of quick endings is forgotten.
    pub fn note_end(&mut self, cause: ExitCause, policy: &RestartPolicy, now: Instant) {
        self.streak = self.streak_with_ending(policy.calm, now);
        self.started = None;
        if let Some(count) = self.counts.get_mut(cause.index()) {
            *count = count.saturating_add(1);
        }
    }

    /// How many lives ended this way.
    pub fn count(&self, cause: ExitCause) -> u64 {
        self.counts.get(cause.index()).copied().unwrap_or(0)
    }

    /// How many lives ended.
    pub fn endings(&self) -> u64 {
        self.counts.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Endings in a row without a calm life between them.
    pub const fn streak(&self) -> u32 {
        self.streak
    }

    fn streak_with_ending(&self, calm: Duration, now: Instant) -> u32 {
        let was_calm = self.started.is_some_and(|since| now.saturating_duration_since(since) >= calm);
        if was_calm { 1 } else { self.streak.saturating_add(1) }
    }
}

/// A checked restart policy: delays grow by doubling from `first` to `cap`, less a random part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RestartPolicy {
    first: Duration,
    cap: Duration,
    jitter: f64,
    at_once: bool,
    calm: Duration,
    give_up: Option<u32>,
    retire_on_stop: bool,
}

impl RestartPolicy {
    /// Restarts for ever, after `first`, twice that, and so on up to `cap`, each shortened by a random part of at most
    /// the fraction `jitter`. The streak is forgotten once a life lasted a minute, or `cap` if that is longer.
    pub fn new(first: Duration, cap: Duration, jitter: f64) -> Result<Self, PolicyError> {
        if first.is_zero() {
            return Err(PolicyError::NoFirstDelay);
        }
        if cap < first || cap > MAX_CAP {
            return Err(PolicyError::CapOutOfRange);
        }
        if !(0.0..=1.0).contains(&jitter) {
            return Err(PolicyError::JitterOutOfRange);
        }
        let calm = cap.max(Duration::from_mins(1));
        Ok(Self { first, cap, jitter, at_once: false, calm, give_up: None, retire_on_stop: false })
    }

    /// A quarter of a second, doubling to 30 s, half of it random, for ever: right for an actor everything waits on.
    pub const fn standard() -> Self {
        Self {
            first: Duration::from_millis(250),
            cap: Duration::from_secs(30),
            jitter: 0.5,
            at_once: false,
            calm: Duration::from_mins(1),
            give_up: None,
            retire_on_stop: false,
        }
    }

    /// The first ending after a calm life is answered at once; only the following ones wait.
    #[must_use]
    pub const fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }

    /// How long a life has to last for the streak of endings before it to be forgotten.
    #[must_use]
    pub const fn calm_after(mut self, calm: Duration) -> Self {
        self.calm = calm;
        self
    }

    /// Gives up at the ending that follows this many restarts in a row without a calm life.
    pub const fn give_up_after(mut self, restarts: u32) -> Result<Self, PolicyError> {
        if restarts == 0 {
            return Err(PolicyError::GivesUpBeforeStart);
        }
        self.give_up = Some(restarts);
        Ok(self)
    }

    /// A child that stops without panic or failure has done its work and is not started again.
    #[must_use]
    pub const fn retire_on_stop(mut self) -> Self {
        self.retire_on_stop = true;
        self
    }

    /// The longest delay this policy ever asks for.
    pub const fn cap(&self) -> Duration {
        self.cap
    }

    /// Decides about an ending at `now`; `random` is uniform in `[0, 1)`, anything else is taken as the nearest end.
    /// Call it before [`History::note_end`], which the decision does not touch.
    pub fn decide(&self, cause: ExitCause, history: &History, now: Instant, random: f64) -> Decision {
        if cause == ExitCause::Stopped && self.retire_on_stop {
            return Decision::Retire("stopped by itself, which is its proper end".to_owned());
        }
        let streak = history.streak_with_ending(self.calm, now);
        if let Some(limit) = self.give_up
            && streak > limit
        {
            let calm = self.calm;
            return Decision::GiveUp(format!(
                "{cause} after {limit} restarts in a row, none of which lasted {calm:?}: giving up"
            ));
        }
        let delay = self.delay(streak, random);
        let why = if delay.is_zero() {
            format!("{cause} after a calm life: restarting at once")
        } else {
            format!("{cause}, ending {streak} in a row: restarting in {} ms", delay.as_millis())
        };
        Decision::RestartAfter(delay, why)
    }

    fn delay(&self, streak: u32, random: f64) -> Duration {
        let waits = if self.at_once { streak.saturating_sub(1) } else { streak };
        let Some(doublings) = waits.checked_sub(1) else { return Duration::ZERO };
        let full = self.first.saturating_mul(2u32.saturating_pow(doublings)).min(self.cap);
        let random = if random.is_nan() { 0.0 } else { random.clamp(0.0, 1.0) };
        full.mul_f64(self.jitter.mul_add(-random, 1.0).clamp(0.0, 1.0)).min(full)
    }
}
