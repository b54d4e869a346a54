//! The engine: the one program that writes a machine's files.
pub mod managed;
