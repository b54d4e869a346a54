//! What an operator decides.

use std::path::PathBuf;

use quartermaster_proto::mesh::signature::PublicNkey;

use super::VaultMetrics;
use crate::client::bus::BusSettings;
use crate::vault::kv::KvSettings;

/// What an operator decides about the vault.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The store's file.
    pub store: PathBuf,
    /// The file of the store's key.
    pub key_file: PathBuf,
    /// The audit's file.
    pub audit: PathBuf,
    /// The file of the site's own rules, if there is one.
    pub rules: Option<PathBuf>,
    /// The socket for operators.
    pub socket: PathBuf,
    /// The connection, as the vault.
    pub bus: BusSettings,
    /// Keys of the controller. With one, nothing that is not signed with it is taken.
    pub pins: Vec<PublicNkey>,
    /// The key-value store that keeps the values; without one the vault's own file does.
    pub kv: Option<KvSettings>,
    /// Its numbers, where they are counted.
    pub metrics: Option<VaultMetrics>,
}
