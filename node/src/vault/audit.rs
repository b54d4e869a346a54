//! Who had what: one JSON line for every request, on the disk before its answer leaves.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use quartermaster_proto::time::WallClock;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Permission bits of the file.
const MODE: u32 = 0o640;

/// What was asked of the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// A value, by an account.
    Get,
    /// A deposit, by a provider.
    Put,
    /// A value stored by an operator, or made by the vault.
    Set,
    /// A value forgotten by an operator.
    Delete,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The value left, sealed to the asker.
    Sealed,
    /// There is none yet.
    Absent,
    /// It was not given or taken.
    Refused,
    /// It was stored.
    Stored,
    /// The vault made it.
    Made,
    /// It was forgotten.
    Deleted,
    /// The request was no request, or wanted its answer somewhere else.
    Dropped,
}

/// One line. It holds no value and no hash of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// When, RFC 3339.
    pub at: String,
    /// What.
    pub op: Operation,
    /// By whom; `admin` for an operator.
    pub account: String,
    /// Which.
    pub name: String,
    /// What came of it.
    pub outcome: Verdict,
    /// The version that left or was stored; 0 for none.
    pub version: u64,
    /// Why, where it was refused.
    pub reason: String,
}

/// The moment as it stands in a line.
pub fn stamp(now: WallClock) -> String {
    OffsetDateTime::from_unix_timestamp(now.seconds())
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_default()
}

/// The open file.
pub struct Audit {
    path: PathBuf,
    file: File,
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Audit {
    /// Opens the file for appending, or makes it with mode 0640.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(MODE).open(path)?;
        let mode = file.metadata()?.permissions().mode() & 0o777;
        if mode & !MODE != 0 {
            tracing::warn!(path = %path.display(), mode = format!("{mode:04o}"), "others may read or write the audit file");
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Opens the file of this name once more, after it was moved away.
    ///
    /// # Errors
    /// What the system says; the old file stays in use then.
    pub fn reopen(&mut self) -> io::Result<()> {
        self.file = Self::open(&self.path)?.file;
        Ok(())
    }

    /// Writes a line and puts it onto the disk.
    ///
    /// # Errors
    /// What the system says; nothing of the line stays behind, as far as that is possible.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if written.is_err() {
            // Half a line would spoil the next one.
            let _ = self.file.set_len(before);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn record() -> Record {
        Record {
            at: stamp(WallClock::from_seconds(1_795_975_200)),
            op: Operation::Get,
            account: "provisioner.web1".to_owned(),
            name: "own/forge/admin-password".to_owned(),
            outcome: Verdict::Sealed,
            version: 3,
            reason: String::new(),
        }
    }

    const LINE: &str = r#"{"at":"2026-11-29T18:00:00Z","op":"get","account":"provisioner.web1","name":"own/forge/admin-password","outcome":"sealed","version":3,"reason":""}"#;

    #[test]
    fn a_line_is_written_as_the_page_shows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let mut audit = Audit::open(&path).unwrap();
        audit.write(&record()).unwrap();
        audit.write(&record()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{LINE}\n{LINE}\n"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777 & !MODE, 0);
    }

    #[test]
    fn a_file_that_was_moved_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let mut audit = Audit::open(&path).unwrap();
        audit.write(&record()).unwrap();
        fs::rename(&path, folder.path().join("old")).unwrap();
        audit.reopen().unwrap();
        audit.write(&record()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{LINE}\n"));
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut audit = Audit::open(Path::new("/dev/full")).unwrap();
        assert!(audit.write(&record()).is_err());
    }
}
