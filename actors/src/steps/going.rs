//! A call under way, as records and calls of one step.

use std::time::{Duration, Instant};

use quartermaster_proto::provider::{Members, ProviderError};
use quartermaster_proto::text::escape_bounded;
use quartermaster_proto::time::whole_ms;

use super::call::{CallEnd, CallMove, CallPlan, Input, Kind};
use super::record::Record;
use super::retry::Retry;

/// The longest reason that is written down, in bytes.
const MAX_REASON: usize = 300;

/// The circumstances in which an input is handled.
#[derive(Debug, Clone, Copy)]
pub struct At {
    /// Now.
    pub now: Instant,
    /// Now, Unix milliseconds.
    pub wall_ms: i64,
    /// A number in 0..1 that spreads delays.
    pub luck: f64,
    /// Nothing new is to be begun.
    pub stop: bool,
}

/// What to do next; `Done` ends it.
#[derive(Debug, PartialEq, Eq)]
pub enum Move<Done> {
    /// Write this down, and take it into the ledger; go on when it is on the disk.
    Write(Record),
    /// Make this call.
    Execute(StepCall),
    /// Ask the provider what became of the call with this key.
    Lookup {
        /// The provider's local name.
        provider: String,
        /// The key.
        key: String,
    },
    /// Ask whether this action is safe to repeat with the same attributes.
    AskRepeatable {
        /// The provider's local name.
        provider: String,
        /// The action.
        action: String,
    },
    /// Wait.
    Wait(Duration),
    /// It is over.
    Done(Done),
}

/// One call of a provider for a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepCall {
    /// The step.
    pub step: String,
    /// The provider's local name.
    pub provider: String,
    /// The action.
    pub action: String,
    /// Its attributes; may be secret.
    pub attrs: Members,
    /// The answer shall name the calls that take it back.
    pub undo: bool,
    /// The key, the same for every attempt.
    pub key: String,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The limit; none is the action's or the provider's own.
    pub timeout: Option<Duration>,
}

/// What a call is about.
#[derive(Debug, Clone)]
pub struct About {
    /// The step.
    pub step: String,
    /// The provider's local name.
    pub provider: String,
    /// The action that is called.
    pub action: String,
    /// The key of this call.
    pub key: String,
    /// With what; none when that cannot be read any more.
    pub attrs: Option<Members>,
    /// Which call that takes the step back; none for the step itself.
    pub index: Option<usize>,
    /// The limit.
    pub timeout: Option<Duration>,
}

/// What a call wants, or how it ended.
#[derive(Debug)]
pub enum Step<Done> {
    /// Go on with this.
    Go(Move<Done>),
    /// It ended.
    End(CallEnd),
}

/// A call under way.
#[derive(Debug)]
pub struct Going {
    about: About,
    plan: CallPlan,
    sent: Option<Instant>,
    /// The wait that follows once it is written down that nothing was done.
    after_note: Option<Duration>,
}

impl Going {
    /// A call that was sent `attempts` times before; `unknown` when nothing is known of the last one.
    pub fn new(about: About, kind: Kind, attempts: u32, unknown: bool) -> Self {
        Self { about, plan: CallPlan::new(kind, attempts, unknown), sent: None, after_note: None }
    }

    /// The same with tries that follow one another in this way.
    #[must_use]
    pub fn retrying(self, retry: Retry) -> Self {
        Self { plan: self.plan.retrying(retry), ..self }
    }

    /// What it is about.
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// How long ago it was sent, milliseconds.
    pub fn ms(&self, now: Instant) -> u64 {
        self.sent.map_or(0, |sent| whole_ms(now.saturating_duration_since(sent)))
    }

    /// What to do about `input`.
    pub fn handle<Done>(&mut self, input: Input, at: At) -> Step<Done> {
        if let (Input::Written, Some(wait)) = (&input, self.after_note.take()) {
            return Step::Go(Move::Wait(wait));
        }
        match self.plan.handle(input, at.luck) {
            CallMove::NoteSent(attempt) => Step::Go(Move::Write(self.sent_record(attempt, at))),
            CallMove::Send(attempt) => {
                self.sent = Some(at.now);
                Step::Go(Move::Execute(self.call(attempt)))
            }
            CallMove::Lookup => {
                let About { provider, key, .. } = &self.about;
                Step::Go(Move::Lookup { provider: provider.clone(), key: key.clone() })
            }
            // Nobody can repeat what nobody can read.
            CallMove::AskRepeatable if self.about.attrs.is_none() => {
                self.handle(Input::Repeatable(Ok(false)), at)
            }
            CallMove::AskRepeatable => {
                let About { provider, action, .. } = &self.about;
                Step::Go(Move::AskRepeatable { provider: provider.clone(), action: action.clone() })
            }
            CallMove::Wait(wait) if self.plan.is_clean() => {
                self.after_note = Some(wait);
                let error = reason(self.plan.last_error());
                Step::Go(Move::Write(self.failed_record(error, true, Vec::new())))
            }
            CallMove::Wait(wait) => Step::Go(Move::Wait(wait)),
            CallMove::End(end) => Step::End(end),
        }
    }

    fn sent_record(&self, attempt: u32, at: At) -> Record {
        let About { step, provider, action, key, attrs, index, .. } = self.about.clone();
        match index {
            Some(index) => Record::UndoSent { step, index, attempt },
            None => Record::Sent { step, provider, action, key, attempt, at_ms: at.wall_ms, attrs },
        }
    }

    fn call(&self, attempt: u32) -> StepCall {
        let About { step, provider, action, key, attrs, index, timeout } = self.about.clone();
        let attrs = attrs.unwrap_or_default();
        StepCall { step, provider, action, attrs, undo: index.is_none(), key, attempt, timeout }
    }

    /// What is written down of a failure.
    pub fn failed_record(
        &self,
        error: String,
        clean: bool,
        undo: Vec<quartermaster_proto::provider::Invocation>,
    ) -> Record {
        let step = self.about.step.clone();
        match self.about.index {
            Some(index) => Record::UndoFailed { step, index, error },
            None => Record::Failed { step, error, clean, undo: Some(undo) },
        }
    }
}

/// An error as it is written down: bounded, without control characters.
pub fn error_reason(error: &ProviderError) -> String {
    reason(&error.to_string())
}

pub fn reason(text: &str) -> String {
    escape_bounded(text, MAX_REASON)
}
