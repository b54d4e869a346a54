//! What an operator decides.

use std::path::{Path, PathBuf};

use quartermaster_proto::mesh::signature::PublicNkey;

/// What an operator decides about the client.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The machine's name.
    pub node: String,
    /// Addresses of brokers, with commas between.
    pub servers: String,
    /// The credentials file of this machine's account, read anew at every connect.
    pub credentials: PathBuf,
    /// Keys of the controller. With one, nothing that is not signed with it is taken.
    pub pins: Vec<PublicNkey>,
    /// The engine's socket.
    pub socket: PathBuf,
    /// The folder of cache, seat and memory; made private when it is not there.
    pub state: PathBuf,
    /// It may run as root, which it does not need.
    pub allow_root: bool,
    /// How many times faster than real its timers run: 1, except where a test means minutes.
    pub pace: u32,
}

impl Settings {
    pub(super) fn templates(&self) -> PathBuf {
        self.state.join("templates")
    }

    pub(super) fn seen(&self) -> PathBuf {
        self.state.join("seen.json")
    }

    pub(super) fn seat(&self) -> PathBuf {
        self.state.join("seat.lock")
    }
}

/// Where the key for digests lies in a state folder.
pub(super) fn digest_key(state: &Path) -> PathBuf {
    state.join("digest.key")
}

/// Where the status is asked for in a state folder.
pub(super) fn status_socket(state: &Path) -> PathBuf {
    state.join("status.sock")
}
