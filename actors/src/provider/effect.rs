//! What goes into the plan and what comes out of it.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::provider::Progress;

use super::conversation::{Event, Outgoing};
use super::error::CallError;
use super::masks::Masks;
use super::messages::{Answer, Call, Ticket};

/// The number of a process, counted from 1 in a runner's life.
pub type ProcessId = u64;

/// Something that happened.
#[derive(Debug)]
pub enum Input {
    /// Somebody wants something of the provider.
    Ask(Ticket, Arc<Call>),
    /// Whoever asked no longer waits.
    Abandon(Ticket),
    /// Whoever asked does not want it any more, and waits for how it ends.
    CallBack(Ticket),
    /// The process asked for by `Effect::Start` runs, or does not.
    Started(ProcessId, Result<(), CallError>),
    /// Something of a process.
    Heard(ProcessId, Event),
    /// Processes are to run before anybody asks.
    Warm,
    /// No more calls. What is open has this long to end by itself.
    Close(Duration),
    /// The time `Plan::due` named has come.
    Due,
}

/// What is to be done, in order.
#[derive(Debug)]
pub enum Effect {
    /// Start this process.
    Start(ProcessId),
    /// Hand this frame to the writer of this process.
    Write(ProcessId, Outgoing),
    /// A process has got the frame of this call whole.
    Sent(Ticket),
    /// Close its standard input.
    CloseInput(ProcessId),
    /// Ask its group to stop.
    Terminate(ProcessId),
    /// Kill its group.
    Kill(ProcessId),
    /// Forget it, and kill what is left of its group.
    End(ProcessId),
    /// Answer whoever asked. The process is the one whose last words belong to the error.
    Answer(Ticket, Option<ProcessId>, Result<Answer, CallError>),
    /// Tell whoever asked how far it is.
    Progress(Ticket, Progress),
    /// Say this in the log.
    Note(Note),
    /// Everything has ended after `Input::Close`.
    Closed,
}

/// What is worth a line in the log.
#[derive(Debug, Clone)]
pub enum Note {
    /// A process is ready for calls.
    Ready(ProcessId),
    /// Something odd that changes nothing.
    Odd(ProcessId, String),
    /// An answer came after it was given up.
    Late(ProcessId),
    /// A process wrote a line that is no frame, or a frame that answers nothing.
    BadFrame(ProcessId),
    /// A process ended by itself and will be replaced.
    Crashed(ProcessId, String, Duration),
    /// A process was replaced because a call could not be called back.
    Replaced(ProcessId, String),
    /// A process ended as it should.
    Ended(ProcessId),
    /// The provider is not started any more for a while.
    Failed(Option<ProcessId>, CallError),
}

impl Note {
    /// The same, with every secret covered.
    pub(super) fn masked(self, masks: &Masks) -> Self {
        match self {
            Self::Odd(process, what) => Self::Odd(process, masks.text(&what)),
            Self::Crashed(process, why, delay) => Self::Crashed(process, masks.text(&why), delay),
            Self::Replaced(process, why) => Self::Replaced(process, masks.text(&why)),
            same @ (Self::Ready(_)
            | Self::Late(_)
            | Self::BadFrame(_)
            | Self::Ended(_)
            | Self::Failed(..)) => same,
        }
    }
}
