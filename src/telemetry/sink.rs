//! Where lines go.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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

/// A log file, appended to.
pub struct LogFile {
    path: PathBuf,
    file: Mutex<File>,
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
        Ok(Self { path: path.to_owned(), file: Mutex::new(append(path)?) })
    }

    /// Opens the path again; lines go to whatever is there now.
    ///
    /// # Errors
    /// It cannot be opened; the file that was open stays.
    pub fn reopen(&self) -> io::Result<()> {
        let fresh = append(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// The mode of the file, when it is looser than 0640.
    pub fn loose_mode(&self) -> Option<u32> {
        let metadata = self.file.lock().unwrap_or_else(PoisonError::into_inner).metadata().ok()?;
        let mode = metadata.permissions().mode() & 0o7777;
        (metadata.is_file() && mode & LOOSE != 0).then_some(mode)
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(MODE).open(path)
}

impl Sink for LogFile {
    fn line(&self, line: &str) -> io::Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }
}
