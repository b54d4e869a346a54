//! What the demo and the measurements stand on: child processes, a broker, the provisioner's metrics.

mod broker;
mod child;
mod error;
mod scrape;
mod usage;
mod view;
mod yaml;

pub(crate) use broker::{broker_port, free_port, nats_server, quiet_port};
pub(crate) use child::Running;
pub(crate) use error::{StageError, complain};
#[cfg(test)]
pub(crate) use scrape::parse as parse_samples;
pub(crate) use scrape::{Sample, Series, metrics, samples, wait_for_metrics};
pub(crate) use usage::Usage;
pub(crate) use view::{Progress, View};
pub(crate) use yaml::set_key;
