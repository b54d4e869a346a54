//! What can go wrong with the journal's file, and with its folder.

use std::io;
use std::path::PathBuf;

/// What went wrong with the file. None of these stops the instance: the old file is kept aside where that helps, and
/// provisioning goes on from discovery.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is damaged.
    #[error("it is damaged: {0}")]
    Corrupt(String),
    /// Another version of this program wrote it.
    #[error("its format is {found} and this version reads {ours}")]
    Format {
        /// The format found.
        found: u64,
        /// Ours.
        ours: u64,
    },
    /// The store below needs another version of itself.
    #[error("it is in the store's old file format {0}")]
    OldStore(u8),
    /// It is a database of something else.
    #[error("it is not a journal of this program")]
    Foreign,
    /// Somebody has it open.
    #[error("somebody else has it open")]
    Open,
    /// The disk did not do it.
    #[error("the disk refused")]
    Io(#[source] io::Error),
    /// An earlier error of the disk has closed it.
    #[error("an earlier error of the disk has closed it")]
    Closed,
}

/// Why the folder cannot be used at all, which refuses the start.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// Another instance uses it.
    #[error("another instance uses the state folder {}: give each instance a `state_dir` of its own", path.display())]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// It cannot be made, or not be used.
    #[error("cannot use the state folder {}", path.display())]
    Unusable {
        /// The folder, or the file in it.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl From<redb::Error> for StoreError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
                Self::Corrupt(source.to_string())
            }
            redb::Error::Io(source) => Self::Io(source),
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => Self::Closed,
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => Self::Open,
            redb::Error::UpgradeRequired(version) => Self::OldStore(version),
            redb::Error::TableDoesNotExist(_) => Self::Foreign,
            other => Self::Corrupt(other.to_string()),
        }
    }
}

macro_rules! through_redb {
    ($($error:ty),+) => {$(
        impl From<$error> for StoreError {
            fn from(error: $error) -> Self {
                redb::Error::from(error).into()
            }
        }
    )+};
}

through_redb!(
    redb::DatabaseError,
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError,
    redb::CompactionError
);
