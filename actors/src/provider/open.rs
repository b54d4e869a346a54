//! One call that a process has in its hands, and its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::messages::{Ask, Call, Ticket};

/// A limit is never drawn out by signs of progress beyond so many times itself (provider.md F2).
const LONGEST: u32 = 3;

/// Why a call was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It did not end in time.
    TimedOut(Duration),
    /// The provider did not read it.
    Blocked(Duration),
    /// Nobody waits for it any more.
    Abandoned,
}

impl Why {
    /// For the provider.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TimedOut(_) | Self::Blocked(_) => "timeout",
            Self::Abandoned => "cancelled",
        }
    }

    /// For people.
    pub fn text(self) -> String {
        match self {
            Self::TimedOut(limit) => format!("did not end within {limit:?}"),
            Self::Blocked(limit) => format!("was not read within {limit:?}"),
            Self::Abandoned => "was called off and gave no answer".to_owned(),
        }
    }
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Within its limit.
    Running,
    /// Given up for this reason; its answer counts until then.
    Overdue(Why, Instant),
}

/// An open call.
#[derive(Debug)]
pub struct Open {
    pub ticket: Ticket,
    pub call: Arc<Call>,
    /// It bears no other call beside it.
    pub exclusive: bool,
    /// From the moment its frame has been written; none is no limit.
    pub limit: Option<Duration>,
    pub stage: Stage,
    written: Option<Instant>,
    due: Option<Instant>,
}

impl Open {
    pub const fn new(ticket: Ticket, call: Arc<Call>, exclusive: bool, limit: Option<Duration>) -> Self {
        Self { ticket, call, exclusive, limit, stage: Stage::Running, written: None, due: None }
    }

    /// Its frame has been written whole: its time runs.
    pub fn written(&mut self, now: Instant) {
        self.written = Some(now);
        self.due = self.limit.map(|limit| now + limit);
    }

    /// The provider says that it goes on.
    pub fn progressed(&mut self, now: Instant) {
        if let (Some(limit), Some(written)) = (self.limit, self.written) {
            self.due = Some((now + limit).min(written + limit * LONGEST));
        }
    }

    pub const fn overdue(&mut self, why: Why, until: Instant) {
        self.stage = Stage::Overdue(why, until);
    }

    pub const fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running)
    }

    /// When something has to happen.
    pub const fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Running => self.due,
            Stage::Overdue(_, until) => Some(until),
        }
    }

    /// What it is, for messages.
    pub fn name(&self) -> &str {
        match &self.call.ask {
            Ask::Execute(action) => &action.action,
            Ask::Relay(relayed) => &relayed.action,
            Ask::Lookup(_) | Ask::Validate(..) => self.call.method(),
        }
    }
}
