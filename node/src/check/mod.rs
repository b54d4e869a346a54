//! A plan and its templates, looked at together before any value is there: what they need, and whether they can ever be
//! filled.

mod prepare;
mod read;
mod resolve;
mod want;

pub use prepare::{Attached, Prepared, PreparedFile, PreparedItem, faults, prepare};
pub use read::{Source, Sources, needs, read};
pub(crate) use resolve::secret_of;
pub use resolve::{CheckError, Meaning, ValueFault};
pub use want::Want;

#[cfg(test)]
mod tests;
