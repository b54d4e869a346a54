//! What the rest of the process holds of the overseer.

use std::time::Duration;

use actix::Addr;
use tokio::sync::watch;

use super::messages::StopAll;
use super::{Fatal, Overseer, SupervisionSnapshot, Vital};

/// A handle to the overseer; clones are equal.
#[derive(Debug, Clone)]
pub struct OverseerHandle {
    pub(super) addr: Addr<Overseer>,
    pub(super) snapshot: watch::Receiver<SupervisionSnapshot>,
    pub(super) vital: Vital,
}

impl OverseerHandle {
    /// The state of every child, as last published. Never waits on the overseer.
    pub fn snapshot(&self) -> SupervisionSnapshot {
        self.snapshot.borrow().clone()
    }

    /// The published states as they change.
    pub fn subscribe(&self) -> watch::Receiver<SupervisionSnapshot> {
        self.snapshot.clone()
    }

    /// The overseer's signs of life, for the watchdog and the health check.
    pub fn vital(&self) -> Vital {
        self.vital.clone()
    }

    /// Resolves when the process cannot go on: a child's policy gave up, or the overseer itself has ended. (After
    /// [`OverseerHandle::stop`] the overseer has ended too.)
    pub async fn fatal(&self) -> Fatal {
        let mut changes = self.snapshot.clone();
        loop {
            if let Some(fatal) = self.vital.fatal() {
                return fatal.clone();
            }
            if changes.changed().await.is_err() {
                let gone = Fatal { child: "overseer", why: "the overseer has ended".to_owned() };
                return self.vital.fatal().cloned().unwrap_or(gone);
            }
        }
    }

    /// Stops every child, last started first; each may take this long before it is abandoned. Answers with the names
    /// of those that had to be abandoned, or none when the overseer itself was gone.
    pub async fn stop(&self, each: Duration) -> Option<Vec<&'static str>> {
        self.addr.send(StopAll { each }).await.ok()
    }

    /// Makes the overseer itself end in a forced way.
    #[cfg(feature = "testing")]
    pub fn force(&self, ending: super::Ending) {
        self.addr.do_send(super::messages::ForceOverseer(ending));
    }
}
