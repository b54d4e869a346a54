//! Why an operator's wish was not carried out.

use quartermaster_actors::supervise::{AskError, SendRefused};

/// Why a question was not answered or a change not made. [`OperateError::code`] is for machines and never changes.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// The request itself is wrong.
    #[error("{at}: {what}")]
    BadInput {
        /// Which part of it, as a JSON pointer such as `/who`; empty for the whole.
        at: String,
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// No such host is known here.
    #[error("no host `{name}` is known here")]
    UnknownHost {
        /// The name that was asked for.
        name: String,
    },
    /// The host may have been configured already and is about to be restarted; it cannot be let go of now.
    #[error("`{name}` is between configure and restart and is let go of in a moment: try again then")]
    Committed {
        /// The host.
        name: String,
    },
    /// Nothing of the kind is done in the present run state.
    #[error("not now: this instance is {state}")]
    NotNow {
        /// The run state as a sentence.
        state: String,
    },
    /// The part that would have to do it has too much to do.
    #[error("too much is asked at the moment: try again")]
    Busy,
    /// The part that would have to do it is down or silent.
    #[error("the part of this instance that does this does not answer")]
    Unavailable(#[source] AskError),
    /// The same, of something that is told rather than asked.
    #[error("the part of this instance that does this does not listen")]
    Unheard(#[source] SendRefused),
}

impl OperateError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::BadInput { .. } => "bad_input",
            Self::UnknownHost { .. } => "unknown_host",
            Self::Committed { .. } => "committed",
            Self::NotNow { .. } => "not_now",
            Self::Busy => "busy",
            Self::Unavailable(_) | Self::Unheard(_) => "unavailable",
        }
    }

    /// The number that goes with it, with the meaning it has in HTTP.
    pub const fn status(&self) -> u16 {
        match self {
            Self::BadInput { .. } => 400,
            Self::UnknownHost { .. } => 404,
            Self::Committed { .. } | Self::NotNow { .. } => 409,
            Self::Busy => 429,
            Self::Unavailable(_) | Self::Unheard(_) => 503,
        }
    }

    /// Where in the request the fault is, as a JSON pointer; none when the request is right.
    pub fn at(&self) -> Option<&str> {
        match self {
            Self::BadInput { at, .. } => Some(at),
            _ => None,
        }
    }
}

impl From<AskError> for OperateError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Full { .. } => Self::Busy,
            other => Self::Unavailable(other),
        }
    }
}

impl From<SendRefused> for OperateError {
    fn from(error: SendRefused) -> Self {
        match error {
            SendRefused::Full { .. } => Self::Busy,
            other @ SendRefused::Down { .. } => Self::Unheard(other),
        }
    }
}
