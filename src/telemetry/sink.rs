//! Where lines go.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A place for whole lines.
pub trait Sink: Send + Sync + 'static {
    /// Writes one line, newline included, in one piece.
    ///
    /// # Errors
    /// The line is lost; the caller carries on.
    fn line(&self, line: &str) -> io::Result<()>;
}

impl Sink for io::Stdout {
    fn line(&self, line: &str) -> io::Result<()> {
        let mut out = self.lock();
        out.write_all(line.as_bytes())?;
        out.flush()
    }
}

impl Sink for io::Stderr {
    fn line(&self, line: &str) -> io::Result<()> {
        self.lock().write_all(line.as_bytes())
    }
}

impl Sink for io::Sink {
    fn line(&self, _line: &str) -> io::Result<()> {
        Ok(())
    }
}

impl<T: Sink + ?Sized> Sink for std::sync::Arc<T> {
    fn line(&self, line: &str) -> io::Result<()> {
        (**self).line(line)
    }
}

/// Nobody but the owner and the group may read a log file that we make.
const MODE: u32 = 0o640;
/// What is looser than that: writing for the group, anything for others.
const LOOSE: u32 = 0o027;

/// Time between two looks at whether the path still names the file that is open.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A log file, appended to. Whoever rotates it may copy and empty it, since every line goes to its end of the moment; or move it
/// away, which is noticed at the next line, with or without a signal.
pub struct LogFile {
    path: PathBuf,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    /// Device and inode.
    place: (u64, u64),
    looked: Instant,
    /// It was moved away and no other could be opened.
    is_orphan: bool,
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(MODE).open(path)?;
        let place = place(&file.metadata()?);
        Ok(Self { file, place, looked: Instant::now(), is_orphan: false })
    }

    /// Follows the path when it names another file by now, or none.
    fn follow(&mut self, path: &Path) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        if std::fs::metadata(path).is_ok_and(|now| place(&now) == self.place) {
            return;
        }
        match Self::at(path) {
            Ok(fresh) => *self = fresh,
            Err(error) if !self.is_orphan => {
                self.is_orphan = true;
                // The log itself is what cannot be written to; once, and whatever becomes of it.
                let _ = writeln!(
                    io::stderr(),
                    "the log file {} was moved away and cannot be opened anew, so lines go on to the old one: {error}",
                    path.display()
                );
            }
            Err(_) => {}
        }
    }
}

fn place(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl fmt::Debug for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl LogFile {
    /// Opens `path` for appending; a new file gets mode 0640 or, by the umask, a tighter one.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), open: Mutex::new(Open::at(path)?) })
    }

    /// Opens the path again; lines go to whatever is there now.
    ///
    /// # Errors
    /// It cannot be opened; the file that was open stays.
    pub fn reopen(&self) -> io::Result<()> {
        let fresh = Open::at(&self.path)?;
        *self.held() = fresh;
        Ok(())
    }

    /// The mode of the file, when it is looser than 0640.
    pub fn loose_mode(&self) -> Option<u32> {
        let metadata = self.held().file.metadata().ok()?;
        let mode = metadata.permissions().mode() & 0o7777;
        (metadata.is_file() && mode & LOOSE != 0).then_some(mode)
    }

    fn held(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for LogFile {
    fn line(&self, line: &str) -> io::Result<()> {
        let mut open = self.held();
        open.follow(&self.path);
        open.file.write_all(line.as_bytes())
    }
}
