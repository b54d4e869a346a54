//! Files that are read again when they change.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

use super::VaultError;

/// The longest file that is read, in bytes.
pub(super) const MAX_FILE: u64 = 1 << 20;

/// A file changed this short a time ago, in nanoseconds, is read again at each use: a second change within the tick of the
/// file system's clock would not show.
const SETTLING: i64 = 2_000_000_000;

/// What tells one content of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    fn settled(&self, now: WallClock) -> bool {
        let (seconds, nanos) = self.changed;
        let changed = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        now.nanos().saturating_sub(changed) > SETTLING
    }
}

/// A file and what was last made of its content.
#[derive(Debug)]
pub(super) struct Watched<T> {
    what: &'static str,
    path: PathBuf,
    last: Mutex<Option<(Stamp, Arc<T>)>>,
}

impl<T> Watched<T> {
    pub(super) fn new(what: &'static str, path: &Path) -> Self {
        Self { what, path: path.to_owned(), last: Mutex::new(None) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The value of the file's present content: the last one while the file has not changed, else what `parse` makes of it.
    pub(super) fn get(
        &self,
        now: WallClock,
        parse: impl FnOnce(&str, &Path) -> Result<T, VaultError>,
    ) -> Result<Arc<T>, VaultError> {
        let meta = std::fs::metadata(&self.path).map_err(|source| self.unreadable(source))?;
        let stamp = Stamp::of(&meta);
        if let Some((seen, value)) = self.last.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
            && *seen == stamp
            && stamp.settled(now)
        {
            return Ok(Arc::clone(value));
        }
        let (stamp, text) = read(self.what, &self.path)?;
        let value = Arc::new(parse(&text, &self.path)?);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((stamp, Arc::clone(&value)));
        Ok(value)
    }

    fn unreadable(&self, source: std::io::Error) -> VaultError {
        VaultError::Read { what: self.what, path: self.path.clone(), source }
    }
}

/// The text of a file with the stamp of exactly that content, wiped when dropped.
pub(super) fn read(what: &'static str, path: &Path) -> Result<(Stamp, Zeroizing<String>), VaultError> {
    let unreadable = |source| VaultError::Read { what, path: path.to_owned(), source };
    let not_text = || VaultError::NotText { what, path: path.to_owned(), limit: MAX_FILE };
    let file = File::open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    if meta.is_dir() {
        return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
    }
    if meta.len() > MAX_FILE {
        return Err(not_text());
    }
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let room = usize::try_from(meta.len()).unwrap_or_default().saturating_add(1);
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(not_text());
    }
    let text = String::from_utf8(std::mem::take(&mut *bytes)).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        not_text()
    })?;
    Ok((Stamp::of(&meta), Zeroizing::new(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far_ahead() -> WallClock {
        WallClock::from_seconds(9_000_000_000)
    }

    #[test]
    fn an_unchanged_file_is_parsed_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "first").unwrap();
        let watched = Watched::new("test", file.path());
        let get = |now| watched.get(now, |text, _| Ok(text.to_owned())).unwrap();
        let first = get(far_ahead());
        assert!(Arc::ptr_eq(&first, &get(far_ahead())), "answered from memory");
        std::fs::write(file.path(), "other").unwrap();
        let changed = get(far_ahead());
        assert_eq!(*changed, "other");
        assert!(Arc::ptr_eq(&changed, &get(far_ahead())));
    }

    #[test]
    fn a_file_changed_a_moment_ago_is_read_each_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let watched = Watched::new("test", file.path());
        let changed = std::fs::metadata(file.path()).unwrap().ctime();
        let get = |now| watched.get(now, |text, _| Ok(text.to_owned())).unwrap();
        let at = |seconds| WallClock::from_seconds(changed + seconds);
        assert!(!Arc::ptr_eq(&get(at(1)), &get(at(1))));
        assert!(!Arc::ptr_eq(&get(at(-5)), &get(at(-5))), "also when the clock was put back");
        assert!(Arc::ptr_eq(&get(at(4)), &get(at(4))));
    }

    #[test]
    fn a_file_that_does_not_parse_leaves_no_value_behind() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let watched = Watched::<String>::new("test", file.path());
        let refuse = |_: &str, _: &Path| Err(VaultError::Panicked);
        assert!(watched.get(far_ahead(), refuse).is_err());
        assert!(watched.get(far_ahead(), refuse).is_err());
        assert!(watched.get(far_ahead(), |text, _| Ok(text.to_owned())).is_ok());
    }
}
