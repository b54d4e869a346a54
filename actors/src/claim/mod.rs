//! Several instances that all work: a host belongs to whoever has claimed it, by a compare-and-set on its key in a
//! JetStream bucket whose values expire. JetStream does the distribution; there is no engine of our own.
mod actor;
mod board;
mod handle;
mod lease;
mod messages;
mod record;
mod settings;
mod shared;
#[cfg(test)]
mod tests;

pub use actor::ClaimKeeper;
pub use handle::{Claim, ClaimHandle};
pub use messages::{ClaimSnapshot, LeaveCluster};
pub use settings::ClaimSettings;
