//! The JournalKeeper: writes what was entered, many entries at a time, on a thread of its own.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, AsyncContext as _, Context, Handler};
use tokio::time::Instant;

use super::error::StoreError;
use super::messages::WritesDue;
use super::shared::{Shared, Waiter};
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
        Self { shared, recorder, wall_ms, store: None, gathering: false, _birth: birth }
    }

    /// Writes what waits, if there is a file to write it to.
    fn commit(&mut self) {
        self.gathering = false;
        let Some(store) = &self.store else { return };
        let (writes, waiters) = {
            let mut inner = self.shared.lock();
            let batch = (std::mem::take(&mut inner.queue), std::mem::take(&mut inner.waiters));
            self.shared.show_room(&inner);
            batch
        };
        if writes.is_empty() {
            return tell(waiters, true);
        }
        let began = Instant::now();
        match store.write(&writes) {
            Ok(()) => {
                self.recorder.record(Fact::JournalCommitted { entries: writes.len(), took: began.elapsed() });
                tell(waiters, true);
            }
            Err(error) => self.degrade(&error, waiters),
        }
    }

    /// The disk refuses: the work goes on in memory, and the file, which from now on tells less than the truth, is kept
    /// aside.
    fn degrade(&mut self, error: &StoreError, waiters: Vec<Waiter>) {
        self.store = None;
        let more = {
            let mut inner = self.shared.lock();
            inner.durable = false;
            inner.queue.clear();
            self.shared.show_room(&inner);
            std::mem::take(&mut inner.waiters)
        };
        tell(waiters, false);
        tell(more, false);
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
        let (writes, waiters) = {
            let mut inner = self.shared.lock();
            inner.durable = true;
            inner.queue.clear();
            (inner.journal.all(), std::mem::take(&mut inner.waiters))
        };
        match folder.renew(&writes) {
            Ok(store) => {
                self.store = Some(store);
                tell(waiters, true);
                self.recorder.record(Fact::JournalDurable { durable: true });
                tracing::warn!(entries = writes.len(), "the journal is written to a new file from now on");
            }
            Err(error) => {
                let more = {
                    let mut inner = self.shared.lock();
                    inner.durable = false;
                    inner.queue.clear();
                    std::mem::take(&mut inner.waiters)
                };
                tell(waiters, false);
                tell(more, false);
                self.recorder.record(Fact::JournalFailed { error: chain(&error) });
            }
        }
    }
}

fn tell(waiters: Vec<Waiter>, durable: bool) {
    for waiter in waiters {
        // Whoever no longer waits needs no answer.
        let _ = waiter.send(durable);
    }
}

impl Actor for JournalKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.store = self.shared.lock().store.take();
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
