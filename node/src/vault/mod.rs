//! The vault: it holds the secrets of a mesh and hands each to whom the plans name, sealed to a key of the asker's.
mod key;
mod seal;
mod store;

pub use key::{KeyError, StoreKey};
pub use store::{Held, Listed, Notice, Store, StoreError, Value};
