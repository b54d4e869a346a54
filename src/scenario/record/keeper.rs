//! The file of a record: every line is on the disk before its writer goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quartermaster_actors::steps::Ledger;
use tokio::sync::Mutex;

use super::cover::Cover;
use super::fold::{Folded, RecordError, fold};
use super::line::Line;

/// Why a record cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The file cannot be read or written.
    #[error("the record {} cannot be {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another process works on it.
    #[error("the record {} is being written: another apply or undo works on it", .0.display())]
    Busy(PathBuf),
    /// It is no record.
    #[error("{} is no record of a run", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: RecordError,
    },
}

/// A record that is written, and what it comes to so far. Clones share it.
#[derive(Debug, Clone)]
pub struct Keeper {
    state: Arc<Mutex<State>>,
    cover: Arc<Cover>,
    path: Option<PathBuf>,
}

#[derive(Debug)]
struct State {
    file: Option<File>,
    ledger: Ledger,
}

impl Keeper {
    /// A new record; none there before may have this name.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, cover: Cover) -> Result<Self, KeeperError> {
        let fail = |source| KeeperError::File { path: path.to_owned(), what: "made", source };
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path).map_err(fail)?;
        lock(&file, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
        Ok(Self::of(Some(file), Ledger::default(), cover, Some(path.to_owned())))
    }

    /// A record that is kept nowhere: what it comes to is lost with this process.
    pub fn nowhere(cover: Cover) -> Self {
        Self::of(None, Ledger::default(), cover, None)
    }

    /// Opens a record in order to add to it. A last line that was cut off is taken away.
    ///
    /// # Errors
    /// The file cannot be used, is used by another process, or is no record.
    pub fn open(path: &Path, cover: impl Fn(&str) -> Cover) -> Result<(Self, Folded), KeeperError> {
        let fail = |what, source| KeeperError::File { path: path.to_owned(), what, source };
        let mut file =
            OpenOptions::new().read(true).write(true).open(path).map_err(|error| fail("opened", error))?;
        lock(&file, path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| fail("read", error))?;
        let folded =
            fold(&text, &cover).map_err(|source| KeeperError::Record { path: path.to_owned(), source })?;
        let whole = u64::try_from(folded.whole).unwrap_or(u64::MAX);
        file.set_len(whole)
            .and_then(|()| file.seek(SeekFrom::Start(whole)))
            .map_err(|error| fail("written", error))?;
        let cover = cover(&folded.header.run);
        let keeper = Self::of(Some(file), folded.ledger.clone(), cover, Some(path.to_owned()));
        Ok((keeper, folded))
    }

    fn of(file: Option<File>, ledger: Ledger, cover: Cover, path: Option<PathBuf>) -> Self {
        Self { state: Arc::new(Mutex::new(State { file, ledger })), cover: Arc::new(cover), path }
    }

    /// Where it is kept.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Writes a line and waits until it is on the disk.
    ///
    /// # Errors
    /// The file cannot be written: what was to follow must not be done.
    pub async fn write(&self, line: &Line) -> Result<(), KeeperError> {
        let mut state = self.state.lock().await;
        if let Some(file) = &state.file {
            let text = line.to_text(&self.cover, &now());
            let fail = |source| KeeperError::File {
                path: self.path.clone().unwrap_or_default(),
                what: "written",
                source,
            };
            let mut file = file.try_clone().map_err(fail)?;
            let written = tokio::task::spawn_blocking(move || {
                file.write_all(text.as_bytes()).and_then(|()| file.sync_data())
            });
            written.await.map_err(io::Error::other).flatten().map_err(fail)?;
        }
        if let Line::Step(record, _) = line {
            state.ledger.apply(record);
        }
        drop(state);
        Ok(())
    }

    /// What the record comes to at this moment.
    pub async fn ledger(&self) -> Ledger {
        self.state.lock().await.ledger.clone()
    }
}

fn lock(file: &File, path: &Path) -> Result<(), KeeperError> {
    file.try_lock().map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => KeeperError::Busy(path.to_owned()),
        std::fs::TryLockError::Error(source) => {
            KeeperError::File { path: path.to_owned(), what: "locked", source }
        }
    })
}

fn now() -> String {
    let seconds = crate::clock::now().seconds();
    let now = time::OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    now.format(&time::format_description::well_known::Rfc3339).unwrap_or_default()
}
