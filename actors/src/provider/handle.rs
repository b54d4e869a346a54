//! How everybody else uses a provider.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quartermaster_proto::provider::{Executed, HostCode, Members, Schema};
use tokio::sync::oneshot;
use tokio::time::interval;

use super::actor::{ProviderParts, ProviderRunner};
use super::board::ProviderSnapshot;
use super::error::{CallError, Outcome};
use super::messages::{
    AbandonCall, Answer, AskProvider, Call, CallBack, CloseProvider, ProgressSink, Ticket, WarmUp,
};
use crate::supervise::Slot;

/// How often a waiting caller looks whether the runner it asked is still the one in the position.
const LOOK: Duration = Duration::from_secs(1);

/// The name of a provider's position. Cheap to clone; survives restarts of the runner.
#[derive(Debug, Clone)]
pub struct ProviderHandle {
    slot: Slot<ProviderRunner>,
    parts: Arc<ProviderParts>,
    tickets: Arc<AtomicU64>,
}

/// Tells the runner when nobody waits for a call any more.
struct Waiting<'a> {
    runner: &'a actix::Addr<ProviderRunner>,
    ticket: Ticket,
    over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.runner.do_send(AbandonCall(self.ticket));
        }
    }
}

impl ProviderHandle {
    /// A handle to the runner in this position. `parts` are what its owner's factory makes runners of.
    pub fn new(slot: Slot<ProviderRunner>, parts: Arc<ProviderParts>) -> Self {
        Self { slot, parts, tickets: Arc::new(AtomicU64::new(1)) }
    }

    /// The provider's local name.
    pub fn name(&self) -> &str {
        &self.parts.settings().name
    }

    /// The run its processes are told of.
    pub fn run_id(&self) -> &str {
        &self.parts.settings().run
    }

    /// Has a process started, described and configured, and gives its schema.
    pub async fn start(&self) -> Result<Arc<Schema>, CallError> {
        let runner = self.slot.addr().ok_or_else(|| self.down())?;
        let (sender, receiver) = oneshot::channel();
        runner.do_send(WarmUp(sender));
        self.wait(&runner, receiver, Outcome::NotSent).await
    }

    /// Makes a call and waits for its end. Dropping the future calls it off.
    pub async fn call(&self, call: Call, progress: Option<ProgressSink>) -> Result<Answer, CallError> {
        self.call_until(call, progress, std::future::pending()).await
    }

    /// Makes a call and waits for its end. When `called_off` is over first the call is called back, and its answer still awaited, for
    /// only that says what was done: a provider that can be told gets the time of a cancel, another that of a call given up.
    pub async fn call_until(
        &self,
        call: Call,
        progress: Option<ProgressSink>,
        called_off: impl Future<Output = ()>,
    ) -> Result<Answer, CallError> {
        let runner = self.slot.addr().ok_or_else(|| self.down())?;
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        // Not left to the mailbox's bound: the plan's own queue refuses what is too much, with a code.
        runner.do_send(AskProvider { ticket, call: Arc::new(call), progress, answer });
        let mut waiting = Waiting { runner: &runner, ticket, over: false };
        let mut answered = std::pin::pin!(self.wait(&runner, answered, Outcome::Unknown));
        let result = tokio::select! {
            result = &mut answered => result,
            () = called_off => {
                runner.do_send(CallBack(ticket));
                answered.await
            }
        };
        waiting.over = true;
        result
    }

    /// Does an action without more ado: no undo is asked for, and nothing is heard before its end.
    pub async fn execute(&self, action: &str, attrs: Members) -> Result<Executed, CallError> {
        match self.call(Call::execute(action, attrs), None).await? {
            Answer::Executed(executed) => Ok(executed),
            Answer::Found(_) | Answer::Diagnosed(_) => Err(self.lost(Outcome::Unknown)),
        }
    }

    /// Ends all processes for good. Calls that wait are refused at once, open ones have `drain` to end by themselves.
    pub async fn close(&self, drain: Duration) {
        let Some(runner) = self.slot.addr() else { return };
        let (done, closed) = oneshot::channel();
        runner.do_send(CloseProvider { drain, done });
        // A runner that has gone has closed everything too.
        let _ = closed.await;
    }

    /// The runner at this moment. Does not ask the actor, so it cannot block.
    pub fn snapshot(&self) -> ProviderSnapshot {
        self.parts.board().snapshot()
    }

    async fn wait<T>(
        &self,
        runner: &actix::Addr<ProviderRunner>,
        mut answered: oneshot::Receiver<Result<T, CallError>>,
        outcome: Outcome,
    ) -> Result<T, CallError> {
        let mut look = interval(LOOK);
        loop {
            tokio::select! {
                answer = &mut answered => return answer.unwrap_or_else(|_| Err(self.lost(outcome))),
                _ = look.tick() => {
                    if self.slot.addr().as_ref() != Some(runner) {
                        // It may have answered just before it went.
                        return answered.try_recv().unwrap_or_else(|_| Err(self.lost(outcome)));
                    }
                }
            }
        }
    }

    fn down(&self) -> CallError {
        let message = format!("provider `{}` has no runner at the moment", self.name());
        CallError::host(Outcome::NotSent, HostCode::Closed, message)
    }

    fn lost(&self, outcome: Outcome) -> CallError {
        let message = format!("provider `{}`: the runner ended or failed under the call", self.name());
        CallError::host(outcome, HostCode::Exited, message)
    }
}
