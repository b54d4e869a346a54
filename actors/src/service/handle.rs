//! What others hold of the service.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::Context;
use tokio::sync::watch;

use super::actor::{Attendant, Shared};
use super::messages::{ServiceSettings, ServiceSnapshot};
use super::micro::{About, Book, Offer};
use crate::supervise::{Birth, Slot};

/// Nobody asks the attendant anything but its owner.
const MAX_ASKS: usize = 16;

/// A handle to the service; survives restarts of its actor, and so do the service's name and numbers.
#[derive(Debug, Clone)]
pub struct ServiceHandle {
    slot: Slot<Attendant>,
    settings: Arc<ServiceSettings>,
    shared: Shared,
}

impl ServiceHandle {
    /// The handle of a service that does not listen yet: its owner starts it from [`ServiceHandle::slot`] and
    /// [`ServiceHandle::factory`].
    pub fn new(settings: ServiceSettings) -> Self {
        let about = About {
            name: settings.name,
            id: uuid::Uuid::new_v4().simple().to_string(),
            version: settings.version,
            metadata: settings.metadata.clone(),
        };
        let offers = settings.endpoints.iter().map(|endpoint| Offer {
            name: endpoint.name,
            subject: format!("{}.{}", settings.prefix, endpoint.name),
            queue_group: "",
            metadata: endpoint.metadata.clone(),
        });
        let book = Book::new(about, settings.description, settings.started.clone(), offers.collect());
        let shared = Shared {
            book: Arc::new(Mutex::new(book)),
            state: Arc::new(watch::Sender::new(ServiceSnapshot::default())),
        };
        Self { slot: Slot::new("service", MAX_ASKS), settings: Arc::new(settings), shared }
    }

    /// The position.
    pub const fn slot(&self) -> &Slot<Attendant> {
        &self.slot
    }

    /// Makes one life of the attendant.
    pub fn factory(&self) -> impl Fn(Birth, &mut Context<Attendant>) -> Attendant + Send + Sync + 'static {
        let (settings, shared) = (Arc::clone(&self.settings), self.shared.clone());
        move |birth, _| Attendant::new(Arc::clone(&settings), shared.clone(), birth.notice)
    }

    /// Where it stands now; never waits on the actor.
    pub fn snapshot(&self) -> ServiceSnapshot {
        *self.shared.state.borrow()
    }

    /// Where it stands as that changes.
    pub fn subscribe(&self) -> watch::Receiver<ServiceSnapshot> {
        self.shared.state.subscribe()
    }

    /// Waits until no request is being answered any more, at most for `limit`.
    pub async fn settled(&self, limit: Duration) {
        let mut state = self.shared.state.subscribe();
        let settled = state.wait_for(|now| now.under_way == 0);
        // Running out of time is an answer as well.
        drop(tokio::time::timeout(limit, settled).await);
    }
}
