//! Why a call of a provider gave no answer, and what is known of its effect.

use std::fmt;

use quartermaster_proto::provider::{ErrorCode, HostCode, ProviderError};

/// What is known of the effect of a call that failed (provider.md D16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The provider never got it: it may be made again.
    NotSent,
    /// The provider answered that it failed; its code and state say how much was done.
    Failed,
    /// It was sent, and no answer was or will be seen. Never to be repeated, undone or taken for failed by itself.
    Unknown,
}

/// A call that failed. Every text is masked, so that no secret the provider was given stands in it.
#[derive(Debug, Clone)]
pub struct CallError {
    /// What is known of its effect.
    pub outcome: Outcome,
    /// The provider's code, message and detail, or the host's.
    pub error: Box<ProviderError>,
    /// The last lines its process wrote to standard error, oldest first, when they may explain it.
    pub stderr: Vec<String>,
}

impl CallError {
    /// An error that we made.
    pub fn host(outcome: Outcome, code: HostCode, message: impl Into<String>) -> Self {
        Self { outcome, error: Box::new(ProviderError::new(code, message)), stderr: Vec::new() }
    }

    /// A refusal of ours before anything was sent, with a code that is also a provider's.
    pub fn refused(code: ErrorCode, message: impl Into<String>) -> Self {
        let error = Box::new(ProviderError::new(code, message));
        Self { outcome: Outcome::NotSent, error, stderr: Vec::new() }
    }

    /// The provider's own error.
    pub fn answered(error: ProviderError) -> Self {
        Self { outcome: Outcome::Failed, error: Box::new(error), stderr: Vec::new() }
    }

    /// The same error with another outcome.
    #[must_use]
    pub const fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// The same error with its texts changed.
    #[must_use]
    pub fn with_texts(mut self, change: impl Fn(&str) -> String) -> Self {
        self.error.message = change(&self.error.message);
        self.error.detail = self.error.detail.as_deref().map(change);
        self
    }

    /// The code.
    pub const fn code(&self) -> &ErrorCode {
        &self.error.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.error.message
    }

    /// Ours, if we made it.
    pub const fn host_code(&self) -> Option<HostCode> {
        self.error.host_code()
    }

    pub(super) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.error.message = message.into();
        self
    }

    pub(super) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.error.detail = Some(detail.into());
        self
    }

    /// The same error for a call that was not made because of it.
    pub(super) const fn not_sent(mut self) -> Self {
        self.outcome = Outcome::NotSent;
        self
    }

    /// Whether the same end would come of another start: somebody has to change something first.
    pub(super) const fn is_permanent(&self) -> bool {
        matches!(
            self.error.code,
            ErrorCode::Host(
                HostCode::BadSchema
                    | HostCode::UnsupportedProtocol
                    | HostCode::ChecksumMismatch
                    | HostCode::SchemaChanged
            ) | ErrorCode::InvalidConfig
        )
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        match self.outcome {
            Outcome::Unknown => f.write_str(" (whether it was done is unknown)"),
            Outcome::NotSent | Outcome::Failed => Ok(()),
        }
    }
}

impl std::error::Error for CallError {}
