//! Why the ledger cannot be used.

/// Why the ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store could not be opened, read or written.
    #[error("the engine's ledger cannot be used")]
    Store(#[source] Box<redb::Error>),
    /// What it holds is not what this version writes.
    #[error("the engine's ledger is damaged: {detail}")]
    Corrupt {
        /// What is wrong.
        detail: String,
    },
    /// Its file cannot be made.
    #[error("the engine's ledger cannot be made at {path}")]
    File {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl LedgerError {
    pub(super) fn corrupt(detail: impl Into<String>) -> Self {
        Self::Corrupt { detail: detail.into() }
    }
}

impl<E: Into<redb::Error>> From<E> for LedgerError {
    fn from(error: E) -> Self {
        Self::Store(Box::new(error.into()))
    }
}
