//! What an operator decides.

use std::path::PathBuf;
use std::time::Duration;

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
    /// The folder of declarations, one `<module's token>.json` each.
    pub declarations: PathBuf,
    /// Units belong to the user's own service manager.
    pub user_units: bool,
    /// How often the folder of declarations is looked at.
    pub look_every: Duration,
}
