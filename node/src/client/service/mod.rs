//! The client as a program: actors that own what touches the world and carry events and effects between it and the modules.
//!
//! Nothing one of them says to another waits in a mailbox: it stands on a board or in a lane, the latest under each key, which
//! outlives both (`lane`, `world`).

mod asker;
mod assignments;
mod collections;
mod digest_key;
mod engine;
mod error;
mod lane;
mod looked;
mod metrics;
mod module;
mod modules;
mod reporter;
mod run;
mod seat;
mod settings;
mod show;
mod status;
mod templates;
mod values;
mod vault;
mod world;

pub use digest_key::digest_of;
pub use error::NodeError;
pub use metrics::NodeMetrics;
pub use run::{Running, run};
pub use settings::Settings;
pub use show::ask_status;
pub use status::{Missing, ModuleStatus, Status};
pub use world::Clock;
