//! What others hold of the FleetKeeper.

use std::time::Duration;

use tokio::sync::watch;

use super::actor::FleetKeeper;
use super::messages::{EndCycles, FleetSnapshot, HostNoticed, HostView, ObserveTroubled};
use crate::discovery::Seen;
use crate::supervise::{AskError, SendRefused, Slot};

/// How long a question to the keeper may take.
const ASK_DEADLINE: Duration = Duration::from_secs(2);

/// A handle to the FleetKeeper; survives its restarts.
#[derive(Debug, Clone)]
pub struct FleetHandle {
    slot: Slot<FleetKeeper>,
    snapshot: watch::Receiver<FleetSnapshot>,
}

impl FleetHandle {
    /// A handle to the keeper in this slot, which publishes there.
    pub const fn new(slot: Slot<FleetKeeper>, snapshot: watch::Receiver<FleetSnapshot>) -> Self {
        Self { slot, snapshot }
    }

    /// Says that a host was noticed; refused when the keeper's mailbox is full or it is down.
    pub fn noticed(&self, seen: Seen) -> Result<(), SendRefused> {
        self.slot.try_send(HostNoticed(seen))
    }

    /// Ends every cycle at its next safe point.
    pub fn end_cycles(&self) -> Result<(), SendRefused> {
        self.slot.try_send(EndCycles)
    }

    /// The fleet in numbers, never waiting for the keeper.
    pub fn snapshot(&self) -> FleetSnapshot {
        *self.snapshot.borrow()
    }

    /// The numbers as they change.
    pub fn subscribe(&self) -> watch::Receiver<FleetSnapshot> {
        self.snapshot.clone()
    }

    /// Hosts with a failure or in a cycle, at most `most`.
    pub async fn troubled(&self, most: usize) -> Result<Vec<HostView>, AskError> {
        self.slot.ask(ObserveTroubled { most }, ASK_DEADLINE).await
    }
}
