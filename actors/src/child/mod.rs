//! Child processes, whoever they serve: started in a group of their own, talked to, ended with everything they started.
//!
//! [`Leader`] is one process, [`execute()`] a whole run of one that reads, answers and exits, `plan.rs` decides over such a run's
//! life, and [`Orphans`] sees to what leaves its group.
mod environment;
mod error;
mod execute;
mod launch;
mod leader;
mod orphans;
mod plan;
mod procfs;
mod stderr;

#[cfg(test)]
mod tests;

pub use environment::allowed_environment;
pub use error::RunError;
pub use execute::{Execution, RunLimits, execute};
pub use launch::Launch;
pub use leader::{Leader, Pipes};
pub use orphans::{Orphans, OwnChild, RunMark};
pub use plan::{Ending, KILL_WAIT};
pub use stderr::printable;
