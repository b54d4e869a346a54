//! What happened to each host, and what must survive the process: cycles in flight, attempts, waits, an operator's pause.
//!
//! `journal.rs` is the fold (pure): entries in, state out, and what has to be written for it. `handle.rs` takes entries from
//! everybody, `actor.rs` writes them to the file in `store.rs`, many at a time, and `folder.rs` knows the state folder.
mod actor;
mod entry;
mod error;
mod folder;
mod handle;
mod history;
#[expect(clippy::module_inception, reason = "the fold of every folder is called journal.rs")]
mod journal;
mod messages;
mod provided;
mod record;
mod seal;
mod shared;
mod store;
#[cfg(test)]
mod tests;

pub use actor::JournalKeeper;
pub use entry::{Began, Entry, Intent, Stand, Standing, StoredFailure, StoredPause, Unfinished};
pub use error::{StateDirError, StoreError};
pub use handle::{Found, JournalHandle, Restored};
pub use history::{History, HistoryLimits};
pub use journal::{CutOff, Journal, Write};
pub use messages::WritesDue;
pub use record::{AttemptRecord, HelperRecord, StepRecord};
pub use seal::Seal;
