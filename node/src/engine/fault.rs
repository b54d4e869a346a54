//! Why one file was not written.

use std::fmt;

pub use quartermaster_proto::mesh::fill::FileCode;

/// A fault with the sentence that tells it. The sentence names paths and keys, never content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// What kind of fault it is.
    pub code: FileCode,
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
    pub fn new(code: FileCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// What a call of the system said while something was being done.
    pub(super) fn system(doing: &str, error: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        let code = match error {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => FileCode::NoSpace,
            Errno::LOOP => FileCode::PathRefused,
            _ => FileCode::Io,
        };
        Self::new(code, format!("{doing}: {error}"))
    }
}
