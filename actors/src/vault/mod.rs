//! The vault: the one place that reads private keys, tokens and passwords, and does with them what the rest of the process
//! needs done.
//!
//! [`VaultKeeper`] is the actor in front: it admits a bounded number of requests. The work itself, signing above all, runs
//! on a [`SyncArbiter`](actix::SyncArbiter) of threads of its own, so that no actor thread ever waits for a signature or a
//! disk. Files are looked at again at each use, and read again when they changed: a renewed certificate, key or token needs
//! no restart. [`examine()`] finds every fault beforehand, for `quartermaster check` and for the start.
//!
//! Nothing here shows a secret: every type's `Debug` and every error is free of key material, tokens and passwords.
mod actor;
mod error;
mod examine;

mod files;
mod handle;
mod messages;
mod nats;
mod outside;
mod settings;
mod signed;
mod store;
mod tls;
mod worker;

#[cfg(test)]
mod tests;

pub use actor::VaultKeeper;
pub use error::VaultError;
pub use examine::{Severity, VaultFault, examine};

pub use handle::VaultHandle;
pub use messages::{Login, SealedKey};
pub use outside::{NoRandomness, Outside};
pub use settings::{ClientTls, Security, TlsMode, VaultSettings};
pub use tls::Unverified;
