//! One host's ledger, shared by whoever works with it, and whose it is at present.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ledger::Ledger;
use super::record::Record;

#[derive(Debug, Default)]
struct Inner {
    owner: u64,
    ledger: Ledger,
}

/// A host's ledger; clones share it. Only plain data lies here, and nobody holds it for longer than a copy takes.
#[derive(Debug, Clone, Default)]
pub struct StepLog(Arc<Mutex<Inner>>);

impl StepLog {
    /// A log that begins with what was found.
    pub fn of(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(Inner { owner: 0, ledger })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on only this owner may write; a cycle that was replaced and goes on all the same may not.
    pub fn give_to(&self, owner: u64) {
        self.inner().owner = owner;
    }

    /// Takes a record in; false when the log is another's by now.
    pub fn write(&self, owner: u64, record: &Record) -> bool {
        let mut inner = self.inner();
        let ours = inner.owner == owner;
        if ours {
            inner.ledger.apply(record);
        }
        ours
    }

    /// An operator's word, whoever's the log is.
    pub fn decide(&self) {
        self.inner().ledger.apply(&Record::Decided);
    }

    /// Whether the log is this owner's.
    pub fn is_of(&self, owner: u64) -> bool {
        self.inner().owner == owner
    }

    /// The ledger as it is now.
    pub fn ledger(&self) -> Ledger {
        self.inner().ledger.clone()
    }

    /// Looks at the ledger.
    pub fn look<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        look(&self.inner().ledger)
    }
}

impl PartialEq for StepLog {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for StepLog {}
