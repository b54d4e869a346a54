//! One folder and what lies below it, reached without following a link. Blocks.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use quartermaster_proto::provider::{ErrorCode, ProviderError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, fsync, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::attrs::refused;

/// The longest file that is read, in bytes: what was in a file goes into the undo of whatever changes it.
const LONGEST: u64 = 1024 * 1024;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder.
pub struct Folder<'p> {
    root: &'p Path,
}

/// A file that may or may not be there, by its folder and its name.
pub struct Place {
    folder: OwnedFd,
    name: String,
    path: PathBuf,
}

/// A file that is there.
pub struct Found {
    pub content: String,
    /// The nine bits of its permissions.
    pub mode: u32,
}

impl<'p> Folder<'p> {
    pub const fn new(root: &'p Path) -> Self {
        Self { root }
    }

    /// The place of this path. Folders on the way are made, or have to be there.
    pub fn place(&self, path: &str, make: bool) -> Result<Place, ProviderError> {
        let mut names = Vec::new();
        for component in Path::new(path).components() {
            match component.as_os_str().to_str().filter(|_| matches!(component, Component::Normal(_))) {
                Some(name) => names.push(name),
                None => return Err(refused(format!("`path`: {path:?} is no path below the root"))),
            }
        }
        let Some(name) = names.pop() else { return Err(refused("`path` names no file")) };
        let mut folder = open(self.root, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())
            .map_err(|error| failed(path, error))?;
        for name in names {
            if make {
                match mkdirat(&folder, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(failed(path, error)),
                }
            }
            folder = openat(&folder, name, FOLDER, Mode::empty()).map_err(|error| failed(path, error))?;
        }
        Ok(Place { folder, name: name.to_owned(), path: self.root.join(path) })
    }
}

impl Place {
    /// The whole path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is there, if it is a file of text; none when nothing is.
    pub fn read(&self) -> Result<Option<Found>, ProviderError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, self.name.as_str(), flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        let found = fstat(&file).map_err(|error| self.failed(error))?;
        let conflict = |what: &str| {
            let message = format!("{} {what}; nothing was done", self.path.display());
            ProviderError::new(ErrorCode::Conflict, message)
        };
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(conflict("is no regular file"));
        }
        let mut content = String::new();
        let read = File::from(file).take(LONGEST + 1).read_to_string(&mut content);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => conflict("is no text"),
            _ => self.broken(&error),
        })?;
        if content.len() as u64 > LONGEST {
            return Err(conflict("is longer than what can be put back"));
        }
        Ok(Some(Found { content, mode: found.st_mode & 0o777 }))
    }

    /// Replaces it, whole or not at all.
    pub fn write(&self, content: &str, mode: u32) -> Result<(), ProviderError> {
        let beside =
            format!(".{}.{}", self.name.chars().take(100).collect::<String>(), uuid::Uuid::new_v4().simple());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.folder, beside.as_str(), flags, Mode::from_raw_mode(0o600));
        let mut file = File::from(opened.map_err(|error| self.failed(error))?);
        let written = file
            .write_all(content.as_bytes())
            .and_then(|()| Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?))
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(renameat(&self.folder, beside.as_str(), &self.folder, self.name.as_str())?));
        if let Err(error) = written {
            // What cannot be removed either is left beside.
            let _ = unlinkat(&self.folder, beside.as_str(), AtFlags::empty());
            return Err(self.broken(&error));
        }
        fsync(&self.folder).map_err(|error| self.failed(error))
    }

    /// Removes it.
    pub fn remove(&self) -> Result<(), ProviderError> {
        unlinkat(&self.folder, self.name.as_str(), AtFlags::empty()).map_err(|error| self.failed(error))?;
        fsync(&self.folder).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: Errno) -> ProviderError {
        failed(&self.path.display().to_string(), error)
    }

    fn broken(&self, error: &io::Error) -> ProviderError {
        ProviderError::new(ErrorCode::Failed, format!("{}: {error}", self.path.display()))
    }
}

fn failed(path: &str, error: Errno) -> ProviderError {
    let code = match error {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => ErrorCode::Denied,
        Errno::NOENT => ErrorCode::NotFound,
        Errno::LOOP | Errno::NOTDIR | Errno::ISDIR => ErrorCode::Conflict,
        _ => ErrorCode::Failed,
    };
    ProviderError::new(code, format!("{path}: {error}"))
}
