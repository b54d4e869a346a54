//! A folder, opened without following a link on the way.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::FilePath;
use crate::engine::fault::{Fault, FileCode};

const WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Who a new folder belongs to, and who may look into it.
#[derive(Debug, Clone, Copy)]
pub struct NewFolder {
    /// Its owner.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// Its permission bits.
    pub mode: u32,
}

/// An open folder. Whatever happens to names above it, what is done through it happens in it.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    /// Folders that had to be made on the way, outermost first.
    made: Vec<String>,
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Folder {
    /// The folder of `path`, if it is there.
    ///
    /// # Errors
    /// [`FileCode::PathRefused`] when a link or a file stands on the way.
    pub fn open(path: &FilePath) -> Result<Option<Self>, Fault> {
        let parts = path.folder_parts();
        match straight(&parts) {
            Ok(fd) => Ok(Some(Self { fd, made: Vec::new() })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                // The walk finds which part it is, for the sentence.
                walk(&parts, None).map(|(fd, made)| Some(Self { fd, made }))
            }
            Err(Errno::NOSYS | Errno::PERM) => match walk(&parts, None) {
                Ok((fd, made)) => Ok(Some(Self { fd, made })),
                Err(fault) if fault.reason.ends_with(MISSING) => Ok(None),
                Err(fault) => Err(fault),
            },
            Err(error) => Err(Fault::system(&format!("opening the folder of {path}"), error)),
        }
    }

    /// The folder of `path`; what is missing on the way is made.
    ///
    /// # Errors
    /// As [`Folder::open`], and what the system says about making one.
    pub fn open_or_make(path: &FilePath, new: NewFolder) -> Result<Self, Fault> {
        if let Some(folder) = Self::open(path)? {
            return Ok(folder);
        }
        walk(&path.folder_parts(), Some(new)).map(|(fd, made)| Self { fd, made })
    }

    /// Folders that had to be made, outermost first.
    pub fn made(&self) -> &[String] {
        &self.made
    }

    /// Puts what was renamed in it onto the disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> Result<(), Fault> {
        fs::fsync(&self.fd).map_err(|error| Fault::system("syncing a folder", error))
    }
}

/// One call of the kernel that refuses links anywhere on the way.
fn straight(parts: &[&str]) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    fs::openat2(CWD, format!("/{}", parts.join("/")), FOLDER, Mode::empty(), resolve)
}

/// The end of the sentence about a folder that is not there.
const MISSING: &str = "is not there";

/// Part by part, for kernels without that call, for making what is missing, and for naming what is in the way.
fn walk(parts: &[&str], new: Option<NewFolder>) -> Result<(OwnedFd, Vec<String>), Fault> {
    let refuse = |at: usize, what: &str| {
        let so_far = parts.get(..=at).unwrap_or_default().join("/");
        Fault::new(FileCode::PathRefused, format!("/{so_far} {what}"))
    };
    let mut made = Vec::new();
    let mut fd = fs::openat(CWD, "/", WAY, Mode::empty())
        .map_err(|error| Fault::system("opening the root folder", error))?;
    for (at, part) in parts.iter().enumerate() {
        let next = match fs::openat(&fd, *part, WAY, Mode::empty()) {
            Err(Errno::NOENT) => match new {
                None => return Err(refuse(at, MISSING)),
                Some(new) => {
                    let next = make(&fd, part, new)?;
                    made.push(format!("/{}", parts.get(..=at).unwrap_or_default().join("/")));
                    next
                }
            },
            other => other.map_err(|error| match (error, kind(&fd, part)) {
                (_, Some(FileType::Symlink)) => refuse(at, "is a symbolic link"),
                (Errno::NOTDIR | Errno::LOOP, _) => refuse(at, "is no folder"),
                (error, _) => Fault::system(&format!("opening /{}", parts.join("/")), error),
            })?,
        };
        fd = next;
    }
    // The last one once more, to be read and synced and not only to be passed through.
    let fd = fs::openat(&fd, ".", FOLDER, Mode::empty())
        .map_err(|error| Fault::system(&format!("opening /{}", parts.join("/")), error))?;
    Ok((fd, made))
}

fn kind(folder: &OwnedFd, name: &str) -> Option<FileType> {
    let stat = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

fn make(parent: &OwnedFd, name: &str, new: NewFolder) -> Result<OwnedFd, Fault> {
    let fault = |error| Fault::system(&format!("making the folder {name}"), error);
    match fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(fault(error)),
    }
    let fd = fs::openat(parent, name, FOLDER, Mode::empty()).map_err(fault)?;
    let stat = fs::fstat(&fd).map_err(fault)?;
    // Only what we have just made is given away: what somebody put in its place keeps its owner and mode.
    if stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o7777 & !0o2000 == 0o700 {
        let (user, group) = (rustix::fs::Uid::from_raw(new.user), rustix::fs::Gid::from_raw(new.group));
        fs::fchown(&fd, Some(user), Some(group)).map_err(fault)?;
        fs::fchmod(&fd, Mode::from_raw_mode(new.mode)).map_err(fault)?;
    }
    Ok(fd)
}
