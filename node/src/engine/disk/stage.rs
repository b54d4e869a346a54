//! Content beside its target, ready to take its place.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::{Attributes, FilePath, Folder};
use crate::engine::fault::{Fault, FileCode};

/// How many names are tried for a file beside its target.
const NAME_TRIES: usize = 16;
/// How many files are put onto the disk at once.
const SYNCED_AT_ONCE: usize = 4;
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

/// Content with a place in a folder that is not on the disk for sure, and so cannot take its target's place yet.
#[derive(Debug)]
pub struct Unsynced(Staged);

impl Unsynced {
    /// Writes content with these attributes into the folder of `path`.
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
            Ok(fd) => Staged { folder: Arc::clone(folder), fd, target, beside: None },
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                Staged::with_name(folder, target).map_err(fault)?
            }
            Err(error) => return Err(fault(error)),
        };
        staged.fill(content, attributes).map_err(fault)?;
        Ok(Self(staged))
    }

    /// Puts it onto the disk.
    ///
    /// # Errors
    /// [`FileCode::NoSpace`] or what else the system says.
    pub fn sync(self) -> Result<Staged, Fault> {
        let synced = self.flush();
        self.synced(synced)
    }

    fn flush(&self) -> Result<(), Errno> {
        fs::fsync(&self.0.fd)
    }

    fn synced(self, synced: Result<(), Errno>) -> Result<Staged, Fault> {
        match synced {
            Ok(()) => Ok(self.0),
            Err(error) => Err(Fault::system(&format!("writing {}", self.0.target), error)),
        }
    }
}

/// Puts all of them onto the disk, a few at a time: file systems with a journal write it once for those that come together.
/// Answers in their order.
pub fn sync_all(files: Vec<Unsynced>) -> Vec<Result<Staged, Fault>> {
    let flush = |lane: &[Unsynced]| -> Vec<_> { lane.iter().map(Unsynced::flush).collect() };
    let mut lanes = files.chunks(files.len().div_ceil(SYNCED_AT_ONCE).max(1));
    let own = lanes.next().unwrap_or_default();
    let synced: Vec<Result<(), Errno>> = std::thread::scope(|scope| {
        let others: Vec<_> = lanes
            .map(|lane| {
                let thread = std::thread::Builder::new().name("sync".to_owned());
                // A machine that has no thread to give has it done here.
                (lane.len(), thread.spawn_scoped(scope, move || flush(lane)).map_err(|_| flush(lane)))
            })
            .collect();
        let mut synced = flush(own);
        for (count, other) in others {
            // What nothing was heard of counts as failed.
            let lost = |_| vec![Err(Errno::IO); count];
            synced.extend(other.map_or_else(|done| done, |thread| thread.join().unwrap_or_else(lost)));
        }
        synced
    });
    files.into_iter().zip(synced).map(|(file, synced)| file.synced(synced)).collect()
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
        fs::fchmod(&self.fd, Mode::from_raw_mode(attributes.mode))
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
