//! `quartermaster provider …`: is this binary a good provider, what does it declare, which digest has it.
mod builtin;
mod check;
mod command;
mod confined;
mod lock;
mod program;
mod replay;
mod schema;
mod schemas;
mod trace;
mod wrap;

pub use command::{ProviderCommand, run};
pub use confined::launcher;
pub(crate) use program::explained;
pub(crate) use schemas::{Asked, ask, cache};
pub use trace::{From, TraceError, TraceFile, Traced};
