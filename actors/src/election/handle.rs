//! What others hold of the election.

use std::sync::Arc;
use std::time::Duration;

use actix::Context;
use tokio::sync::watch;

use super::actor::{Elector, ElectorSettings};
use super::messages::{ElectionSnapshot, HandOver};
use crate::supervise::{Birth, Slot};

/// Nobody asks the elector anything, so that its owner is the only one who waits for it.
const MAX_ASKS: usize = 16;

/// A handle to the election; survives restarts of its actor.
#[derive(Debug, Clone)]
pub struct ElectionHandle {
    slot: Slot<Elector>,
    settings: ElectorSettings,
    publish: Arc<watch::Sender<ElectionSnapshot>>,
}

impl ElectionHandle {
    /// The handle of an election that does not take part yet: its owner starts it from [`ElectionHandle::slot`] and
    /// [`ElectionHandle::factory`].
    pub fn new(settings: ElectorSettings) -> Self {
        let publish = Arc::new(watch::Sender::new(ElectionSnapshot::new()));
        Self { slot: Slot::new("election", MAX_ASKS), settings, publish }
    }

    /// The position.
    pub const fn slot(&self) -> &Slot<Elector> {
        &self.slot
    }

    /// Makes one life of the elector.
    pub fn factory(&self) -> impl Fn(Birth, &mut Context<Elector>) -> Elector + Send + Sync + 'static {
        let (settings, publish) = (self.settings.clone(), Arc::clone(&self.publish));
        move |birth, _| Elector::new(settings.clone(), Arc::clone(&publish), birth.notice)
    }

    /// Gives the lead away, if it is held, and takes no further part. True when the other members could be told.
    pub async fn hand_over(&self, limit: Duration) -> bool {
        self.slot.ask(HandOver, limit).await.unwrap_or(false)
    }

    /// The election now; never waits on the actor.
    pub fn snapshot(&self) -> ElectionSnapshot {
        self.publish.borrow().clone()
    }
}
