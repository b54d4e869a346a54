//! What others hold of the FleetKeeper.

use std::time::Duration;

use quartermaster_proto::choria::identity::Identity;
use tokio::sync::watch;

use super::actor::FleetKeeper;
use super::messages::{
    EndCycles, FleetSnapshot, ForgetHost, HostNoticed, ObserveHost, ObserveHosts, ObserveOverview,
    ObserveTroubled, RetryHost, RunningAttempt,
};
use super::view::{FleetOverview, Forgot, HostPage, HostQuery, HostView};
use crate::discovery::Seen;
use crate::journal::AttemptRecord;
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

    /// One page of hosts, ordered by name.
    pub async fn hosts(&self, query: HostQuery) -> Result<HostPage, AskError> {
        self.slot.ask(ObserveHosts(query), ASK_DEADLINE).await
    }

    /// One host; none when nobody knows it.
    pub async fn host(&self, identity: Identity) -> Result<Option<HostView>, AskError> {
        self.slot.ask(ObserveHost(identity), ASK_DEADLINE).await
    }

    /// What deserves a look now: the oldest in the queue, the slowest step, the last failures, at most `failures`.
    pub async fn overview(&self, failures: usize) -> Result<FleetOverview, AskError> {
        self.slot.ask(ObserveOverview { failures }, ASK_DEADLINE).await
    }

    /// The attempt of a host that is under way; those that are over are the journal's to tell.
    pub async fn running(&self, identity: Identity) -> Result<Option<AttemptRecord>, AskError> {
        self.slot.ask(RunningAttempt(identity), ASK_DEADLINE).await
    }

    /// Tries a host again now, whatever it waits for; false when nobody knows it.
    pub async fn retry(&self, identity: Identity) -> Result<bool, AskError> {
        self.slot.ask(RetryHost(identity), ASK_DEADLINE).await
    }

    /// Forgets a host and its history, unless it is between configure and restart.
    pub async fn forget(&self, identity: Identity) -> Result<Forgot, AskError> {
        self.slot.ask(ForgetHost(identity), ASK_DEADLINE).await
    }
}
