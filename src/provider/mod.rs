//! `quartermaster provider …`: is this binary a good provider, what does it declare, which digest has it.
mod check;
mod command;
mod lock;
mod program;
mod schema;

pub use command::{ProviderCommand, run};
