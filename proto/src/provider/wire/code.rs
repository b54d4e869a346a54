//! Codes of errors.

use std::fmt;

use crate::text::escape_bounded;

/// What kind of error ended a call. The set is open: providers may use codes of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// `invalid_request`: malformed, or not understood.
    InvalidRequest,
    /// `unknown_method`.
    UnknownMethod,
    /// `unknown_action`.
    UnknownAction,
    /// `not_configured`: execute came before configure.
    NotConfigured,
    /// `invalid_config`: refused before anything was done.
    InvalidConfig,
    /// `invalid_attrs`: refused before anything was done.
    InvalidAttrs,
    /// `not_found`: the target has no such thing; on an undo that counts as undone.
    NotFound,
    /// `conflict`: the target has something in the way.
    Conflict,
    /// `denied`: the target does not allow it.
    Denied,
    /// `unavailable`: nothing was done, later it may work.
    Unavailable,
    /// `rate_limited`: nothing was done, later it may work.
    RateLimited,
    /// `cancelled`: stopped on request.
    Cancelled,
    /// `failed`: anything else; something may have been done.
    Failed,
    /// `internal`: a fault of the provider; something may have been done.
    Internal,
    /// A provider's own code, treated as `failed`.
    Other(Box<str>),
    /// An error that the host itself makes. A provider cannot write one: read from the wire these texts are [`ErrorCode::Other`].
    Host(HostCode),
}

/// Errors that the host makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostCode {
    /// The process could not be started.
    SpawnFailed,
    /// The schema is not usable.
    BadSchema,
    /// The provider speaks another protocol, or needs an extension that is refused.
    UnsupportedProtocol,
    /// The binary is not the one that was pinned.
    ChecksumMismatch,
    /// No answer in time.
    Timeout,
    /// The process ended.
    Exited,
    /// A line that is no frame, or an answer that fits no call.
    BadFrame,
    /// A line over the limit.
    FrameTooLarge,
    /// Outputs that are not as declared.
    BadOutputs,
    /// A restarted provider has another schema.
    SchemaChanged,
    /// Too many calls wait.
    Overloaded,
    /// The provider is being shut down.
    Closed,
}

/// Codes and their texts.
const CODES: [(ErrorCode, &str); 14] = [
    (ErrorCode::InvalidRequest, "invalid_request"),
    (ErrorCode::UnknownMethod, "unknown_method"),
    (ErrorCode::UnknownAction, "unknown_action"),
    (ErrorCode::NotConfigured, "not_configured"),
    (ErrorCode::InvalidConfig, "invalid_config"),
    (ErrorCode::InvalidAttrs, "invalid_attrs"),
    (ErrorCode::NotFound, "not_found"),
    (ErrorCode::Conflict, "conflict"),
    (ErrorCode::Denied, "denied"),
    (ErrorCode::Unavailable, "unavailable"),
    (ErrorCode::RateLimited, "rate_limited"),
    (ErrorCode::Cancelled, "cancelled"),
    (ErrorCode::Failed, "failed"),
    (ErrorCode::Internal, "internal"),
];

impl HostCode {
    /// Every code of the host.
    pub const ALL: [Self; 12] = [
        Self::SpawnFailed,
        Self::BadSchema,
        Self::UnsupportedProtocol,
        Self::ChecksumMismatch,
        Self::Timeout,
        Self::Exited,
        Self::BadFrame,
        Self::FrameTooLarge,
        Self::BadOutputs,
        Self::SchemaChanged,
        Self::Overloaded,
        Self::Closed,
    ];

    /// The code's text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SpawnFailed => "host.spawn_failed",
            Self::BadSchema => "host.bad_schema",
            Self::UnsupportedProtocol => "host.unsupported_protocol",
            Self::ChecksumMismatch => "host.checksum_mismatch",
            Self::Timeout => "host.timeout",
            Self::Exited => "host.exited",
            Self::BadFrame => "host.bad_frame",
            Self::FrameTooLarge => "host.frame_too_large",
            Self::BadOutputs => "host.bad_outputs",
            Self::SchemaChanged => "host.schema_changed",
            Self::Overloaded => "host.overloaded",
            Self::Closed => "host.closed",
        }
    }
}

impl ErrorCode {
    /// The codes that providers are advised to use.
    pub fn advised() -> impl Iterator<Item = Self> {
        CODES.into_iter().map(|(code, _)| code)
    }

    /// A code from the wire.
    pub fn from_wire(text: &str) -> Self {
        let known = CODES.into_iter().find(|(_, name)| *name == text);
        known.map_or_else(|| Self::Other(text.into()), |(code, _)| code)
    }

    /// The code's text; a provider's own code exactly as it was written.
    pub fn as_str(&self) -> &str {
        if let Self::Other(text) = self { text } else { self.label() }
    }

    /// The code's text from a fixed set, for a metric's label: a provider's own code is `other`.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Other(_) => "other",
            Self::Host(code) => code.as_str(),
            known => CODES.iter().find(|(code, _)| code == known).map_or("other", |(_, text)| text),
        }
    }

    /// The code by whose rules this one is treated: its own, and `failed` for a provider's own.
    #[must_use]
    pub fn treated_as(&self) -> Self {
        if let Self::Other(_) = self { Self::Failed } else { self.clone() }
    }

    /// Whether a retry policy may repeat the call: nothing was done, and later it may work.
    pub const fn may_retry(&self) -> bool {
        matches!(self, Self::Unavailable | Self::RateLimited)
    }

    /// Whether an undo that ends with this is done all the same.
    pub const fn is_undone(&self) -> bool {
        matches!(self, Self::NotFound)
    }

    /// Whether the code alone says that nothing was done.
    pub const fn nothing_done(&self) -> bool {
        !matches!(self, Self::Cancelled | Self::Failed | Self::Internal | Self::Other(_) | Self::Host(_))
    }
}

impl From<HostCode> for ErrorCode {
    fn from(code: HostCode) -> Self {
        Self::Host(code)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&escape_bounded(self.as_str(), 60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_from_its_text() {
        for code in ErrorCode::advised() {
            assert_eq!(ErrorCode::from_wire(code.as_str()), code);
        }
    }

    #[test]
    fn a_code_of_its_own_is_kept_and_treated_as_failed() {
        let code = ErrorCode::from_wire("quota_exhausted");
        assert_eq!(
            (code.as_str(), code.treated_as(), code.may_retry()),
            ("quota_exhausted", ErrorCode::Failed, false)
        );
    }

    #[test]
    fn a_provider_cannot_pose_as_the_host() {
        for code in HostCode::ALL {
            assert_eq!(ErrorCode::from_wire(code.as_str()), ErrorCode::Other(code.as_str().into()));
            assert!(code.as_str().starts_with("host."));
        }
    }

    #[test]
    fn a_policy_may_repeat_only_what_did_nothing_and_may_work_later() {
        let may: Vec<_> = ErrorCode::advised().filter(ErrorCode::may_retry).collect();
        assert_eq!(may, [ErrorCode::Unavailable, ErrorCode::RateLimited]);
        let undone: Vec<_> = ErrorCode::advised().filter(ErrorCode::is_undone).collect();
        assert_eq!(undone, [ErrorCode::NotFound]);
        let unsure: Vec<_> = ErrorCode::advised().filter(|code| !code.nothing_done()).collect();
        assert_eq!(unsure, [ErrorCode::Cancelled, ErrorCode::Failed, ErrorCode::Internal]);
    }

    #[test]
    fn a_code_prints_on_one_line() {
        assert_eq!(ErrorCode::from_wire("a\nb").to_string(), "a\\nb");
        assert_eq!(ErrorCode::from_wire(&"x".repeat(99)).to_string().chars().count(), 60);
    }
}
