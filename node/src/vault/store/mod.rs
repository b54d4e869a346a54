//! The vault's file: sealed values with their versions, and what has yet to be said of their changes.
mod error;
mod file;
mod head;
mod shape;

#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use file::Store;
pub use shape::{Held, Listed, Notice, Value};
