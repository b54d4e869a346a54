//! The programs of the node side, as verbs.
mod engine;
mod serve;

pub use engine::{EngineArgs, EngineCommand, engine};
