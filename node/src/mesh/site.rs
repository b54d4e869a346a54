//! The operator's folder: the controller's key, a key for every account, and the broker's configuration made from them.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nkeys::KeyPair;
use quartermaster_proto::mesh::accounts::Account;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

use super::broker::{User, configuration};
use super::error::MeshError;
use super::signer::Signer;
use crate::client::bus::{BusSettings, Credentials};

const CONTROLLER: &str = "controller.nk";
const ACCOUNTS: &str = "accounts";
const SETTINGS: &str = "site.json";
const BROKER: &str = "broker.conf";

/// The accounts that every mesh has.
const ALWAYS: [Account; 3] = [Account::Controller, Account::Vault, Account::Config];

/// The operator's folder. Keys in it are readable by their owner alone.
#[derive(Debug, Clone)]
pub struct Site {
    dir: PathBuf,
}

/// What the folder remembers beside its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SiteSettings {
    /// Addresses of brokers, with commas between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<String>,
    /// The public half of the key that deposits are sealed to, as `vault init` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub box_key: Option<String>,
}

impl Site {
    /// Makes the folder, or what it lacks.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn create(dir: &Path) -> Result<Self, MeshError> {
        let site = Self { dir: dir.to_owned() };
        let accounts = site.dir.join(ACCOUNTS);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&accounts)
            .map_err(MeshError::write(&accounts))?;
        let controller = site.dir.join(CONTROLLER);
        if !controller.exists() {
            site.new_key(&controller)?;
        }
        for account in ALWAYS {
            site.add(&account)?;
        }
        Ok(site)
    }

    /// The folder that was made before.
    ///
    /// # Errors
    /// It is none.
    pub fn open(dir: &Path) -> Result<Self, MeshError> {
        let site = Self { dir: dir.to_owned() };
        if site.dir.join(CONTROLLER).exists() { Ok(site) } else { Err(MeshError::NoSite(dir.to_owned())) }
    }

    /// The controller's key.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn signer(&self) -> Result<Signer, MeshError> {
        Signer::read(&self.dir.join(CONTROLLER))
    }

    /// What the folder remembers.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn settings(&self) -> Result<SiteSettings, MeshError> {
        let path = self.dir.join(SETTINGS);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|_| MeshError::Settings(path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(SiteSettings::default()),
            Err(source) => Err(MeshError::Read { path, source }),
        }
    }

    /// Remembers.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn remember(&self, settings: &SiteSettings) -> Result<(), MeshError> {
        let text = serde_json::to_string_pretty(settings).unwrap_or_default() + "\n";
        self.replace(&self.dir.join(SETTINGS), text.as_bytes(), 0o600)
    }

    /// Every account that has a key here, in the order of their names.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn accounts(&self) -> Result<Vec<Account>, MeshError> {
        let folder = self.dir.join(ACCOUNTS);
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).map_err(MeshError::read(&folder))? {
            let entry = entry.map_err(MeshError::read(&folder))?;
            names.extend(entry.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names.iter().filter_map(|name| Account::parse(name).ok()).collect())
    }

    /// Where an account's key lies, or would lie.
    pub fn path_of(&self, account: &Account) -> PathBuf {
        self.dir.join(ACCOUNTS).join(account.name())
    }

    /// How an account connects.
    ///
    /// # Errors
    /// It has no credentials here that can be used.
    pub fn login(&self, account: &Account, servers: &str) -> Result<BusSettings, MeshError> {
        let path = self.path_of(account);
        if !path.exists() {
            let help = match account {
                Account::Controller | Account::Vault | Account::Config => {
                    "`quartermaster mesh init` makes them"
                }
                _ => "`quartermaster mesh node add` makes them",
            };
            return Err(MeshError::NoAccount { account: account.name(), help });
        }
        Credentials::read(&path).map_err(|_| MeshError::NoSeed(path.clone()))?;
        Ok(BusSettings { servers: servers.to_owned(), account: account.clone(), credentials: Some(path) })
    }

    /// Gives an account a key, unless it has one; true when it is new.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&self, account: &Account) -> Result<bool, MeshError> {
        let path = self.path_of(account);
        if path.exists() {
            return Ok(false);
        }
        self.new_key(&path).map(|()| true)
    }

    /// Gives an account another key.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn rotate(&self, account: &Account) -> Result<(), MeshError> {
        self.new_key(&self.path_of(account))
    }

    /// Takes an account's key away; true when there was one.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, account: &Account) -> Result<bool, MeshError> {
        let path = self.path_of(account);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(MeshError::Write { path, source }),
        }
    }

    /// The accounts of a machine: its client, its engine, its tool runner and every provider on it.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn of_machine(&self, machine: &str) -> Result<Vec<Account>, MeshError> {
        let is_its = |account: &Account| match account {
            Account::Provisioner { node }
            | Account::Engine { node }
            | Account::ToolRunner { node }
            | Account::Provider { node, .. } => node == machine,
            _ => false,
        };
        Ok(self.accounts()?.into_iter().filter(is_its).collect())
    }

    /// Writes the broker's configuration anew and answers where it lies.
    ///
    /// # Errors
    /// A key cannot be read, or the file not be written.
    pub fn write_broker(&self) -> Result<PathBuf, MeshError> {
        let user = |account: Account| {
            let key = Signer::read(&self.path_of(&account))?.public();
            Ok(User { account, key })
        };
        let users = self.accounts()?.into_iter().map(user).collect::<Result<Vec<_>, MeshError>>()?;
        let path = self.dir.join(BROKER);
        let text = "# Written by `quartermaster mesh`; included by the broker's own configuration, which switches on jetstream.\n"
            .to_owned()
            + &configuration(&users);
        // It holds public keys alone, and the broker runs as somebody else.
        self.replace(&path, text.as_bytes(), 0o644)?;
        Ok(path)
    }

    fn new_key(&self, path: &Path) -> Result<(), MeshError> {
        let seed = KeyPair::new_user().seed().map(Zeroizing::new);
        let seed = seed.map_err(|_| MeshError::NoSeed(path.to_owned()))?;
        let mut line = Zeroizing::new(Vec::with_capacity(seed.len() + 1));
        line.extend_from_slice(seed.as_bytes());
        line.push(b'\n');
        self.replace(path, &line, 0o600)
    }

    /// Puts a whole new file in the place of the old one.
    fn replace(&self, path: &Path, content: &[u8], mode: u32) -> Result<(), MeshError> {
        let written = || {
            let mut file = NamedTempFile::new_in(&self.dir)?;
            file.write_all(content)?;
            file.as_file().set_permissions(Permissions::from_mode(mode))?;
            file.as_file().sync_all()?;
            file.persist(path).map(drop).map_err(|error| error.error)
        };
        written().map_err(MeshError::write(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web1() -> Account {
        Account::Provisioner { node: "web1.example".to_owned() }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_folder_is_made_once_and_keeps_its_keys() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("mesh");
        assert!(matches!(Site::open(&dir), Err(MeshError::NoSite(_))));
        let public = Site::create(&dir).unwrap().signer().unwrap().public();
        let site = Site::create(&dir).unwrap();
        assert_eq!(site.signer().unwrap().public(), public);
        assert_eq!(site.accounts().unwrap(), [Account::Config, Account::Controller, Account::Vault]);
        assert_eq!(mode(&dir.join(CONTROLLER)), 0o600);
        assert_eq!(mode(&site.path_of(&Account::Vault)), 0o600);
        assert_eq!(mode(&dir), 0o700);
    }

    #[test]
    fn a_machine_comes_changes_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let site = Site::create(dir.path()).unwrap();
        let provider = Account::Provider { node: "web1.example".to_owned(), module: "postgres".to_owned() };
        assert!(site.add(&web1()).unwrap() && site.add(&provider).unwrap());
        assert!(!site.add(&web1()).unwrap(), "its key stays");
        assert_eq!(site.of_machine("web1.example").unwrap(), [provider, web1()]);
        let configured = || fs::read_to_string(site.write_broker().unwrap()).unwrap();
        let first = configured();
        assert!(first.contains("# provisioner.web1=2Eexample\n"), "{first}");
        assert_eq!(mode(&dir.path().join(BROKER)), 0o644);
        site.rotate(&web1()).unwrap();
        assert_ne!(configured(), first);
        assert!(site.remove(&web1()).unwrap() && !site.remove(&web1()).unwrap());
        assert!(!configured().contains("# provisioner.web1"));
        assert!(!first.contains("nkey: S"), "no seed is in it");
    }

    #[test]
    fn who_has_no_key_is_told_what_makes_one() {
        let dir = tempfile::tempdir().unwrap();
        let site = Site::create(dir.path()).unwrap();
        let error = site.login(&web1(), "x").unwrap_err().to_string();
        assert_eq!(
            error,
            "the account provisioner.web1=2Eexample has no credentials: `quartermaster mesh node add` makes them"
        );
        assert!(site.login(&Account::Vault, "x").is_ok());
        fs::write(site.path_of(&Account::Vault), "x").unwrap();
        assert!(matches!(site.login(&Account::Vault, "x"), Err(MeshError::NoSeed(_))));
    }

    #[test]
    fn settings_are_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let site = Site::create(dir.path()).unwrap();
        assert_eq!(site.settings().unwrap(), SiteSettings::default());
        let settings = SiteSettings { servers: Some("a:4222".to_owned()), box_key: None };
        site.remember(&settings).unwrap();
        assert_eq!(site.settings().unwrap(), settings);
        fs::write(dir.path().join(SETTINGS), "x").unwrap();
        assert!(matches!(site.settings(), Err(MeshError::Settings(_))));
    }
}
