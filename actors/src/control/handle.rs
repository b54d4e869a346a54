//! What others hold of the Controller.

use std::time::Duration;

use super::actor::Controller;
use super::messages::{DrainFleet, EndFleet, LeadershipChanged, PauseFleet, ResumeFleet};
use super::state::{RunState, RunStateReceiver};
use crate::supervise::{AskError, Slot};

/// How long a command may take to be carried out.
const ASK_DEADLINE: Duration = Duration::from_secs(5);

/// A handle to the Controller; survives its restarts.
#[derive(Debug, Clone)]
pub struct ControlHandle {
    slot: Slot<Controller>,
    state: RunStateReceiver,
}

impl ControlHandle {
    /// A handle to the Controller in this slot, which writes there.
    pub const fn new(slot: Slot<Controller>, state: RunStateReceiver) -> Self {
        Self { slot, state }
    }

    /// The run state now.
    pub fn state(&self) -> RunState {
        self.state.borrow().clone()
    }

    /// The run state as it changes.
    pub fn subscribe(&self) -> RunStateReceiver {
        self.state.clone()
    }

    /// Pauses; `now` is Unix seconds. The pause is in force before it is kept on a disk, and this waits for both.
    pub async fn pause(&self, who: String, why: String, now: i64) -> Result<(), AskError> {
        self.slot.ask(PauseFleet { who, why, now }, ASK_DEADLINE).await
    }

    /// Resumes.
    pub async fn resume(&self) -> Result<(), AskError> {
        self.slot.ask(ResumeFleet, ASK_DEADLINE).await
    }

    /// Leadership was won or lost.
    pub async fn lead(&self, leading: bool) -> Result<(), AskError> {
        self.slot.ask(LeadershipChanged { leading }, ASK_DEADLINE).await
    }

    /// Takes nothing new from now on.
    pub async fn drain(&self) -> Result<(), AskError> {
        self.slot.ask(DrainFleet, ASK_DEADLINE).await
    }

    /// Starts no more helpers from now on, beside taking nothing new.
    pub async fn end(&self) -> Result<(), AskError> {
        self.slot.ask(EndFleet, ASK_DEADLINE).await
    }
}
