//! Content beside its target, ready to take its place.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::{Attributes, FilePath, Folder};
use crate::engine::fault::{Fault, FileCode};

/// How many names are tried for a file beside its target.
const NAME_TRIES: usize = 16;
/// How much of the target's name the name beside it repeats.
const NAME_KEPT: usize = 200;

/// What placing a file did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// It stands at its path now.
    There,
    /// Something stood there already, and only an absent file was to be made.
    Taken,
}

/// Content on the disk that has no name yet, or one of its own. Dropped without having been placed, it leaves nothing.
#[derive(Debug)]
pub struct Staged {
    folder: Arc<Folder>,
    fd: OwnedFd,
    target: String,
    beside: Option<String>,
}

impl Staged {
    /// Writes content with these attributes into the folder of `path` and onto the disk.
    ///
    /// # Errors
    /// [`FileCode::NoSpace`] or what else the system says.
    pub fn write(
        folder: &Arc<Folder>,
        path: &FilePath,
        content: &[u8],
        attributes: Attributes,
    ) -> Result<Self, Fault> {
        let fault = |error| Fault::system(&format!("writing {path}"), error);
        let target = path.name().to_owned();
        let private = Mode::RUSR | Mode::WUSR;
        let nameless = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let mut staged = match fs::openat(&**folder, ".", nameless, private) {
            Ok(fd) => Self { folder: Arc::clone(folder), fd, target, beside: None },
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                Self::with_name(folder, target).map_err(fault)?
            }
            Err(error) => return Err(fault(error)),
        };
        staged.fill(content, attributes).map_err(fault)?;
        Ok(staged)
    }

    fn with_name(folder: &Arc<Folder>, target: String) -> Result<Self, Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        for _ in 0..NAME_TRIES {
            let name = beside(&target);
            match fs::openat(&**folder, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => return Ok(Self { folder: Arc::clone(folder), fd, target, beside: Some(name) }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::EXIST)
    }

    fn fill(&mut self, content: &[u8], attributes: Attributes) -> Result<(), Errno> {
        let mut rest = content;
        while !rest.is_empty() {
            let written = match rustix::io::write(&self.fd, rest) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            rest = rest.get(written..).unwrap_or_default();
        }
        let (user, group) = (Uid::from_raw(attributes.user), Gid::from_raw(attributes.group));
        fs::fchown(&self.fd, Some(user), Some(group))?;
        // After the owner, because giving a file away takes its set-id bits.
        fs::fchmod(&self.fd, Mode::from_raw_mode(attributes.mode))?;
        fs::fsync(&self.fd)
    }

    /// Takes the target's place, whatever regular file stood there.
    ///
    /// # Errors
    /// What the system says; the target is as it was then.
    pub fn replace(mut self) -> Result<Placed, Fault> {
        let name = self.named().map_err(|error| self.fault(error))?;
        match fs::renameat(&*self.folder, &name, &*self.folder, &self.target) {
            Ok(()) => {
                self.beside = None;
                Ok(Placed::There)
            }
            Err(Errno::BUSY) => {
                let reason = format!(
                    "{} is a mount of its own, so that no other file can take its place; it is not written in place",
                    self.target
                );
                Err(Fault::new(FileCode::Io, reason))
            }
            Err(Errno::ISDIR) => {
                Err(Fault::new(FileCode::PathRefused, format!("{} is a folder", self.target)))
            }
            Err(error) => Err(self.fault(error)),
        }
    }

    /// Takes its place only if nothing stands there.
    ///
    /// # Errors
    /// What the system says.
    pub fn place_if_absent(self) -> Result<Placed, Fault> {
        match self.link(&self.target) {
            Ok(()) => Ok(Placed::There),
            Err(Errno::EXIST) => Ok(Placed::Taken),
            Err(error) => Err(self.fault(error)),
        }
    }

    fn fault(&self, error: Errno) -> Fault {
        Fault::system(&format!("putting {} in its place", self.target), error)
    }

    /// The name beside the target, which it gets now if it had none.
    fn named(&mut self) -> Result<String, Errno> {
        if let Some(name) = &self.beside {
            return Ok(name.clone());
        }
        for _ in 0..NAME_TRIES {
            let name = beside(&self.target);
            match self.link(&name) {
                Ok(()) => {
                    self.beside = Some(name.clone());
                    return Ok(name);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::EXIST)
    }

    fn link(&self, name: &str) -> Result<(), Errno> {
        if let Some(beside) = &self.beside {
            return fs::linkat(&*self.folder, beside, &*self.folder, name, AtFlags::empty());
        }
        let own = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        match fs::linkat(CWD, own, &*self.folder, name, AtFlags::SYMLINK_FOLLOW) {
            // Without /proc; root may, others from kernel 6.10 on.
            Err(Errno::NOENT | Errno::NOTDIR) => {
                fs::linkat(&self.fd, "", &*self.folder, name, AtFlags::EMPTY_PATH)
            }
            other => other,
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(name) = self.beside.take() {
            // What cannot be removed now is swept at the next start.
            let _ = fs::unlinkat(&*self.folder, name, AtFlags::empty());
        }
    }
}

fn beside(target: &str) -> String {
    let kept: String =
        target.char_indices().take_while(|(at, c)| at + c.len_utf8() <= NAME_KEPT).map(|(_, c)| c).collect();
    format!(".{kept}.qm-{:08x}", rand::random::<u32>())
}
