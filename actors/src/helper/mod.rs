//! Runs the site's helper, once per host: a process of its own for each run, its input on standard input, its reply on
//! standard output.
//!
//! [`HelperRunner`] owns the slots and the queue, [`execute()`] is one run, `plan.rs` decides over its life, and [`Orphans`] sees to
//! what a helper leaves behind. Nothing here knows what a reply means.
mod actor;
mod board;
mod error;
mod execute;
mod handle;
mod messages;
mod orphans;
mod plan;
mod process;
mod procfs;
mod settings;
mod stderr;

#[cfg(test)]
mod tests;

pub use actor::{FactSink, HelperParts, HelperRunner};
pub use board::{EndedHelper, HelperSnapshot, RunningHelper};
pub use error::{HelperError, Retry};
pub use execute::{Execution, execute, longest};
pub use handle::HelperHandle;
#[cfg(feature = "testing")]
pub use messages::PanicInRun;
pub use messages::{HelperRun, RunHelper};
pub use orphans::{Orphans, OwnChild};
pub use plan::Ending;
pub use settings::{
    DEFAULT_ENVIRONMENT, DEFAULT_GRACE, DEFAULT_MAX_STDOUT, DEFAULT_PIPE_GRACE, DEFAULT_TIMEOUT,
    HelperSettings, allowed_environment,
};
