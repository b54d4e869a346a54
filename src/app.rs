//! Build, start, drain: the one place actors are wired.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::Config;
use crate::exit::Exit;

/// What `run` was told on the command line beside the configuration.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// `--pid`: written once the instance is up, removed at the end.
    pub pid_file: Option<PathBuf>,
}

/// Runs the fleet provisioner until a signal or until it cannot go on. The log is set up already.
pub fn run(_config: Arc<Config>, _options: &RunOptions) -> Exit {
    tracing::error!("this build has no fleet provisioner");
    Exit::Failure
}

/// What a successful login showed (`check --connect`).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConnectReport {
    /// The broker that answered, as `host:port`.
    pub broker: String,
    /// Its server version.
    pub version: String,
    /// Largest message it accepts, in bytes.
    pub max_payload: u64,
}

/// Logs in once with the configured credentials and leaves again. The error is one sentence for people: what was tried and why it failed.
pub fn connect_check(_config: &Arc<Config>) -> Result<ConnectReport, String> {
    Err("this build has no broker link".to_owned())
}
