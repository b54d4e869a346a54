//! How everybody else uses the runner.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, interval};
use zeroize::Zeroizing;

use super::actor::{HelperParts, HelperRunner};
use super::board::HelperSnapshot;
use super::error::HelperError;
use super::messages::{HelperRun, QueueRun, RunHelper};
use crate::supervise::Slot;

/// How often a waiting caller looks whether the runner it asked is still the one in the position: a runner whose thread is
/// blocked answers nobody, and its owner puts another into its place.
const LOOK: Duration = Duration::from_secs(1);

/// The name of the runner's position, and its board. Cheap to clone; survives restarts of the runner.
#[derive(Debug, Clone)]
pub struct HelperHandle {
    slot: Slot<HelperRunner>,
    parts: Arc<HelperParts>,
}

impl HelperHandle {
    /// A handle to the runner in this position. `parts` are what its owner's factory makes runners of.
    pub const fn new(slot: Slot<HelperRunner>, parts: Arc<HelperParts>) -> Self {
        Self { slot, parts }
    }

    /// Runs the helper once and waits for its end: for a slot, in the order of asking, and then at most for the configured time
    /// limit and a grace. Dropping the future takes the run out of the queue, or stops it.
    pub async fn run(&self, run: RunHelper) -> Result<HelperRun, HelperError> {
        // Not left to the mailbox's bound: a new actor has a small one until its thread gets to it.
        let Ok(_place) = self.parts.places().try_acquire() else { return Err(self.parts.queue_full()) };
        let asked = self.slot.addr().ok_or(HelperError::Down)?;
        let (answer, mut answered) = oneshot::channel();
        let input = Zeroizing::new(run.input);
        let cycle = tracing::Span::current();
        asked.do_send(QueueRun { identity: run.identity, input, since: Instant::now(), cycle, answer });
        let mut look = interval(LOOK);
        loop {
            tokio::select! {
                answer = &mut answered => return answer.unwrap_or(Err(HelperError::Lost)),
                _ = look.tick() => {
                    if self.slot.addr().as_ref() != Some(&asked) {
                        // It may have answered just before it went.
                        return answered.try_recv().unwrap_or(Err(HelperError::Lost));
                    }
                }
            }
        }
    }

    /// The runner at this moment. Does not ask the actor, so it cannot block.
    pub fn snapshot(&self) -> HelperSnapshot {
        self.parts.board().snapshot()
    }

    /// The program as configured.
    pub fn program(&self) -> &str {
        &self.parts.settings().program
    }
}
