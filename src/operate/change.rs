//! Who wants a change and why, and what came of it.

use serde::Serialize;
use utoipa::ToSchema;

use super::OperateError;
use super::report::RunStateView;

/// The longest name of somebody who asks, in characters.
pub const MAX_WHO: usize = 200;
/// The longest reason, in characters.
pub const MAX_WHY: usize = 1000;

/// On which way a change was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The control service.
    Message,
    /// The web page.
    Web,
}

impl Via {
    /// The word in the audit.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Web => "web",
        }
    }
}

/// Who wants a change, and why: both said, both of them one line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    who: String,
    why: String,
    via: Via,
}

impl Change {
    /// Checks both texts.
    ///
    /// # Errors
    /// One of them is missing, too long, or holds a control character.
    pub fn new(who: &str, why: &str, via: Via) -> Result<Self, OperateError> {
        Ok(Self { who: line("/who", who, MAX_WHO)?, why: line("/why", why, MAX_WHY)?, via })
    }

    /// Who.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Why.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// How the wish arrived.
    pub const fn via(&self) -> Via {
        self.via
    }
}

fn line(at: &str, text: &str, most: usize) -> Result<String, OperateError> {
    let wrong = |what: String| Err(OperateError::BadInput { at: at.to_owned(), what });
    let text = text.trim();
    if text.is_empty() {
        return wrong("it must be said, since every change carries who wants it and why".to_owned());
    }
    if text.chars().count() > most {
        return wrong(format!("it has more than {most} characters"));
    }
    if text.chars().any(char::is_control) {
        return wrong("it holds a line break or another control character".to_owned());
    }
    Ok(text.to_owned())
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangeReport {
    /// The instance that made it.
    pub instance: String,
    /// Which change.
    pub verb: &'static str,
    /// The host it was about, if it was about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// False when everything was as wished already.
    pub changed: bool,
    /// The run state since then.
    pub run_state: RunStateView,
    /// Hosts in a cycle at this moment; their steps end at the next safe point after a pause, in full when draining.
    pub in_flight: usize,
}
