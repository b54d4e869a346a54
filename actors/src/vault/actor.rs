//! The actor in front of the signing threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler, ResponseFuture, SyncArbiter};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::messages::{Do, Work};
use super::store::Store;
use super::worker::Worker;
use super::{Outside, VaultError, VaultHandle, VaultSettings};
use crate::supervise::{Birth, Liveness, Owned, RestartPolicy, Slot};

/// Work that waits this long without any other being finished means that the threads hang, for example on a dead disk.
const STALLED_AFTER: Duration = Duration::from_secs(30);

/// Keeps every private key, token and password, and lets others have signatures instead (see the module's text).
pub struct VaultKeeper {
    workers: Addr<Worker>,
    places: Arc<Semaphore>,
    queue: usize,
    progress: Arc<Progress>,
    // Dropped last of all, with the actor: tells the owner of its end.
    _birth: Option<Birth>,
}

/// When work was last seen moving, in milliseconds of the actor's life.
struct Progress {
    born: Instant,
    last: AtomicU64,
}

impl Progress {
    fn note(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    fn idle(&self) -> Duration {
        self.born.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

impl VaultKeeper {
    /// The vault's actor and its threads. `birth` comes from its owner; without one it is nobody's child.
    pub fn new(settings: VaultSettings, outside: Outside, birth: Option<Birth>) -> Self {
        let threads = settings.threads.get();
        let queue = settings.queue.get();
        let store = Arc::new(Store::new(settings, outside));
        let builder = || std::thread::Builder::new().name("vault".to_owned());
        let workers = SyncArbiter::start_with_thread_builder(threads, builder, move || Worker {
            store: Arc::clone(&store),
        });
        let progress = Arc::new(Progress { born: Instant::now(), last: AtomicU64::new(0) });
        let places = Arc::new(Semaphore::new(queue.min(Semaphore::MAX_PERMITS)));
        Self { workers, places, queue, progress, _birth: birth }
    }

    /// The vault as a child of an owner: restarted at once, then with growing delays, for ever.
    pub fn owned(settings: VaultSettings, outside: Outside) -> (VaultHandle, Owned<Self>) {
        let slot = Slot::new(settings.position, settings.queue.get());
        let handle = VaultHandle::new(slot.clone(), settings.unsigned());
        let owned = Owned::new(slot, RestartPolicy::standard().at_once(), move |birth, _ctx| {
            Self::new(settings.clone(), outside.clone(), Some(birth))
        });
        (handle, owned)
    }

    /// Starts a vault that nobody restarts, on the current arbiter.
    pub fn start_alone(settings: VaultSettings, outside: Outside) -> VaultHandle {
        let slot = Slot::new(settings.position, settings.queue.get());
        let unsigned = settings.unsigned();
        slot.set(Self::new(settings, outside, None).start());
        VaultHandle::new(slot, unsigned)
    }

    fn liveness(&self) -> Liveness {
        let busy = self.queue.saturating_sub(self.places.available_permits());
        let idle = self.progress.idle();
        if busy > 0 && idle > STALLED_AFTER {
            return Liveness::Stalled(format!(
                "{busy} requests wait and none was finished for {} s",
                idle.as_secs()
            ));
        }
        Liveness::Alive
    }
}

impl Actor for VaultKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(self.queue);
    }
}

crate::supervised!(VaultKeeper, |me| me.liveness());

impl<W: Work> Handler<Do<W>> for VaultKeeper {
    type Result = ResponseFuture<Result<W::Output, VaultError>>;

    fn handle(&mut self, work: Do<W>, _: &mut Self::Context) -> Self::Result {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let queue = self.queue;
            return Box::pin(async move { Err(VaultError::Busy { queue }) });
        };
        if self.places.available_permits() + 1 == self.queue {
            // The first after a pause: the time without work does not count as a stall.
            self.progress.note();
        }
        let progress = Arc::clone(&self.progress);
        let answer = self.workers.send(work);
        Box::pin(async move {
            let answer = answer.await;
            progress.note();
            drop(place);
            answer.unwrap_or(Err(VaultError::Panicked))
        })
    }
}
