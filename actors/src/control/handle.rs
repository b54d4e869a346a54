//! What others hold of the Controller.

use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Context, Handler, Message};
use tokio::time::Instant;

use super::actor::Controller;
use super::messages::{DrainFleet, EndFleet, LeadershipChanged, PauseFleet, ResumeFleet};
use super::state::{RunState, RunStateReceiver};
use crate::supervise::{AskError, Slot};

/// How long a command may take to be carried out.
const ASK_DEADLINE: Duration = Duration::from_secs(5);
/// How long an operator's command waits for a Controller that is just being replaced, which takes some hundred milliseconds.
const RESTART_DEADLINE: Duration = Duration::from_secs(2);

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

    /// An operator's command, which is the same when it is carried out twice: a Controller that ends in this moment does not cost it.
    async fn command<M>(&self, command: M) -> Result<(), AskError>
    where
        M: Message<Result = ()> + Clone + Send + 'static,
        Controller: Handler<M>,
        Context<Controller>: ToEnvelope<Controller, M>,
    {
        let end = Instant::now() + RESTART_DEADLINE;
        loop {
            // Whether one is there is said by the question itself.
            self.slot.up(end.saturating_duration_since(Instant::now())).await;
            match self.slot.ask(command.clone(), ASK_DEADLINE).await {
                Err(AskError::Dropped { .. } | AskError::Down { .. }) if Instant::now() < end => {
                    // One that is just ending may count as there for a moment.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                done => return done,
            }
        }
    }

    /// Pauses; `now` is Unix seconds. The pause is in force before it is kept on a disk, and this waits for both.
    pub async fn pause(&self, who: String, why: String, now: i64) -> Result<(), AskError> {
        self.command(PauseFleet { who, why, now }).await
    }

    /// Resumes.
    pub async fn resume(&self) -> Result<(), AskError> {
        self.command(ResumeFleet).await
    }

    /// Leadership was won or lost.
    pub async fn lead(&self, leading: bool) -> Result<(), AskError> {
        self.slot.ask(LeadershipChanged { leading }, ASK_DEADLINE).await
    }

    /// Takes nothing new from now on.
    pub async fn drain(&self) -> Result<(), AskError> {
        self.command(DrainFleet).await
    }

    /// Starts no more helpers from now on, beside taking nothing new.
    pub async fn end(&self) -> Result<(), AskError> {
        self.slot.ask(EndFleet, ASK_DEADLINE).await
    }
}
