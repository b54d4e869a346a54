//! The programs of the node side, as verbs.
mod engine;
mod mesh;
mod serve;

pub use engine::{EngineArgs, EngineCommand, engine};
pub use mesh::{MeshCommand, mesh};
