//! What can be wrong with a `--fault` value.

/// Why a `--fault` value is no plan.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FaultError {
    /// An entry without `=WHO`.
    #[error(
        "fault `{entry}` does not say which servers: write {entry}=0.1, {entry}=all or {entry}=@identity"
    )]
    NoSelection {
        /// The entry as given.
        entry: String,
    },
    /// WHO is no share, no `all` and no `@identity`.
    #[error("`{value}` in fault `{entry}` is neither a share between 0 and 1, nor `all`, nor `@identity`")]
    BadSelection {
        /// The entry as given.
        entry: String,
        /// The part after `=`.
        value: String,
    },
    /// A kind nobody knows.
    #[error("there is no fault `{name}`; the nearest is `{nearest}`")]
    Unknown {
        /// The kind as given.
        name: String,
        /// The known kind that looks most like it.
        nearest: String,
    },
    /// An argument that does not fit the kind.
    #[error("`{argument}` is no argument for fault `{kind}`: expected {expected}")]
    BadArgument {
        /// The kind.
        kind: String,
        /// The argument as given.
        argument: String,
        /// What would fit.
        expected: &'static str,
    },
    /// An action no server has.
    #[error("there is no action `{action}` in fault `{entry}`; the nearest is `{nearest}`")]
    UnknownAction {
        /// The entry as given.
        entry: String,
        /// The action as given.
        action: String,
        /// The known action that looks most like it.
        nearest: String,
    },
    /// A kind that does not belong to single replies, with an action; or a malformation with an action it never shows in.
    #[error("fault `{kind}` cannot be narrowed to action `{action}`: {why}")]
    NotNarrowable {
        /// The kind.
        kind: String,
        /// The action as given.
        action: String,
        /// What it is about instead.
        why: String,
    },
}
