//! The vault: it holds the secrets of a mesh and hands each to whom the plans name, sealed to a key of the asker's.
//!
//! In reading order: [`StoreKey`], the [`Store`] with its sealed rows, the [`Rules`] of a site, the policy over the [`Mirror`]
//! of assignments, the [`Audit`], and [`Vault`], which joins them. Values may be kept in a key-value store elsewhere instead, see [`kv`]. No bus and no
//! socket comes into these; [`service`] is what runs on them.
mod audit;
mod core;
mod kept;
mod key;
mod policy;
mod rules;
mod seal;
mod store;
mod unaddressed;

pub mod kv;
pub mod service;

#[cfg(test)]
mod tests;

pub use self::core::{AdminError, Asked, MADE_BYTES, MAX_RANDOM_BYTES, Vault, VaultError, box_key};
pub use audit::{Audit, Operation, Record, Verdict as AuditVerdict, stamp};
pub use kept::keep_to;
pub use key::{KEY_BYTES, KeyError, StoreKey};
pub use policy::{Mirror, Verdict, may_get, may_put, readers};
pub use rules::{Rules, RulesError};
pub use store::{Held, Listed, Notice, Store, StoreError, Value};
