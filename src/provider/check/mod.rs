//! `provider check`: the conformance list, from the provider's side, against any program.
mod cases;
mod command;
mod extensions;
mod report;
mod talk;

pub use command::{Args, run};
