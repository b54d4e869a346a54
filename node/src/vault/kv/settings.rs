//! Where the key-value store is, and as whom it is asked.

use std::path::PathBuf;
use std::time::Duration;

/// How often what others changed there is looked for.
pub(super) const POLL_EVERY: Duration = Duration::from_secs(30);

/// Where the key-value store is, and as whom it is asked.
#[derive(Debug, Clone)]
pub struct KvSettings {
    /// `https://HOST:PORT`; `http://` only to this machine itself.
    pub address: String,
    /// The mount of the key-value store, version 2.
    pub mount: String,
    /// How the vault logs in.
    pub auth: KvAuth,
    /// A file of certificates in PEM that are believed instead of the system's.
    pub ca: Option<PathBuf>,
    /// How often what others changed there is looked for.
    pub poll: Duration,
}

impl KvSettings {
    /// The usual settings for an address, a mount and a way to log in.
    pub const fn new(address: String, mount: String, auth: KvAuth) -> Self {
        Self { address, mount, auth, ca: None, poll: POLL_EVERY }
    }
}

/// How the vault logs in. Every credential is read from its file anew at each login, and never stands in an argument.
#[derive(Debug, Clone)]
pub enum KvAuth {
    /// With a token, which is renewed while that can be done.
    Token {
        /// Its file.
        file: PathBuf,
    },
    /// With an `AppRole`.
    AppRole {
        /// Where it is mounted, usually `approle`.
        mount: String,
        /// The role's id.
        role: String,
        /// The file of the secret id.
        secret: PathBuf,
    },
}
