//! Why the store cannot be used.

use crate::vault::seal::SealError;

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file could not be opened, read or written.
    #[error("the vault's store cannot be used")]
    Store(#[source] Box<redb::Error>),
    /// The file cannot be made.
    #[error("the vault's store cannot be made at {path}")]
    File {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The key is not the one the store was sealed with.
    #[error("the vault's store is sealed with another key")]
    OtherKey,
    /// A row is not what was written under its name, or the rows together are not those that were written last.
    #[error("the vault's store was changed by somebody else: {detail}")]
    Tampered {
        /// What does not fit.
        detail: String,
    },
    /// The file is something else, or of another version of this program.
    #[error("the vault's store is damaged: {detail}")]
    Corrupt {
        /// What is wrong.
        detail: String,
    },
    /// Its values are kept somewhere else than what it is asked to be.
    #[error("the vault's store cannot be used so: {detail}")]
    Elsewhere {
        /// What does not fit.
        detail: &'static str,
    },
}

impl StoreError {
    pub(super) fn tampered(detail: impl Into<String>) -> Self {
        Self::Tampered { detail: detail.into() }
    }

    pub(super) fn sealing(what: &str, error: SealError) -> Self {
        match error {
            SealError::OtherKey => Self::OtherKey,
            SealError::Form | SealError::Foreign => Self::tampered(format!("{what}: {error}")),
        }
    }
}

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> Self {
        Self::Store(Box::new(error.into()))
    }
}
