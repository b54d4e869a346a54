//! Values kept in an OpenBao or a HashiCorp Vault, in its key-value store of version 2, instead of the vault's own file.
//!
//! What comes and goes is read in `wire`, plain functions; [`KvClient`] speaks it over https; [`Mark`] is what the vault's own
//! file remembers of a value, so that changes are numbered and said as if the value lay there.
mod auth;
mod client;
mod error;
mod mark;
mod settings;
mod wire;

#[cfg(test)]
mod tests;

pub use client::KvClient;
pub use error::{KvConfigError, KvError};
pub use mark::{Mark, Seen};
pub use settings::{KvAuth, KvSettings};
pub use wire::{Read, Stored};
