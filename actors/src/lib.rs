//! The actors of the fleet provisioner, one folder each.
//!
//! The supervision tree (owner, then owned):
//! ```text
//! App ─┬─ JournalKeeper
//!      ├─ BrokerLink
//!      ├─ Controller, Elector, Attendant
//!      ├─ MetricsKeeper, VaultKeeper
//!      ├─ HelperRunner ── child process
//!      ├─ ProviderRunner ── child processes, or BuiltinProvider
//!      └─ FleetKeeper
//!           ├─ Discoverer
//!           └─ HostProvisioner ×N
//! ```

pub mod steps;
pub mod supervise;
pub mod text;

pub mod control;
pub mod journal;
pub mod metrics;

pub mod link;
pub mod vault;

pub mod claim;
pub mod election;
pub mod service;

pub mod expression;

pub mod builtin;
pub mod child;
pub mod helper;
pub mod provider;

pub mod discovery;
pub mod fleet;
pub mod host;

#[cfg(feature = "testing")]
pub mod testing;
