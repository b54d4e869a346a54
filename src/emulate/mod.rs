//! `quartermaster emulate`: a fleet of emulated Choria servers in provisioning mode, for demos, load and fault tests.
//!
//! [`server`] decides, as a pure state machine; [`fleet`] runs many of them over real connections; [`fault`] says what
//! goes wrong with whom; [`prepare()`] writes the files of a whole test network.

mod arguments;
mod authority;
mod command;
mod configure;
mod connection;
mod csr;
mod dice;
pub mod fault;
mod fault_error;
mod fault_text;
pub mod fleet;
mod group;
mod hostile;
mod ledger;
mod life;
pub mod malformation;
mod mint;
mod network;
pub mod prepare;
mod profile;
mod provision;
mod record;
#[cfg(test)]
mod recorded;
pub mod server;
#[cfg(test)]
mod tests;
mod tls;
mod verify;
mod wire;

pub use authority::{Authority, AuthorityError, sign};
pub use command::{Args, run};
pub use connection::ConnectError;
pub use csr::{CsrError, KeyPool};
pub use fault::{Fault, FaultPlan};
pub use fault_error::FaultError;
pub(crate) use fault_text::parse_duration;
pub use fleet::{Fleet, FleetError, FleetHandle, FleetReport, FleetSettings, ServerReport};
pub use ledger::FleetStats;
pub use malformation::Malformation;
pub use network::{Network, NetworkError};
pub use prepare::{NetworkFiles, PrepareError, PrepareSettings, Prepared, prepare};
pub use profile::Profile;
pub use record::{Configured, Phase, ServerRecord};
