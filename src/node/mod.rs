//! The programs of the node side, as verbs.
mod engine;
mod mesh;
mod serve;
mod vault;

pub use engine::{EngineArgs, EngineCommand, engine};
pub use mesh::{MeshCommand, mesh};
pub use vault::{SocketArgs, StoreArgs, VaultArgs, VaultCommand, vault};
