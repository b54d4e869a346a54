//! The programs of the node side, as verbs.
mod bench;
mod client;
mod demo;
mod engine;
mod mesh;
mod numbers;
mod offline;
mod serve;
mod status;
mod vault;
mod vault_kv;

pub use client::{NodeArgs, NodeCommand, node};
pub use demo::{DemoArgs, demo};
pub use engine::{EngineArgs, EngineCommand, engine};
pub use mesh::{MeshArgs, MeshCommand, mesh};
pub use vault::{SocketArgs, StoreArgs, VaultArgs, VaultCommand, vault};
pub use vault_kv::KvArgs;
