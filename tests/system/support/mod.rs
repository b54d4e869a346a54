//! What system tests share: brokers to start, stop, freeze and look into, and certificates for them.
mod authority;
mod broker;
pub mod browser;
mod daemon;
pub mod link;
mod processes;
pub mod proxy;
mod require;
mod wait;

pub use authority::{Authority, Issued};
pub use broker::{Broker, BrokerOptions};
pub use daemon::{Daemon, append, replace};
pub use processes::mentions;
pub use require::{nats_server, skip};
pub use wait::{eventually, eventually_within};
