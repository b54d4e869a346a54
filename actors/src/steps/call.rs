//! One call of a step to its provider, with its tries, and the settling of one whose outcome is not known (provider.md F7): by a
//! lookup with its key, else by repeating it if the action is safe to repeat, else by an operator. Pure.

use std::time::Duration;

use quartermaster_proto::provider::{DoneState, ErrorCode, Executed, Found, ProviderError};

use super::retry::Retry;
use crate::provider::{CallError, Outcome};

/// The delay between lookups.
const LOOKUP_DELAY: Duration = Duration::from_secs(1);
/// How often a step that is still being done is looked up before it is left for later.
const MOST_LOOKUPS: u32 = 30;
/// How often a lookup that failed is made again before it is left for later.
const LOOKUP_TRIES: u32 = 4;
/// How often an action that is safe to repeat is repeated in order to learn what became of it.
const MOST_REPEATS: u32 = 3;

/// What a call is, as far as its tries are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A step is to be done.
    Step {
        /// How often at most.
        tries: u32,
    },
    /// It is to be learnt what became of a step that was sent; it is not to be done any more.
    Settle,
    /// A step is to be taken back. Whatever the provider answers but a refusal for good, another try may help.
    Undo {
        /// How often at most.
        tries: u32,
    },
}

/// What has happened.
#[derive(Debug)]
pub enum Input {
    /// The call begins.
    Begin,
    /// What was to be written is on the disk.
    Written,
    /// The provider answered, or did not.
    Answered(Result<Executed, CallError>),
    /// The lookup ended.
    Found(Result<Found, CallError>),
    /// Whether the action is safe to repeat, or why that is not known.
    Repeatable(Result<bool, CallError>),
    /// The delay is over.
    Due,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum CallMove {
    /// Write down that the call is about to be sent, as this attempt.
    NoteSent(u32),
    /// Send it.
    Send(u32),
    /// Ask what became of its key.
    Lookup,
    /// Ask whether its action is safe to repeat.
    AskRepeatable,
    /// Wait.
    Wait(Duration),
    /// It is over.
    End(CallEnd),
}

/// How a call ended.
#[derive(Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// Done.
    Done(Executed),
    /// Surely not done.
    Clean(Box<ProviderError>),
    /// Failed; something may have been done, and the error may say how to clear it.
    Failed(Box<ProviderError>),
    /// Nobody knows.
    Unknown {
        /// Why.
        why: String,
        /// The provider could not be asked now; later it may answer. Else only an operator knows.
        later: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nothing,
    ToSend,
    ToLookUp,
}

/// One call.
#[derive(Debug)]
pub struct CallPlan {
    kind: Kind,
    retry: Retry,
    attempt: u32,
    /// Tries of this life, beside those of an earlier one.
    made: u32,
    /// It was sent and nothing is known of it.
    unknown: bool,
    lookups: u32,
    failed_lookups: u32,
    repeats: u32,
    waiting: Waiting,
    why: String,
}

impl CallPlan {
    /// A call that was sent `attempts` times before; `unknown` when nothing is known of the last one.
    pub fn new(kind: Kind, attempts: u32, unknown: bool) -> Self {
        Self {
            kind,
            retry: Retry::default(),
            attempt: attempts,
            made: 0,
            unknown,
            lookups: 0,
            failed_lookups: 0,
            repeats: 0,
            waiting: Waiting::Nothing,
            why: String::new(),
        }
    }

    /// The same with tries that follow one another in this way.
    #[must_use]
    pub fn retrying(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// What to do about `input`; `luck` in 0..1 spreads delays.
    pub fn handle(&mut self, input: Input, luck: f64) -> CallMove {
        match input {
            Input::Begin if self.unknown => CallMove::Lookup,
            Input::Begin => self.send(),
            Input::Written => CallMove::Send(self.attempt),
            Input::Answered(answer) => self.answered(answer, luck),
            Input::Found(found) => self.found(found, luck),
            Input::Repeatable(answer) => self.repeatable(answer),
            Input::Due => match std::mem::replace(&mut self.waiting, Waiting::Nothing) {
                Waiting::ToLookUp => CallMove::Lookup,
                Waiting::ToSend | Waiting::Nothing => self.send(),
            },
        }
    }

    fn send(&mut self) -> CallMove {
        self.attempt = self.attempt.saturating_add(1);
        self.made = self.made.saturating_add(1);
        CallMove::NoteSent(self.attempt)
    }

    const fn tries(&self) -> u32 {
        match self.kind {
            Kind::Step { tries } | Kind::Undo { tries } => tries,
            Kind::Settle => 0,
        }
    }

    fn answered(&mut self, answer: Result<Executed, CallError>, luck: f64) -> CallMove {
        let error = match answer {
            Ok(done) => return CallMove::End(CallEnd::Done(done)),
            Err(error) => error,
        };
        match error.outcome {
            Outcome::Unknown => {
                self.unknown = true;
                self.why = error.to_string();
                CallMove::Lookup
            }
            // What was sent before stays unknown when the repetition did not even go out.
            Outcome::NotSent if self.unknown => self.unknown_end(error.to_string(), true),
            Outcome::NotSent => self.clean(error.error, luck),
            Outcome::Failed => self.refused(error.error, luck),
        }
    }

    /// The provider answered that it failed.
    fn refused(&mut self, error: Box<ProviderError>, luck: f64) -> CallMove {
        if matches!(self.kind, Kind::Undo { .. }) {
            if error.code.is_undone() {
                return CallMove::End(CallEnd::Done(Executed::default()));
            }
            self.unknown = false;
            let again = self.made < self.tries() && !is_refusal(&error.code);
            return if again { self.try_again(&error, luck) } else { CallMove::End(CallEnd::Failed(error)) };
        }
        // A repetition that could not be made now says nothing of what came before it, unless it says so.
        if self.unknown && error.code.may_retry() && error.more.state.is_none() {
            return self.unknown_end(format!("repeated, and then: {error}"), true);
        }
        self.unknown = false;
        let nothing_done = match error.more.state {
            Some(state) => state == DoneState::None,
            None => error.code.nothing_done() || self.retry.vouches_for(&error.code),
        };
        if !nothing_done || !error.more.undo.is_empty() {
            return CallMove::End(CallEnd::Failed(error));
        }
        if self.retry.covers(&error.code) && self.made < self.tries() {
            return self.try_again(&error, luck);
        }
        CallMove::End(CallEnd::Clean(error))
    }

    /// It was surely not sent.
    fn clean(&mut self, error: Box<ProviderError>, luck: f64) -> CallMove {
        if self.made < self.tries() && !is_refusal(&error.code) {
            return self.try_again(&error, luck);
        }
        CallMove::End(CallEnd::Clean(error))
    }

    fn try_again(&mut self, error: &ProviderError, luck: f64) -> CallMove {
        self.waiting = Waiting::ToSend;
        self.why = error.to_string();
        CallMove::Wait(error.more.retry_after.unwrap_or_else(|| self.retry.delay(self.made, luck)))
    }

    /// Why the last try failed, while another is waited for.
    pub fn last_error(&self) -> &str {
        &self.why
    }

    /// Whether what was sent last surely was not done: to be written down before a wait.
    pub fn is_clean(&self) -> bool {
        self.waiting == Waiting::ToSend && !self.unknown
    }

    fn found(&mut self, found: Result<Found, CallError>, luck: f64) -> CallMove {
        let error = match found {
            Ok(Found::Done(done)) => return CallMove::End(CallEnd::Done(done)),
            Ok(Found::Failed(error)) => {
                self.unknown = false;
                return self.refused(error, luck);
            }
            Ok(Found::Absent) => {
                self.unknown = false;
                let error = Box::new(ProviderError::new(
                    ErrorCode::Unavailable,
                    "the provider never saw it".to_owned(),
                ));
                // It was not done, so it may be: one that was sent in an earlier life has its tries anew.
                return match self.kind {
                    Kind::Settle => CallMove::End(CallEnd::Clean(error)),
                    Kind::Step { .. } | Kind::Undo { .. } => self.clean(error, luck),
                };
            }
            Ok(Found::Running) => {
                self.lookups += 1;
                if self.lookups >= MOST_LOOKUPS {
                    return self.unknown_end("it is still being done".to_owned(), true);
                }
                self.waiting = Waiting::ToLookUp;
                return CallMove::Wait(LOOKUP_DELAY);
            }
            Err(error) => error,
        };
        if error.code() == &ErrorCode::UnknownMethod {
            return CallMove::AskRepeatable;
        }
        self.failed_lookups += 1;
        if self.failed_lookups >= LOOKUP_TRIES {
            return self.unknown_end(format!("it could not be looked up: {error}"), true);
        }
        self.waiting = Waiting::ToLookUp;
        CallMove::Wait(LOOKUP_DELAY.saturating_mul(self.failed_lookups))
    }

    fn repeatable(&mut self, answer: Result<bool, CallError>) -> CallMove {
        match answer {
            Ok(true) if self.repeats < MOST_REPEATS => {
                self.repeats += 1;
                self.send()
            }
            Ok(true) => self.unknown_end("repeating it did not tell either".to_owned(), true),
            Ok(false) => {
                let why = "the provider cannot look it up, and it is not safe to repeat".to_owned();
                self.unknown_end(why, false)
            }
            Err(error) => self.unknown_end(format!("the provider cannot be asked: {error}"), true),
        }
    }

    fn unknown_end(&self, what: String, later: bool) -> CallMove {
        let why = if self.why.is_empty() { what } else { format!("{}; {what}", self.why) };
        CallMove::End(CallEnd::Unknown { why, later })
    }
}

/// Whether the same call would be refused again, until somebody changes something.
const fn is_refusal(code: &ErrorCode) -> bool {
    use quartermaster_proto::provider::HostCode;
    matches!(
        code,
        ErrorCode::InvalidRequest
            | ErrorCode::UnknownMethod
            | ErrorCode::UnknownAction
            | ErrorCode::InvalidConfig
            | ErrorCode::InvalidAttrs
            | ErrorCode::Denied
            | ErrorCode::Host(
                HostCode::BadSchema
                    | HostCode::UnsupportedProtocol
                    | HostCode::ChecksumMismatch
                    | HostCode::SchemaChanged
                    | HostCode::FrameTooLarge
            )
    )
}
