//! What others hold of the journal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quartermaster_proto::choria::identity::Identity;

use super::history::{History, HistoryLimits};
use super::record::AttemptRecord;

/// A handle to the journal; clones share it. Nothing here waits for a disk but where it says so.
#[derive(Debug, Clone)]
pub struct JournalHandle {
    history: Arc<Mutex<History>>,
}

impl JournalHandle {
    /// A journal that forgets everything with the process.
    pub fn in_memory() -> Self {
        Self { history: Arc::new(Mutex::new(History::new(HistoryLimits::STANDARD))) }
    }

    fn history_of_all(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt is over.
    pub fn ended(&self, host: &Identity, attempt: &AttemptRecord, now_ms: i64) {
        self.history_of_all().add(host, attempt, now_ms);
    }

    /// Forgets a host; true when anything was known of it.
    pub fn forget(&self, host: &Identity) -> bool {
        !self.history_of_all().forget(host).is_empty()
    }

    /// The attempts of a host that are over, oldest first.
    pub fn history(&self, host: &Identity) -> Vec<AttemptRecord> {
        self.history_of_all().of(host)
    }
}
