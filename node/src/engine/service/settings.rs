//! What an operator decides.

use std::path::PathBuf;
use std::time::Duration;

use quartermaster_proto::mesh::signature::PublicNkey;

use super::EngineMetrics;
use crate::client::bus::BusSettings;

/// What an operator decides about the engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The machine's name.
    pub node: String,
    /// The folder of its ledger and status; made private when it is not there.
    pub state: PathBuf,
    /// The socket it listens on.
    pub socket: PathBuf,
    /// Folders below which files may be written; none means nothing is written.
    pub roots: Vec<String>,
    /// The folder of programs that may be run; none means no command is run.
    pub commands: Option<PathBuf>,
    /// The account of the client that may ask, by name or number.
    pub client: String,
    /// Where declarations come from.
    pub source: Source,
    /// Units belong to the user's own service manager.
    pub user_units: bool,
    /// Its numbers, where they are counted.
    pub metrics: Option<EngineMetrics>,
}

/// Where declarations come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A folder.
    Folder {
        /// The folder of declarations, one `<module's token>.json` each.
        folder: PathBuf,
        /// How often it is looked at.
        every: Duration,
    },
    /// The mirror of assignments on the broker.
    Mirror {
        /// The connection, as the machine's engine.
        bus: BusSettings,
        /// Keys of the controller. With one, nothing that is not signed with it is taken.
        pins: Vec<PublicNkey>,
    },
}
