//! Why the vault cannot run.

use crate::client::bus::BusError;
use crate::vault::kv::KvConfigError;
use crate::vault::{KeyError, RulesError, StoreError};

/// Why the vault cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The key cannot be had.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rules are none.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The broker's address is none.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The key-value store cannot be used.
    #[error(transparent)]
    Kv(#[from] KvConfigError),
    /// A file of its own cannot be used.
    #[error("cannot use {path}")]
    File {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It started and then could not go on.
    #[error("the vault cannot go on: {why}")]
    Fatal {
        /// Who gave up, and why.
        why: String,
    },
}

impl ServiceError {
    /// True when starting again changes nothing: somebody has to change the configuration.
    pub const fn is_configuration(&self) -> bool {
        !matches!(self, Self::Fatal { .. })
    }
}
