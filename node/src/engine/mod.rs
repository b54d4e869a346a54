//! The engine: the one program that writes a machine's files.
mod fault;

pub mod disk;
pub mod ledger;
pub mod managed;
pub mod program;

pub use fault::{Fault, FaultCode};
