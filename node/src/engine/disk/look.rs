//! What stands at a path now.

use std::io::Read as _;
use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use zeroize::Zeroizing;

use super::Folder;
use crate::engine::fault::{Fault, FileCode};

/// Longest content of one file.
pub const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;

/// Owner, group and permission bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Attributes {
    /// The owner's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
    /// Permission bits, set-id and sticky ones included.
    pub mode: u32,
}

impl Attributes {
    pub(super) fn of(stat: &fs::Stat) -> Self {
        Self { user: stat.st_uid, group: stat.st_gid, mode: stat.st_mode & 0o7777 }
    }
}

/// A regular file that stands at the path.
#[derive(Debug)]
pub struct Found {
    fd: OwnedFd,
    /// Who it belongs to.
    pub attributes: Attributes,
    size: u64,
    /// How many names it has.
    pub links: u64,
}

impl Found {
    /// Looks at a name in a folder; none when nothing is there.
    ///
    /// # Errors
    /// [`FileCode::PathRefused`] when it is anything but a regular file.
    pub fn look(folder: &Folder, name: &str) -> Result<Option<Self>, Fault> {
        let fault = |error| Fault::system(&format!("looking at {name}"), error);
        let refuse = |kind| {
            let what = match kind {
                FileType::Symlink => "a symbolic link",
                FileType::Directory => "a folder",
                FileType::Fifo => "a FIFO",
                FileType::Socket => "a socket",
                _ => "no regular file",
            };
            Fault::new(FileCode::PathRefused, format!("{name} is {what}"))
        };
        // Before it is opened, since opening a device may do something.
        let stat = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            other => other.map_err(fault)?,
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            return Err(refuse(kind));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = match fs::openat(folder, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refuse(FileType::Symlink)),
            other => other.map_err(fault)?,
        };
        let stat = fs::fstat(&fd).map_err(fault)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            return Err(refuse(kind));
        }
        #[expect(clippy::useless_conversion, reason = "the field's width depends on the machine")]
        let links = u64::from(stat.st_nlink);
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        Ok(Some(Self { fd, attributes: Attributes::of(&stat), size, links }))
    }

    /// Its bytes.
    ///
    /// # Errors
    /// [`FileCode::Io`] over [`MAX_FILE_BYTES`], or what the system says.
    pub fn read(self, name: &str) -> Result<Zeroizing<Vec<u8>>, Fault> {
        if self.size > MAX_FILE_BYTES as u64 {
            return Err(Fault::new(FileCode::Io, format!("{name} holds more than {MAX_FILE_BYTES} bytes")));
        }
        // One byte more than there is, so that the buffer does not grow and leave copies behind.
        let mut content = Zeroizing::new(Vec::with_capacity(usize::try_from(self.size).unwrap_or(0) + 1));
        let limit = MAX_FILE_BYTES as u64 + 1;
        std::fs::File::from(self.fd)
            .take(limit)
            .read_to_end(&mut content)
            .map_err(|error| Fault::new(FileCode::Io, format!("reading {name}: {error}")))?;
        Ok(content)
    }

    /// True when it holds exactly these bytes.
    ///
    /// # Errors
    /// As [`Found::read`].
    pub fn holds(self, name: &str, content: &[u8]) -> Result<bool, Fault> {
        if self.size != content.len() as u64 {
            return Ok(false);
        }
        Ok(self.read(name)?.as_slice() == content)
    }
}
