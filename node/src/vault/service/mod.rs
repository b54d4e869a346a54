//! The vault at work: on the bus for machines and providers, on a socket for operators.
mod admin;
mod client;
mod elsewhere;
mod error;
mod metrics;
mod run;
mod server;
mod settings;
mod wire;

pub use client::AdminClient;
pub use error::ServiceError;
pub use metrics::VaultMetrics;
pub use run::{Running, init, open_store, run};
pub use settings::Settings;
pub use wire::{AdminReply, AdminRequest, AdminValue};
