//! Fetched archives on the disk, by digest. What is read back is hashed again.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use quartermaster_proto::mesh::plan::Digest;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};

use crate::archive::MAX_FETCHED;

/// How long an archive stays that no plan names any more.
const KEPT: Duration = Duration::from_hours(24);

/// The cache does not work; archives are fetched instead.
#[derive(Debug, thiserror::Error)]
#[error("failed to {doing} in the cache of templates")]
pub struct CacheError {
    doing: &'static str,
    #[source]
    source: io::Error,
}

/// A folder of archives.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// The cache in this folder, which is made when it is not there, for its owner alone.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(folder: PathBuf) -> Result<Self, CacheError> {
        let fault = |source| CacheError { doing: "make the folder", source };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(fault)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).map_err(fault)?;
        Ok(Self(folder))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.0.join(format!("sha256-{}", digest.hex()))
    }

    /// The archive of this digest; none when it is not there, or damaged, and then it is dropped.
    pub fn load(&self, digest: &Digest) -> Option<Vec<u8>> {
        let path = self.path(digest);
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_FETCHED).ok()? + 1;
        File::open(&path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
        if Digest::of(&bytes) == *digest {
            return Some(bytes);
        }
        tracing::warn!(%digest, "a kept archive of templates is damaged and fetched again");
        let _ = fs::remove_file(&path);
        None
    }

    /// Keeps an archive: written beside its place and renamed, so that it is there whole or not at all.
    ///
    /// # Errors
    /// The disk will not.
    pub fn store(&self, digest: &Digest, bytes: &[u8]) -> Result<(), CacheError> {
        let path = self.path(digest);
        let beside = path.with_extension("new");
        let written = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&beside, &path)
        };
        written().map_err(|source| CacheError { doing: "keep an archive", source })
    }

    /// Drops what no plan has named for a day. To be called now and then with everything that plans name.
    pub fn sweep(&self, named: &BTreeSet<Digest>) {
        let Ok(entries) = fs::read_dir(&self.0) else { return };
        let named: BTreeSet<PathBuf> = named.iter().map(|digest| self.path(digest)).collect();
        for path in entries.flatten().map(|entry| entry.path()) {
            if named.contains(&path) {
                touch(&path);
            } else if is_old(&path) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

/// The time of a file is the last time that a plan named it.
fn touch(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    if let Ok(file) = File::open(path) {
        let _ = futimens(&file, &Timestamps { last_access: now, last_modification: now });
    }
}

fn is_old(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > KEPT))
}
