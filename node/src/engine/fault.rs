//! Why one file was not written.

use std::fmt;

/// What kind of fault it is, as it is said on the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCode {
    /// The engine's own copy of the declaration does not name the path.
    NotDeclared,
    /// The content is not what its hash says.
    HashMismatch,
    /// The path leads through something that is not followed, or out of the roots.
    PathRefused,
    /// Another module holds the path.
    PathTaken,
    /// A managed file, or our part of it, cannot be read as its format.
    ManagedDamaged,
    /// The declared owner or group does not exist here.
    NoSuchUser,
    /// The disk is full, or a limit of size is reached.
    NoSpace,
    /// Anything else the file system said.
    Io,
}

impl FaultCode {
    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotDeclared => "not-declared",
            Self::HashMismatch => "hash-mismatch",
            Self::PathRefused => "path-refused",
            Self::PathTaken => "path-taken",
            Self::ManagedDamaged => "managed-damaged",
            Self::NoSuchUser => "no-such-user",
            Self::NoSpace => "no-space",
            Self::Io => "io",
        }
    }
}

/// A fault with the sentence that tells it. The sentence names paths and keys, never content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// What kind of fault it is.
    pub code: FaultCode,
    /// The sentence.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Fault {
    /// A fault of this kind.
    pub fn new(code: FaultCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// What a call of the system said while something was being done.
    pub(super) fn system(doing: &str, error: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        let code = match error {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => FaultCode::NoSpace,
            Errno::LOOP => FaultCode::PathRefused,
            _ => FaultCode::Io,
        };
        Self::new(code, format!("{doing}: {error}"))
    }
}
