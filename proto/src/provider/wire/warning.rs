//! What was forgiven while reading.

use crate::text::escape_bounded;

/// Something that was read though it is not as it should be. Worth one line in the log for each kind and provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A name stands twice in one object; the last value counts.
    #[error("`{name}` stands twice in one object, the last one counts")]
    Repeated {
        /// The name, escaped and cut.
        name: String,
    },
    /// Half a surrogate pair was read as U+FFFD.
    #[error("half a character pair in a string was replaced")]
    Replaced,
    /// A member of ours has a shape that is not known, and was ignored.
    #[error("`{member}` is not understood and was ignored")]
    Ignored {
        /// The member.
        member: &'static str,
    },
    /// `protocol` is the number 1 where the text "1" belongs.
    #[error("`protocol` is the number 1, it should be the text \"1\"")]
    ProtocolNumber,
    /// The outputs stand bare where an object with `outputs` belongs.
    #[error("the outputs stand bare, they belong in a member `outputs`")]
    BareOutputs,
    /// A frame without an id that says nothing known; it was dropped.
    #[error("a frame without an id was dropped, its method is {method}")]
    Dropped {
        /// The method, escaped and cut; `absent` when there is none.
        method: String,
    },
    /// A remark on the schema.
    #[error("{place}: {message}")]
    Schema {
        /// Where, such as `config.retries`.
        place: String,
        /// What is odd there.
        message: String,
    },
    /// An undo names an action that the schema does not have.
    #[error("the undo calls `{action}`, which the schema does not have")]
    UndeclaredUndo {
        /// The action, escaped and cut.
        action: String,
    },
}

/// Something read, and what was forgiven on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read<T> {
    /// What was read.
    pub value: T,
    /// What was forgiven.
    pub warnings: Vec<Warning>,
}

/// A stranger's name, safe and short enough for a log line.
pub fn shown(name: &str) -> String {
    escape_bounded(name, 60)
}
