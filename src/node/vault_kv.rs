//! Arguments that have the vault keep its values in an OpenBao or a HashiCorp Vault.

use std::path::{Path, PathBuf};

use quartermaster_node::vault::kv::{KvAuth, KvSettings};

/// The name of the token among the systemd credentials.
const TOKEN: &str = "vault-kv-token";

/// A key-value store that keeps the values.
#[derive(Debug, Clone, clap::Args)]
pub struct KvArgs {
    /// OpenBao or HashiCorp Vault whose key-value store (version 2) keeps the values instead of the vault's own file
    #[arg(long, value_name = "https://HOST:PORT")]
    pub kv: Option<String>,
    /// Mount of the key-value store
    #[arg(long, value_name = "PATH", default_value = "secret", requires = "kv")]
    pub kv_mount: String,
    /// File of the token to log in with, mode 0400 or 0600 [default: vault-kv-token of the systemd credentials]
    #[arg(long, value_name = "FILE", requires = "kv", conflicts_with = "kv_role")]
    pub kv_token_file: Option<PathBuf>,
    /// Id of the AppRole to log in with instead of a token
    #[arg(long, value_name = "ID", requires = "kv", requires = "kv_secret_file")]
    pub kv_role: Option<String>,
    /// File of the AppRole's secret id, mode 0400 or 0600
    #[arg(long, value_name = "FILE", requires = "kv_role")]
    pub kv_secret_file: Option<PathBuf>,
    /// Mount of the AppRole
    #[arg(long, value_name = "PATH", default_value = "approle", requires = "kv")]
    pub kv_role_mount: String,
    /// File of certificates (PEM) that are believed instead of the system's
    #[arg(long, value_name = "FILE", requires = "kv")]
    pub kv_ca: Option<PathBuf>,
}

impl KvArgs {
    /// What they mean; nothing without an address.
    pub(super) fn settings(&self) -> Option<KvSettings> {
        let auth = if let (Some(role), Some(secret)) = (&self.kv_role, &self.kv_secret_file) {
            let mount = self.kv_role_mount.clone();
            KvAuth::AppRole { mount, role: role.clone(), secret: secret.clone() }
        } else {
            let file = self.kv_token_file.clone().or_else(|| handed(TOKEN));
            KvAuth::Token { file: file.unwrap_or_else(|| TOKEN.into()) }
        };
        let settings = KvSettings::new(self.kv.clone()?, self.kv_mount.clone(), auth);
        Some(KvSettings { ca: self.kv_ca.clone(), ..settings })
    }
}

/// A file of this name among the systemd credentials, where there are some.
pub(super) fn handed(name: &str) -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").map(|folder| Path::new(&folder).join(name))
}
