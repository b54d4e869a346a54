//! The engine: the one program that writes a machine's files.
mod declaration;
mod fault;
mod keeper;
mod plan;
mod removal;
mod round;
mod wire;

pub mod disk;
pub mod ledger;
pub mod managed;
pub mod program;
pub mod service;

#[cfg(test)]
mod tests;

pub use declaration::{Declaration, Declarations, DeclaredFile, Standing, Writing};
pub use fault::{Fault, FileCode};
pub use keeper::{Done, Keeper, Outcome};
pub use plan::{Action, Filled};
pub use removal::{Taken, TakenHow};
