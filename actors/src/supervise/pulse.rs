//! Liveness by progress: what a child says of itself, and how it declares a long wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::dev::{MessageResponse, OneshotSender};
use actix::{Actor, Message};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A child's answer to a [`super::Ping`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Liveness {
    /// The mailbox moves and nothing is amiss.
    Alive,
    /// The mailbox moves but the child's own work does not, and this is why: it counts as stuck.
    Stalled(String),
}

impl<A: Actor, M: Message<Result = Self>> MessageResponse<A, M> for Liveness {
    fn handle(self, _ctx: &mut A::Context, tx: Option<OneshotSender<Self>>) {
        if let Some(tx) = tx {
            // The asker may have gone; then nobody wants to know.
            let _ = tx.send(self);
        }
    }
}

/// Shared between one life of a child and its owner: a child that is about to keep its mailbox closed for longer than
/// the overseer's limit says so here first, with a limit of its own.
#[derive(Debug, Clone)]
pub struct Pulse {
    born: Instant,
    excused_until_ms: Arc<AtomicU64>,
}

impl Pulse {
    /// The pulse of a life that begins now.
    pub fn new() -> Self {
        Self { born: Instant::now(), excused_until_ms: Arc::new(AtomicU64::new(0)) }
    }

    /// Declares an outside wait of at most this long, from now.
    pub fn excuse(&self, limit: Duration) {
        let until = self.born.elapsed().saturating_add(limit).as_millis();
        self.excused_until_ms.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The declared wait is over.
    pub fn resume(&self) {
        self.excused_until_ms.store(0, Ordering::Relaxed);
    }

    /// True while a declared wait is within its limit.
    pub fn is_excused(&self) -> bool {
        self.born.elapsed().as_millis() < u128::from(self.excused_until_ms.load(Ordering::Relaxed))
    }
}

impl Default for Pulse {
    fn default() -> Self {
        Self::new()
    }
}

/// How many children may be in the middle of a restart at once, so that one cause that ends many does not start all of
/// them in the same instant. Clones share the places.
#[derive(Debug, Clone)]
pub struct RestartPool(Arc<Semaphore>);

/// One place in a [`RestartPool`], free again when dropped.
#[derive(Debug)]
pub struct RestartPermit {
    _place: OwnedSemaphorePermit,
}

impl RestartPool {
    /// A pool with this many places, at least one.
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// A place, if one is free now.
    pub fn try_take(&self) -> Option<RestartPermit> {
        Arc::clone(&self.0).try_acquire_owned().ok().map(|place| RestartPermit { _place: place })
    }

    /// Waits for a place.
    pub async fn take(&self) -> Option<RestartPermit> {
        Arc::clone(&self.0).acquire_owned().await.ok().map(|place| RestartPermit { _place: place })
    }
}

/// Implements what every owned actor answers: `Ping`, `Stop` and, with the feature `testing`, `Force`.
///
/// `supervised!(MyActor)` answers every ping with [`Liveness::Alive`]; `supervised!(MyActor, |me| me.liveness())` lets
/// the actor say that its own work has stalled.
#[macro_export]
macro_rules! supervised {
    ($actor:ty) => {
        $crate::supervised!($actor, |_me: &$actor| $crate::supervise::Liveness::Alive);
    };
    ($actor:ty, $liveness:expr) => {
        impl ::actix::Handler<$crate::supervise::Ping> for $actor {
            type Result = $crate::supervise::Liveness;

            fn handle(
                &mut self,
                _: $crate::supervise::Ping,
                _: &mut Self::Context,
            ) -> $crate::supervise::Liveness {
                let liveness: fn(&$actor) -> $crate::supervise::Liveness = $liveness;
                liveness(self)
            }
        }

        impl ::actix::Handler<$crate::supervise::Stop> for $actor {
            type Result = ();

            fn handle(&mut self, _: $crate::supervise::Stop, ctx: &mut Self::Context) {
                ::actix::ActorContext::stop(ctx);
            }
        }

        $crate::forced_endings!($actor);
    };
}

/// The fail points of [`supervised!`]; nothing without the feature `testing`.
#[cfg(feature = "testing")]
#[doc(hidden)]
#[macro_export]
macro_rules! forced_endings {
    ($actor:ty) => {
        impl ::actix::Handler<$crate::supervise::Force> for $actor {
            type Result = ();

            fn handle(&mut self, force: $crate::supervise::Force, ctx: &mut Self::Context) {
                $crate::supervise::force(self, force.0, ctx);
            }
        }
    };
}

/// The fail points of [`supervised!`]; nothing without the feature `testing`.
#[cfg(not(feature = "testing"))]
#[doc(hidden)]
#[macro_export]
macro_rules! forced_endings {
    ($actor:ty) => {};
}
