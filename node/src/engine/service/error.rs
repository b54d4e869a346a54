//! Why the engine cannot run.

use crate::engine::disk::PathError;
use crate::engine::ledger::LedgerError;

/// Why the engine cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Its ledger cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A root is no plain absolute path.
    #[error("the root {root:?} is none")]
    Root {
        /// The root.
        root: String,
        /// Why.
        #[source]
        source: PathError,
    },
    /// The account whose client may ask does not exist.
    #[error("the client's account cannot be found")]
    Client(#[from] crate::engine::Fault),
    /// A file or folder of its own cannot be made or read.
    #[error("cannot use {path}")]
    File {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The socket cannot be listened on.
    #[error("cannot listen on {path}")]
    Socket {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The broker's address is none.
    #[error(transparent)]
    Bus(#[from] crate::client::bus::BusError),
    /// It started and then could not go on.
    #[error("the engine cannot go on: {why}")]
    Fatal {
        /// Who gave up, and why.
        why: String,
    },
}

impl EngineError {
    /// True when starting again changes nothing: somebody has to change the configuration.
    pub const fn is_configuration(&self) -> bool {
        !matches!(self, Self::Fatal { .. } | Self::Socket { .. })
    }
}
