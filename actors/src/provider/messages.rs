//! What a provider's runner is asked, and what it answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::Message;
use quartermaster_proto::provider::{
    CallContext, Diagnostic, Executed, Found, Members, Path, Progress, Schema,
};
use tokio::sync::{mpsc, oneshot};
use zeroize::Zeroizing;

use super::conversation::Event;
use super::effect::ProcessId;
use super::error::CallError;

/// The number of a call in a runner's life.
pub type Ticket = u64;

/// One call of a provider.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is wanted.
    pub ask: Ask,
    /// The limit of this call; none is the action's own or the provider's.
    pub timeout: Option<Duration>,
    /// Whom or what it is for, for the log: what its process says meanwhile is said of that, when nothing else is open there.
    pub about: Option<Arc<str>>,
}

/// What can be wanted of a provider.
#[derive(Clone)]
pub enum Ask {
    /// Do an action.
    Execute(Action),
    /// Do an action whose attributes are JSON text already.
    Relay(Relayed),
    /// What became of the call with this key (`x/lookup`); only for providers that know the question.
    Lookup(String),
    /// What is wrong with these attributes (`x/validate`), where those at the paths are not known yet; only for providers that know
    /// the question.
    Validate(Action, Vec<Path>),
}

/// An action with its attributes.
#[derive(Clone, Default)]
pub struct Action {
    /// Its name.
    pub action: String,
    /// Its attributes; may be secret.
    pub attrs: Members,
    /// The answer shall name the calls that undo it.
    pub undo: bool,
    /// Which step of which run it is, for providers that want to know.
    pub context: Option<CallContext>,
}

/// An action whose attributes are the members of one JSON object, in text. Those that the provider does not declare are not sent, those
/// whose declared type takes them as they are go on unread.
#[derive(Clone, Default)]
pub struct Relayed {
    /// Its name.
    pub action: String,
    /// The object; may be secret.
    pub attrs: Zeroizing<Vec<u8>>,
    /// Which step of which run it is, for providers that want to know.
    pub context: Option<CallContext>,
}

impl fmt::Debug for Relayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relayed")
            .field("action", &self.action)
            .field("attrs", &format_args!("{} bytes", self.attrs.len()))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Action")
            .field("action", &self.action)
            .field("attrs", &format_args!("{} attributes", self.attrs.len()))
            .field("undo", &self.undo)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execute(action) => f.debug_tuple("Execute").field(action).finish(),
            Self::Relay(relayed) => f.debug_tuple("Relay").field(relayed).finish(),
            Self::Lookup(key) => f.debug_tuple("Lookup").field(key).finish(),
            Self::Validate(action, _) => f.debug_tuple("Validate").field(action).finish(),
        }
    }
}

impl Call {
    /// A call of this action, with the limits that are set elsewhere.
    pub fn execute(action: impl Into<String>, attrs: Members) -> Self {
        Self {
            ask: Ask::Execute(Action { action: action.into(), attrs, ..Action::default() }),
            timeout: None,
            about: None,
        }
    }

    /// The action it is about.
    pub fn action(&self) -> Option<&str> {
        match &self.ask {
            Ask::Execute(action) | Ask::Validate(action, _) => Some(&action.action),
            Ask::Relay(relayed) => Some(&relayed.action),
            Ask::Lookup(_) => None,
        }
    }

    /// The method, as on the wire.
    pub const fn method(&self) -> &'static str {
        match self.ask {
            Ask::Execute(_) | Ask::Relay(_) => "execute",
            Ask::Lookup(_) => "x/lookup",
            Ask::Validate(..) => "x/validate",
        }
    }
}

/// What a provider answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// To an action: its outputs and the calls that undo it.
    Executed(Executed),
    /// To a lookup.
    Found(Found),
    /// To a validation.
    Diagnosed(Vec<Diagnostic>),
}

/// How far a call is: bounded, and what does not fit is dropped, since the next one says more.
pub type ProgressSink = mpsc::Sender<Progress>;

/// From the handle: make this call.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AskProvider {
    pub ticket: Ticket,
    pub call: Arc<Call>,
    pub progress: Option<ProgressSink>,
    pub answer: oneshot::Sender<Result<Answer, CallError>>,
}

/// From the handle: nobody waits for this call any more.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AbandonCall(pub Ticket);

/// From the handle: this call is not wanted any more, but how it ends is.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct CallBack(pub Ticket);

/// From the handle: have processes ready, and tell what they declared.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct WarmUp(pub oneshot::Sender<Result<Arc<Schema>, CallError>>);

/// From the handle: end all processes, leaving open calls this long.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct CloseProvider {
    pub drain: Duration,
    pub done: oneshot::Sender<()>,
}

/// From a task of a process.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Heard(pub ProcessId, pub Event);

/// From the task that starts a process: it runs, or does not.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ProcessStarted {
    pub process: ProcessId,
    pub result: Result<super::process::Process, CallError>,
}
