//! What the engine knows of its own work: which files it wrote and what was in them, which folders it made, which programs
//! have yet to be told.
mod entry;
mod error;
mod held;
mod store;

#[cfg(test)]
mod tests;

pub use entry::{Entry, Kept, Owed, Row};
pub use error::LedgerError;
pub use held::Ledger;
pub use store::Store;
