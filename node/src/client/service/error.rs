//! Why the client cannot run.

use crate::client::{
    bus::{BusError, CredentialsError},
    templates::CacheError,
};

/// Why the client cannot run.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// It needs no right that root has, and holds secrets.
    #[error("the client is not run as root: give it an account of its own (--allow-root for tests)")]
    Root,
    /// Another client runs on this machine.
    #[error("another client holds the seat of this machine ({path})")]
    Seat {
        /// The lock.
        path: String,
    },
    /// The account's credential cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The broker's address is none.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A file or folder of its own cannot be made or read.
    #[error("cannot use {path}")]
    File {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The key for digests is not one.
    #[error("{path} holds no key of 32 bytes")]
    DigestKey {
        /// Where.
        path: String,
    },
    /// Nobody tells the status there.
    #[error("no client answers on {path}")]
    NoInstance {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It started and then could not go on.
    #[error("the client cannot go on: {why}")]
    Fatal {
        /// Who gave up, and why.
        why: String,
    },
}

impl NodeError {
    /// True when starting again changes nothing: somebody has to change the configuration.
    pub const fn is_configuration(&self) -> bool {
        !matches!(self, Self::Fatal { .. } | Self::Seat { .. } | Self::NoInstance { .. })
    }

    /// True when another client runs on this machine.
    pub const fn is_taken(&self) -> bool {
        matches!(self, Self::Seat { .. })
    }
}
