//! What can go wrong with values that are kept elsewhere.

/// Why there is no value, and why that is no sign that there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// It could not be asked, it is sealed, or what it said is no answer.
    #[error("the key-value store gives no answer: {0}")]
    Silent(String),
    /// It does not let the vault at this name, or what it holds there is no value.
    #[error("the key-value store: {0}")]
    Refused(String),
    /// Somebody else wrote at the same time.
    #[error("the key-value store was written by somebody else at the same time")]
    Raced,
}

impl KvError {
    pub(super) fn silent(why: impl Into<String>) -> Self {
        Self::Silent(why.into())
    }
}

/// Why the key-value store cannot be used as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum KvConfigError {
    /// The address is none, or would carry secrets in the clear.
    #[error("`{0}` is no address of a key-value store: https://HOST:PORT, or http:// to this machine itself")]
    Address(String),
    /// The mount's name is none.
    #[error("`{0}` is no mount of a key-value store")]
    Mount(String),
    /// A file cannot be used.
    #[error("cannot use {path}")]
    File {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Others may read the file of a credential.
    #[error("{path} has mode {mode:04o}, but a credential's file must have 0400 or 0600")]
    TooOpen {
        /// Where.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The certificates are none.
    #[error("{path} holds no certificates in PEM")]
    Certificates {
        /// Where.
        path: String,
    },
    /// No client could be made.
    #[error("no https client can be made: {0}")]
    Client(String),
}
