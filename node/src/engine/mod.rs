//! The engine: the one program that writes a machine's files.
mod fault;

pub mod disk;
pub mod managed;

pub use fault::{Fault, FaultCode};
