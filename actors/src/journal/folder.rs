//! The state folder: who may use it, the key, the file, and what became unusable.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use time::OffsetDateTime;
use time::macros::format_description;

use super::error::{StateDirError, StoreError};
use super::journal::Write;
use super::seal::{KEY_BYTES, Seal};
use super::store::Store;

/// The journal.
pub(super) const FILE: &str = "journal.redb";
/// Its successor while it is being written.
const NEW_FILE: &str = "journal.redb.new";
/// What an unusable journal's name begins with, before the time.
const ASIDE: &str = "journal.redb.aside-";
/// Held by the instance that uses the folder.
const LOCK: &str = "lock";
/// The key of the seal.
const KEY: &str = "journal.key";
/// Unusable journals kept; the oldest go first.
const MAX_ASIDE: usize = 5;

/// A state folder that is ours for as long as this lives.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    seal: Option<Seal>,
    _lock: Option<File>,
}

impl Folder {
    /// Makes the folder if it is missing, and takes it for this instance.
    pub(super) fn take(path: &Path) -> Result<Self, StateDirError> {
        let unusable = |path: &Path| {
            let path = path.to_owned();
            |source| StateDirError::Unusable { path, source }
        };
        if !path.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable(path))?;
        }
        let lock_path = path.join(LOCK);
        let lock = match private().create(true).truncate(false).open(&lock_path) {
            Ok(lock) => Some(lock),
            // A full disk is no reason not to start.
            Err(source) if is_full(&source) => None,
            Err(source) => return Err(unusable(&lock_path)(source)),
        };
        match lock.as_ref().map(File::try_lock) {
            None | Some(Ok(())) => {}
            Some(Err(TryLockError::WouldBlock)) => {
                return Err(StateDirError::Taken { path: path.to_owned() });
            }
            Some(Err(TryLockError::Error(source))) => return Err(unusable(&lock_path)(source)),
        }
        let seal = match read_key(&path.join(KEY)) {
            Ok(seal) => seal,
            Err(source) if is_full(&source) => None,
            Err(source) => return Err(unusable(&path.join(KEY))(source)),
        };
        Ok(Self { path: path.to_owned(), seal, _lock: lock })
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The seal, unless its key could not be kept.
    pub(super) const fn seal(&self) -> Option<&Seal> {
        self.seal.as_ref()
    }

    /// Opens the journal, a new one if there is none.
    pub(super) fn open(&self) -> Result<Store, StoreError> {
        let path = self.path.join(FILE);
        let file = private().create(true).truncate(false).open(&path).map_err(StoreError::Io)?;
        // One that was copied back may be anybody's to read.
        if file.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0) {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(StoreError::Io)?;
        }
        drop(file);
        Store::open(&path)
    }

    /// Writes a new journal that holds this, and puts it in the place of the old one, whatever that is.
    pub(super) fn renew(&self, writes: &[Write]) -> Result<Store, StoreError> {
        let new = self.path.join(NEW_FILE);
        let made =
            private().create(true).truncate(true).open(&new).map_err(StoreError::Io).and_then(|file| {
                drop(file);
                let store = Store::open(&new)?;
                store.write(writes)?;
                std::fs::rename(&new, self.path.join(FILE)).map_err(StoreError::Io)?;
                self.sync().map_err(StoreError::Io)?;
                Ok(store)
            });
        if made.is_err() {
            // It would take the room that is missing.
            drop(std::fs::remove_file(&new));
        }
        made
    }

    /// Renames the journal so that a new one can take its place; none when there is none. Keeps the newest few.
    pub(super) fn set_aside(&self, now_ms: i64) -> io::Result<Option<PathBuf>> {
        let file = self.path.join(FILE);
        if !file.exists() {
            return Ok(None);
        }
        let aside = self.path.join(format!("{ASIDE}{}", stamp(now_ms)));
        std::fs::rename(&file, &aside)?;
        self.sync()?;
        let mut kept: Vec<_> = std::fs::read_dir(&self.path)?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| {
                path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(ASIDE))
            })
            .collect();
        kept.sort();
        let too_many = kept.len().saturating_sub(MAX_ASIDE);
        for oldest in kept.into_iter().take(too_many) {
            std::fs::remove_file(oldest)?;
        }
        Ok(Some(aside))
    }

    /// A rename is on the disk once its folder is.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Options for a file that nobody else may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// True when there is no room, or no more of it for us.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// The seal of this key file, which is made when it is missing or of no use.
fn read_key(path: &Path) -> io::Result<Option<Seal>> {
    let file = private().create(true).truncate(false).open(path)?;
    let mut key = zeroize::Zeroizing::new(Vec::with_capacity(KEY_BYTES + 1));
    let most = u64::try_from(KEY_BYTES + 1).unwrap_or(u64::MAX);
    (&file).take(most).read_to_end(&mut key)?;
    if let Some(seal) = Seal::new(&key) {
        return Ok(Some(seal));
    }
    let Some(key) = Seal::make_key() else { return Ok(None) };
    drop(file);
    let mut file = private().create(true).truncate(true).open(path)?;
    file.write_all(&key)?;
    file.sync_all()?;
    Ok(Seal::new(&key))
}

/// A time as part of a file's name, by UTC, in the order of names.
fn stamp(now_ms: i64) -> String {
    let format = format_description!("[year][month][day]T[hour][minute][second].[subsecond digits:3]Z");
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(now_ms) * 1_000_000)
        .ok()
        .and_then(|time| time.format(&format).ok())
        .unwrap_or_else(|| now_ms.to_string())
}
