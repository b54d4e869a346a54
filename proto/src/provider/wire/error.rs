//! What a call ends with when it does not end well.

use std::time::Duration;

use crate::time::whole_ms;

use crate::{
    provider::values::{Members, Part, Path, Value},
    text::escape_bounded,
};

use super::{
    code::{ErrorCode, HostCode},
    execute::Invocation,
    names,
    warning::Warning,
};

/// Longest message printed, in characters; the field holds all of it.
const MAX_SHOWN: usize = 200;

/// How a call failed: the provider's words, or the host's.
///
/// A message may repeat what the provider was given; whoever logs it passes it through a [`Mask`](super::Mask) first. Printed
/// as code and message, escaped and cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {}", escape_bounded(message, MAX_SHOWN))]
pub struct ProviderError {
    /// What kind.
    pub code: ErrorCode,
    /// In short, as it was written.
    pub message: String,
    /// At length, as it was written.
    pub detail: Option<String>,
    /// What our own members say.
    pub more: Box<More>,
}

/// What an error says in members of ours (`x_…`), which nobody has to write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct More {
    /// When to try again, if the provider says so.
    pub retry_after: Option<Duration>,
    /// How much was done, if the provider says so.
    pub state: Option<DoneState>,
    /// The calls that clear what was done, in order.
    pub undo: Vec<Invocation>,
    /// What is wrong with single attributes.
    pub diagnostics: Vec<Diagnostic>,
}

/// How much of a failed call was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoneState {
    /// Nothing.
    None,
    /// Some of it.
    Partial,
    /// All of it.
    Done,
}

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It cannot work.
    Error,
    /// It may not be meant.
    Warning,
}

/// A remark on one attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about; empty for the call as a whole.
    pub path: Path,
    /// What is wrong, as it was written.
    pub message: String,
}

impl ProviderError {
    /// An error without detail.
    pub fn new(code: impl Into<ErrorCode>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), detail: None, more: Box::default() }
    }

    /// The same with a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same with how much was done.
    #[must_use]
    pub fn with_state(mut self, state: DoneState) -> Self {
        self.more.state = Some(state);
        self
    }

    /// The host's code, if the host made this error.
    pub const fn host_code(&self) -> Option<HostCode> {
        if let ErrorCode::Host(code) = self.code { Some(code) } else { None }
    }

    /// Reads the `error` member. Code and message may be missing, as Go's decoder has it; what else is wrong with them is the
    /// member's name. Members of ours that are not understood are ignored.
    pub(super) fn from_wire(error: &Value, warnings: &mut Vec<Warning>) -> Result<Self, &'static str> {
        let members = error.as_object().ok_or(names::ERROR)?;
        let text = |name| match members.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.to_string())),
            Some(_) => Err(name),
        };
        let code = ErrorCode::from_wire(&text(names::CODE)?.unwrap_or_default());
        let mut found = Self::new(code, text(names::MESSAGE)?.unwrap_or_default());
        found.detail = text(names::DETAIL)?.filter(|detail| !detail.is_empty());
        found.more.retry_after = ours(members, names::RETRY_AFTER_MS, warnings, |value| {
            value.as_number()?.as_u64().map(Duration::from_millis)
        });
        found.more.state =
            ours(members, names::STATE, warnings, |value| DoneState::from_wire(value.as_str()?));
        found.more.undo =
            ours(members, names::ERROR_UNDO, warnings, Invocation::list_from_wire).unwrap_or_default();
        found.more.diagnostics =
            ours(members, names::ERROR_DIAGNOSTICS, warnings, Diagnostic::list_from_wire).unwrap_or_default();
        Ok(found)
    }

    /// The `error` member.
    pub(super) fn to_part(&self) -> Part<'_> {
        let mut fields =
            vec![(names::CODE, Part::Text(self.code.as_str())), (names::MESSAGE, Part::Text(&self.message))];
        if let Some(detail) = &self.detail {
            fields.push((names::DETAIL, Part::Text(detail)));
        }
        if let Some(wait) = self.more.retry_after {
            fields.push((names::RETRY_AFTER_MS, Part::Count(whole_ms(wait))));
        }
        if let Some(state) = self.more.state {
            fields.push((names::STATE, Part::Text(state.as_str())));
        }
        if let Some(undo) = Invocation::list_to_part(&self.more.undo) {
            fields.push((names::ERROR_UNDO, undo));
        }
        if !self.more.diagnostics.is_empty() {
            fields.push((names::ERROR_DIAGNOSTICS, Diagnostic::list_to_part(&self.more.diagnostics)));
        }
        Part::Fields(fields)
    }
}

/// Reads a member of ours, which nobody has to write: absent or null is none, a shape that is not known is ignored with a warning.
fn ours<T>(
    members: &Members,
    member: &'static str,
    warnings: &mut Vec<Warning>,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let value = members.get(member).filter(|value| !value.is_null())?;
    let found = read(value);
    if found.is_none() {
        warnings.push(Warning::Ignored { member });
    }
    found
}

impl DoneState {
    const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Done => "done",
        }
    }

    fn from_wire(text: &str) -> Option<Self> {
        [Self::None, Self::Partial, Self::Done].into_iter().find(|state| state.as_str() == text)
    }
}

impl Severity {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl Diagnostic {
    /// A list of diagnostics; `None` when one has another shape.
    pub(super) fn list_from_wire(value: &Value) -> Option<Vec<Self>> {
        value.as_list()?.iter().map(Self::from_wire).collect()
    }

    fn from_wire(value: &Value) -> Option<Self> {
        let members = value.as_object()?;
        let severity = match members.get(names::SEVERITY).map(Value::as_str) {
            None => Severity::Error,
            Some(text) => {
                [Severity::Error, Severity::Warning].into_iter().find(|one| text == Some(one.as_str()))?
            }
        };
        let path = match members.get(names::PATH) {
            None | Some(Value::Null) => Path::default(),
            Some(path) => Path::from_value(path)?,
        };
        Some(Self { severity, path, message: members.get(names::MESSAGE)?.as_str()?.to_owned() })
    }

    pub(super) fn list_to_part(diagnostics: &[Self]) -> Part<'_> {
        let each = diagnostics.iter().map(|one| {
            Part::Fields(vec![
                (names::SEVERITY, Part::Text(one.severity.as_str())),
                (names::PATH, one.path.to_part()),
                (names::MESSAGE, Part::Text(&one.message)),
            ])
        });
        Part::List(each.collect())
    }
}
