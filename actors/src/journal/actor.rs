//! The JournalKeeper: writes what was entered, many entries at a time, on a thread of its own.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, AsyncContext as _, Context, Handler};
use tokio::time::Instant;

use super::error::StoreError;
use super::messages::WritesDue;
use super::shared::Shared;
use super::store::Store;
use crate::metrics::{Fact, Recorder};
use crate::supervise::Birth;
use crate::text::chain;

/// Wake-ups waiting at most: one says as much as many.
const MAILBOX: usize = 4;
/// How long entries that somebody waits for are gathered, so that one commit serves many.
const GATHER: Duration = Duration::from_millis(2);
/// How often entries that nobody waits for are written.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// How often a new file is tried after the disk refused.
const RENEW_EVERY: Duration = Duration::from_secs(30);

/// The actor.
pub struct JournalKeeper {
    shared: Arc<Shared>,
    recorder: Recorder,
    wall_ms: fn() -> i64,
    store: Option<Store>,
    life: u64,
    gathering: bool,
    _birth: Option<Birth>,
}

impl JournalKeeper {
    pub(super) const fn new(
        shared: Arc<Shared>,
        recorder: Recorder,
        wall_ms: fn() -> i64,
        birth: Option<Birth>,
    ) -> Self {
        Self { shared, recorder, wall_ms, store: None, life: 0, gathering: false, _birth: birth }
    }

    /// Writes what waits, if there is a file to write it to.
    fn commit(&mut self) {
        self.gathering = false;
        let Some(store) = &self.store else { return };
        let writes = {
            let mut inner = self.shared.lock();
            if inner.life != self.life {
                // Replaced while it hung: the file is another's by now.
                drop(inner);
                self.store = None;
                return;
            }
            let mut waiters = std::mem::take(&mut inner.waiters);
            inner.in_hand.append(&mut waiters);
            let writes = std::mem::take(&mut inner.queue);
            self.shared.show_room(&inner);
            writes
        };
        if writes.is_empty() {
            return self.tell(true);
        }
        let began = Instant::now();
        match store.write(&writes) {
            Ok(()) => {
                self.recorder.record(Fact::JournalCommitted { entries: writes.len(), took: began.elapsed() });
                self.tell(true);
            }
            Err(error) => self.degrade(&error),
        }
    }

    /// Tells those whose entries were in hand what became of them.
    fn tell(&self, durable: bool) {
        let waiters = {
            let mut inner = self.shared.lock();
            if inner.life == self.life { std::mem::take(&mut inner.in_hand) } else { Vec::new() }
        };
        for waiter in waiters {
            // Whoever no longer waits needs no answer.
            let _ = waiter.send(durable);
        }
    }

    /// From now on everything is in memory only. False for a life that was replaced, which has no say in it.
    fn give_up_disk(&mut self) -> bool {
        self.store = None;
        {
            let mut inner = self.shared.lock();
            if inner.life != self.life {
                return false;
            }
            inner.durable = false;
            inner.queue.clear();
            let mut waiters = std::mem::take(&mut inner.waiters);
            inner.in_hand.append(&mut waiters);
            self.shared.show_room(&inner);
        }
        self.tell(false);
        true
    }

    /// The disk refuses: the work goes on in memory, and the file, which from now on tells less than the truth, is kept
    /// aside.
    fn degrade(&mut self, error: &StoreError) {
        if !self.give_up_disk() {
            return;
        }
        self.recorder.record(Fact::JournalFailed { error: chain(error) });
        let Some(folder) = &self.shared.folder else { return };
        let kept = match folder.set_aside((self.wall_ms)()) {
            Ok(Some(aside)) => format!("the old file is kept as {}", aside.display()),
            Ok(None) => "there is no file".to_owned(),
            Err(refused) => format!("the old file could not be renamed: {refused}"),
        };
        tracing::error!(
            "the journal cannot be written: {}; {kept}; provisioning goes on, what must survive a restart is in memory \
             until a new file can be written",
            chain(error)
        );
    }

    /// Writes a new file that holds everything, after the disk refused, or for a keeper whose earlier life has left a
    /// batch unwritten.
    fn renew(&mut self) {
        let Some(folder) = self.shared.folder.as_ref().filter(|_| self.store.is_none()) else { return };
        let writes = {
            let mut inner = self.shared.lock();
            if inner.life != self.life {
                return;
            }
            inner.durable = true;
            inner.queue.clear();
            let mut waiters = std::mem::take(&mut inner.waiters);
            inner.in_hand.append(&mut waiters);
            inner.journal.all()
        };
        match folder.renew(&writes) {
            Ok(store) => {
                self.store = Some(store);
                self.tell(true);
                self.recorder.record(Fact::JournalDurable { durable: true });
                tracing::warn!(entries = writes.len(), "the journal is written to a new file from now on");
            }
            Err(error) => {
                if self.give_up_disk() {
                    self.recorder.record(Fact::JournalFailed { error: chain(&error) });
                }
            }
        }
    }
}

impl Actor for JournalKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        (self.life, self.store) = self.shared.begin_life();
        let durable = self.store.is_some();
        self.recorder.record(Fact::JournalDurable { durable });
        if self.shared.folder.is_none() {
            return;
        }
        if durable {
            self.commit();
        } else {
            self.renew();
        }
        ctx.run_interval(FLUSH_EVERY, |me, _| me.commit());
        ctx.run_interval(RENEW_EVERY, |me, _| me.renew());
    }
}

impl Handler<WritesDue> for JournalKeeper {
    type Result = ();

    fn handle(&mut self, _: WritesDue, ctx: &mut Self::Context) {
        if !self.gathering {
            self.gathering = true;
            ctx.run_later(GATHER, |me, _| me.commit());
        }
    }
}

crate::supervised!(JournalKeeper);
