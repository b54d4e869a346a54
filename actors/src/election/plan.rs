//! The rules of the election. Pure: time arrives as an argument.
//!
//! An instance leads after two writes in a row and until the first that fails: two writes, because one alone may have been
//! the last breath of a connection. After a failure that is no conflict the key may still hold our own write; the next
//! attempt then goes on from it instead of waiting for it to expire, which is safe because a write by anybody else in
//! between turns it into a conflict.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::messages::ElectionState;

/// How long values of an election's bucket may live (choria.md 7).
const LIVES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(1);

/// A key that nobody renews may outlive its time by this much before that is said.
const OVERDUE: Duration = Duration::from_secs(30);

/// Why the broker did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Somebody else has written the key.
    #[error("somebody else has written the key")]
    Conflict,
    /// The bucket cannot be reached; says why.
    #[error("{0}")]
    NoBucket(String),
    /// Anything else; whether the key was written is unknown.
    #[error("{0}")]
    Other(String),
}

/// How long to wait for the next move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The moment between the second write and acting as the leader.
    Settle,
    /// This entry of the table of growing waits, with its jitter; a leader's is the first.
    Table(usize),
    /// None: the lead was offered meanwhile.
    None,
}

/// What can happen to an election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// It is time for the next move.
    Due,
    /// The bucket was looked at: how long its values live.
    Opened(Result<Duration, Fault>),
    /// A write was answered: with the sequence number it has.
    Written(Result<u64, Fault>),
}

/// What the broker is to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Look at the bucket; the answer comes as [`Input::Opened`].
    Open,
    /// Write the key if its last write has this sequence number; the answer comes as [`Input::Written`].
    Write {
        /// The sequence number; 0 when the key must not exist.
        after: u64,
    },
}

/// What to do next: ask the broker, or wake up after some time. Exactly one of the two is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// To be asked now.
    pub ask: Option<Ask>,
    /// [`Input::Due`] is due after this wait.
    pub wake: Option<Wait>,
    /// Leadership changed to this, to be acted on at once.
    pub lead: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The bucket has not been seen yet, or not since it was gone.
    Unopened {
        own: Option<u64>,
    },
    Candidate {
        own: Option<u64>,
    },
    Won {
        seq: u64,
    },
    Settling {
        seq: u64,
    },
    Leading {
        seq: u64,
    },
}

/// One instance's part in the election.
#[derive(Debug)]
pub struct ElectionPlan {
    state: State,
    tries: usize,
    campaigns: u64,
    ttl: Duration,
    asked: Option<Instant>,
    last_write: Option<Instant>,
    offered: Option<u64>,
    quiet_since: Option<Instant>,
    trouble: Option<String>,
}

impl Default for ElectionPlan {
    fn default() -> Self {
        Self::new()
    }
}

impl ElectionPlan {
    /// An instance that has not looked at the bucket yet.
    pub const fn new() -> Self {
        Self {
            state: State::Unopened { own: None },
            tries: 0,
            campaigns: 0,
            ttl: Duration::from_mins(1),
            asked: None,
            last_write: None,
            offered: None,
            quiet_since: None,
            trouble: None,
        }
    }

    /// Where it stands.
    pub const fn state(&self) -> ElectionState {
        match self.state {
            State::Unopened { .. } | State::Candidate { .. } => ElectionState::Candidate,
            State::Won { .. } | State::Settling { .. } => ElectionState::Winning,
            State::Leading { .. } => ElectionState::Leader,
        }
    }

    /// True while it leads.
    pub fn leads(&self) -> bool {
        self.state() == ElectionState::Leader
    }

    /// Until when the key is surely ours, counted from when the last write was sent: three quarters of a value's life.
    pub fn holds_until(&self) -> Option<Instant> {
        self.last_write.map(|at| at + self.ttl * 3 / 4)
    }

    /// Attempts to become the leader so far.
    pub const fn campaigns(&self) -> u64 {
        self.campaigns
    }

    /// What the last attempt failed of, when it was not simply that somebody else leads.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// How long a value of the bucket lives.
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The leader of the moment stops and says which sequence number its last write has: whoever writes on from it leads
    /// next. True when the next move should be made at once.
    pub fn offer(&mut self, seq: u64) -> bool {
        let wanted = matches!(self.state, State::Unopened { .. } | State::Candidate { .. });
        if wanted {
            self.offered = Some(seq);
        }
        wanted
    }

    /// Somebody was heard renewing the lead.
    pub const fn hear(&mut self, now: Instant) {
        self.quiet_since = Some(now);
    }

    /// Gives the lead up. The sequence number is for whoever shall write on from it; none when there is nothing to give.
    pub const fn resign(&mut self) -> Option<u64> {
        let seq = match self.state {
            State::Won { seq } | State::Settling { seq } | State::Leading { seq } => Some(seq),
            State::Unopened { .. } | State::Candidate { .. } => None,
        };
        self.state = State::Candidate { own: None };
        self.last_write = None;
        seq
    }

    /// The next step.
    pub fn handle(&mut self, input: Input, now: Instant) -> Step {
        match input {
            Input::Due => self.due(now),
            Input::Opened(Ok(ttl)) if !LIVES.contains(&ttl) => {
                let fault = format!("the values of the bucket live {ttl:?}, and must between 1 s and 1 h");
                self.failed(&Fault::NoBucket(fault), now)
            }
            Input::Opened(Ok(ttl)) => {
                self.ttl = ttl;
                self.state = State::Candidate { own: self.own() };
                self.trouble = None;
                self.due(now)
            }
            Input::Written(Ok(seq)) => self.written(seq, now),
            Input::Opened(Err(fault)) | Input::Written(Err(fault)) => self.failed(&fault, now),
        }
    }

    fn due(&mut self, now: Instant) -> Step {
        // A process that was stopped, or a thread that was held up, must not go on leading on the strength of an old
        // write: by then somebody else may lead.
        if self.is_stale(now) {
            return self.failed(&held_up(), now);
        }
        let after = match self.state {
            State::Unopened { .. } => return Step { ask: Some(Ask::Open), wake: None, lead: None },
            State::Candidate { own } => {
                self.campaigns += 1;
                self.offered.take().or(own).unwrap_or(0)
            }
            State::Settling { seq } => {
                self.state = State::Leading { seq };
                return Step { ask: None, wake: Some(Wait::Table(0)), lead: Some(true) };
            }
            State::Won { seq } | State::Leading { seq } => seq,
        };
        self.asked = Some(now);
        Step { ask: Some(Ask::Write { after }), wake: None, lead: None }
    }

    fn written(&mut self, seq: u64, now: Instant) -> Step {
        self.tries = 0;
        self.trouble = None;
        self.quiet_since = None;
        // From when it was sent: the answer may have lain unread while this process was stopped.
        self.last_write = Some(self.asked.unwrap_or(now));
        let wake = match self.state {
            State::Unopened { .. } | State::Candidate { .. } => {
                self.state = State::Won { seq };
                Wait::Table(0)
            }
            State::Won { .. } | State::Settling { .. } => {
                self.state = State::Settling { seq };
                Wait::Settle
            }
            State::Leading { .. } => {
                self.state = State::Leading { seq };
                Wait::Table(0)
            }
        };
        if self.is_stale(now) {
            return self.failed(&held_up(), now);
        }
        Step { ask: None, wake: Some(wake), lead: None }
    }

    fn failed(&mut self, fault: &Fault, now: Instant) -> Step {
        let led = self.leads();
        let own = self.own();
        self.trouble = match fault {
            Fault::Conflict => self.overdue(now),
            Fault::NoBucket(_) | Fault::Other(_) => Some(fault.to_string()),
        };
        self.state = match (self.state, fault) {
            (State::Unopened { .. }, _) | (_, Fault::NoBucket(_)) => State::Unopened { own },
            (_, Fault::Conflict) => State::Candidate { own: None },
            (_, Fault::Other(_)) => State::Candidate { own },
        };
        self.last_write = None;
        self.tries = self.tries.saturating_add(1);
        let wake = if self.offered.is_some() { Wait::None } else { Wait::Table(self.tries) };
        Step { ask: None, wake: Some(wake), lead: led.then_some(false) }
    }

    /// Somebody has the key but nobody is heard renewing it, for longer than it can live: says so.
    fn overdue(&mut self, now: Instant) -> Option<String> {
        let quiet = now.saturating_duration_since(*self.quiet_since.get_or_insert(now));
        (quiet > self.ttl + OVERDUE).then(|| {
            let (quiet, ttl) = (quiet.as_secs(), self.ttl.as_secs());
            format!(
                "nobody was heard leading for {quiet} s, yet the key of the last leader, which should live {ttl} s, is still \
                 taken; look at the bucket on every broker"
            )
        })
    }

    /// The sequence number of our own last write, while it may still be the key's last.
    const fn own(&self) -> Option<u64> {
        match self.state {
            State::Unopened { own } | State::Candidate { own } => own,
            State::Won { seq } | State::Settling { seq } | State::Leading { seq } => Some(seq),
        }
    }

    /// True when the last write is so old that the key may expire soon.
    fn is_stale(&self, now: Instant) -> bool {
        let holds = matches!(self.state, State::Won { .. } | State::Settling { .. } | State::Leading { .. });
        holds && self.holds_until().is_some_and(|until| now >= until)
    }
}

fn held_up() -> Fault {
    Fault::Other("this instance was held up for too long".to_owned())
}
