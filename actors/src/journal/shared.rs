//! What the journal's handles and its keeper share: the fold, and what is still to be written. It outlives every life of the
//! keeper.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

use super::actor::JournalKeeper;
use super::entry::Entry;
use super::folder::Folder;
use super::journal::{Journal, Write};
use super::messages::WritesDue;
use super::store::Store;
use crate::supervise::Slot;

/// Writes that may wait; beyond that, steps with an effect and new cycles wait for the disk.
pub(super) const MAX_WAITING: usize = 8192;

/// Who waits for a batch; told whether it is on the disk.
pub(super) type Waiter = oneshot::Sender<bool>;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) journal: Journal,
    pub(super) queue: Vec<Write>,
    pub(super) waiters: Vec<Waiter>,
    /// Who waits for the batch that is being written: here, so that a keeper that hangs over it keeps nobody.
    pub(super) in_hand: Vec<Waiter>,
    /// The keeper's life that may write; one that was replaced and wakes up again may not.
    pub(super) life: u64,
    /// Whether what is entered is to be written; false in memory, and while the disk refuses.
    pub(super) durable: bool,
    /// Opened at the start, for the keeper's first life.
    pub(super) store: Option<Store>,
}

/// The shared part.
#[derive(Debug)]
pub(super) struct Shared {
    inner: Mutex<Inner>,
    pub(super) slot: Slot<JournalKeeper>,
    pub(super) folder: Option<Folder>,
    room: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn new(journal: Journal, folder: Option<Folder>, store: Option<Store>) -> Arc<Self> {
        let durable = store.is_some();
        let inner = Inner {
            journal,
            queue: Vec::new(),
            waiters: Vec::new(),
            in_hand: Vec::new(),
            life: 0,
            durable,
            store,
        };
        Arc::new(Self {
            inner: Mutex::new(inner),
            slot: Slot::new("journal", 1),
            folder,
            room: watch::Sender::new(true),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // Plain data; an entry that a panic cut short is at worst missing, as if it had come too late.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new life of the keeper begins: answers its number, and the store when it is the first.
    pub(super) fn begin_life(&self) -> (u64, Option<Store>) {
        let mut inner = self.lock();
        inner.life += 1;
        let mut left = std::mem::take(&mut inner.in_hand);
        inner.waiters.append(&mut left);
        (inner.life, inner.store.take())
    }

    /// Takes an entry in, to be written soon.
    pub(super) fn note(&self, entry: Entry, now_ms: i64) {
        let mut inner = self.lock();
        self.take_in(&mut inner, entry, now_ms);
    }

    /// Takes an entry in, to be written at once; the receiver hears whether it is on the disk. None when nothing is written.
    pub(super) fn enter(&self, entry: Entry, now_ms: i64) -> Option<oneshot::Receiver<bool>> {
        let mut inner = self.lock();
        self.take_in(&mut inner, entry, now_ms);
        let waiting = Self::wait_in(&mut inner);
        drop(inner);
        self.wake();
        waiting
    }

    /// Waits for whatever is to be written now.
    pub(super) fn wait(&self) -> Option<oneshot::Receiver<bool>> {
        let waiting = Self::wait_in(&mut self.lock());
        self.wake();
        waiting
    }

    fn wait_in(inner: &mut Inner) -> Option<oneshot::Receiver<bool>> {
        if !inner.durable {
            return None;
        }
        let (told, waiting) = oneshot::channel();
        inner.waiters.push(told);
        Some(waiting)
    }

    fn take_in(&self, inner: &mut Inner, entry: Entry, now_ms: i64) {
        let writes = inner.journal.apply(entry, now_ms);
        if inner.durable {
            inner.queue.extend(writes);
            self.show_room(inner);
        }
    }

    /// Says whether there is room for more.
    pub(super) fn show_room(&self, inner: &Inner) {
        let has_room = inner.queue.len() < MAX_WAITING;
        self.room.send_if_modified(|room| std::mem::replace(room, has_room) != has_room);
    }

    /// Whether there is room, as it changes.
    pub(super) fn room(&self) -> watch::Receiver<bool> {
        self.room.subscribe()
    }

    fn wake(&self) {
        // A keeper that is down finds what is to be written when it starts, and a full mailbox has woken it already.
        let _ = self.slot.try_send(WritesDue);
    }
}
