//! The engine at work: the socket it listens on, the folder it reads declarations from, and the keeper behind both.
mod actor;
mod error;
mod folder;
mod handle;
mod listener;
mod messages;
mod metrics;
mod mirror;
mod run;
mod settings;
mod socket;
mod status;
mod writer;

#[cfg(test)]
mod tests;

pub use error::EngineError;
pub use metrics::EngineMetrics;
pub use run::{Running, run};
pub use settings::{Settings, Source};
pub use status::{ModuleStatus, Status};
