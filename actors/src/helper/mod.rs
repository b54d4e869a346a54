//! Runs the site's helper, once per host: a process of its own for each run, its input on standard input, its reply on
//! standard output; or one call of a provider that lives on.
//!
//! [`HelperRunner`] owns the slots and the queue, [`execute()`] is one run; how a process lives and ends is [`crate::child`]'s.
//! Nothing here knows what a reply means.
mod actor;
mod board;
mod error;
mod execute;
mod handle;
mod messages;
mod provided;
mod settings;

pub use crate::child::{Ending, Execution, Orphans, OwnChild, allowed_environment};
pub use actor::{FactSink, HelperParts, HelperRunner};
pub use board::{EndedHelper, HelperSnapshot, RunningHelper};
pub use error::{HelperError, Retry};
pub use execute::{execute, longest};
pub use handle::HelperHandle;
#[cfg(feature = "testing")]
pub use messages::PanicInRun;
pub use messages::{HelperRun, RunHelper};
pub use settings::{
    DEFAULT_ENVIRONMENT, DEFAULT_GRACE, DEFAULT_MAX_STDOUT, DEFAULT_PIPE_GRACE, DEFAULT_TIMEOUT,
    HelperSettings,
};
