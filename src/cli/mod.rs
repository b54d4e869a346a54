//! The command line: verbs, their arguments, and who answers them.

mod command;
mod documents;
pub mod out;
mod run;

pub use command::{Cli, Command, HelperCommand, LogArgs, main};
pub use documents::{CompletionsArgs, ManArgs};
pub use run::RunArgs;
