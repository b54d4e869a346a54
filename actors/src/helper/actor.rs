//! The runner: takes runs in order, lets as many go as there are slots, refuses what does not fit in the queue.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use actix::{Actor, Addr, AsyncContext as _, Context, Handler};
#[cfg(feature = "testing")]
use quartermaster_proto::choria::Identity;
use quartermaster_proto::helper::HelperReply;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;
use zeroize::Zeroizing;

use super::board::{Board, EndedHelper};
use super::error::HelperError;
use super::execute::execute;
use super::messages::{HelperRun, QueueRun, SlotFreed};
use super::provided::provision;
use super::settings::HelperSettings;
use crate::child::Orphans;
use crate::control::RunStateReceiver;
use crate::metrics::{Fact, HelperOutcome};
use crate::provider::ProviderHandle;
use crate::supervise::ExitNotice;

/// Where facts go. Called on the runner's thread; must not block.
pub type FactSink = Arc<dyn Fn(Fact) + Send + Sync>;

/// What every life of the runner is made of; its owner's factory keeps one and hands out clones.
pub struct HelperParts {
    settings: HelperSettings,
    run_state: RunStateReceiver,
    record: FactSink,
    orphans: Orphans,
    board: Arc<Board>,
    /// A helper that lives on; without it each run is a process of its own.
    provider: Option<ProviderHandle>,
    /// One for each asker that may run or wait; held by the asker, so a lost runner loses none.
    places: Semaphore,
}

impl fmt::Debug for HelperParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HelperParts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl HelperParts {
    /// Parts for a runner of this helper.
    pub fn new(
        settings: HelperSettings,
        run_state: RunStateReceiver,
        record: FactSink,
        orphans: Orphans,
    ) -> Self {
        let board = Board::new(settings.slots);
        let places = settings.slots.get().saturating_add(settings.queue).min(Semaphore::MAX_PERMITS);
        let places = Semaphore::new(places);
        Self { settings, run_state, record, orphans, board, provider: None, places }
    }

    /// The same for a helper that is a provider: each run is a call of it.
    #[must_use]
    pub fn provided(mut self, provider: ProviderHandle) -> Self {
        self.provider = Some(provider);
        self
    }

    /// The settings.
    pub const fn settings(&self) -> &HelperSettings {
        &self.settings
    }

    pub(super) const fn board(&self) -> &Arc<Board> {
        &self.board
    }

    pub(super) const fn places(&self) -> &Semaphore {
        &self.places
    }

    pub(super) fn queue_full(&self) -> HelperError {
        HelperError::QueueFull { program: self.settings.program.clone(), queued: self.settings.queue }
    }
}

/// The runner. A run is a task of its own, so its panic costs that run alone; the tasks end with the actor, and with each of
/// them its process group.
pub struct HelperRunner {
    parts: Arc<HelperParts>,
    waiting: VecDeque<QueueRun>,
    slots: Arc<Semaphore>,
    runs: JoinSet<()>,
    #[cfg(feature = "testing")]
    panic_for: Option<Identity>,
    _notice: Option<ExitNotice>,
}

impl fmt::Debug for HelperRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HelperRunner")
            .field("waiting", &self.waiting.len())
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}

impl HelperRunner {
    /// A new life of the runner. `notice` tells its owner of its end.
    pub fn new(parts: Arc<HelperParts>, notice: Option<ExitNotice>) -> Self {
        let slots = Arc::new(Semaphore::new(parts.settings.slots.get().min(Semaphore::MAX_PERMITS)));
        Self {
            parts,
            waiting: VecDeque::new(),
            slots,
            runs: JoinSet::new(),
            #[cfg(feature = "testing")]
            panic_for: None,
            _notice: notice,
        }
    }

    /// Lets waiting runs go, oldest first, as long as there are free slots. The permit is taken before anything is created for
    /// the run and moves into its task.
    fn admit(&mut self, ctx: &mut Context<Self>) {
        while self.runs.try_join_next().is_some() {}
        while !self.waiting.is_empty() {
            let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() else { break };
            let Some(run) = self.next_wanted() else { break };
            let lease = Lease { permit: Some(permit), runner: ctx.address() };
            #[cfg(feature = "testing")]
            let must_panic = self.panic_for.take_if(|host| *host == run.identity).is_some();
            #[cfg(not(feature = "testing"))]
            let must_panic = false;
            let cycle = run.cycle.clone();
            self.runs.spawn_local(serve(Arc::clone(&self.parts), run, lease, must_panic).instrument(cycle));
        }
        self.parts.board.set_queued(self.waiting.len());
    }
}

impl HelperRunner {
    /// The oldest run whose asker still waits.
    fn next_wanted(&mut self) -> Option<QueueRun> {
        loop {
            let run = self.waiting.pop_front()?;
            if !run.answer.is_closed() {
                return Some(run);
            }
        }
    }
}

impl Actor for HelperRunner {
    type Context = Context<Self>;
}

impl Drop for HelperRunner {
    fn drop(&mut self) {
        self.parts.board.set_queued(0);
    }
}

crate::supervised!(HelperRunner);

impl Handler<QueueRun> for HelperRunner {
    type Result = ();

    fn handle(&mut self, run: QueueRun, ctx: &mut Self::Context) {
        self.waiting.push_back(run);
        self.admit(ctx);
        if self.waiting.len() > self.parts.settings.queue {
            self.waiting.retain(|run| !run.answer.is_closed());
        }
        if self.waiting.len() > self.parts.settings.queue
            && let Some(run) = self.waiting.pop_back()
        {
            self.parts.board.set_queued(self.waiting.len());
            // An asker who has gone needs no answer.
            let _ = run.answer.send(Err(self.parts.queue_full()));
        }
    }
}

impl Handler<SlotFreed> for HelperRunner {
    type Result = ();

    fn handle(&mut self, _: SlotFreed, ctx: &mut Self::Context) {
        self.admit(ctx);
    }
}

#[cfg(feature = "testing")]
impl Handler<super::messages::PanicInRun> for HelperRunner {
    type Result = ();

    fn handle(&mut self, host: super::messages::PanicInRun, _: &mut Self::Context) {
        self.panic_for = Some(host.0);
    }
}

/// A taken slot. However the run ends, panic included, the slot is free again and the runner hears of it.
struct Lease {
    permit: Option<OwnedSemaphorePermit>,
    runner: Addr<HelperRunner>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.runner.do_send(SlotFreed);
    }
}

/// Serves one asker: runs the helper, unless the asker goes away first, which stops it.
async fn serve(parts: Arc<HelperParts>, mut run: QueueRun, _lease: Lease, must_panic: bool) {
    let started = Instant::now();
    let waited = started.duration_since(run.since);
    let host = run.identity.to_string();
    let entry = parts.board.enter(host.clone(), started);
    let input = std::mem::take(&mut run.input);
    let result = tokio::select! {
        result = perform(&parts, &host, input, must_panic) => result,
        () = run.answer.closed() => return,
    };
    let took = started.elapsed();
    let error = result.as_ref().err().map(HelperError::chain);
    let stderr = match &result {
        Ok((_, stderr)) => stderr.clone(),
        Err(error) => error.stderr().to_vec(),
    };
    let outcome = if error.is_none() { HelperOutcome::Answered } else { HelperOutcome::Failed };
    (parts.record)(Fact::HelperRan { host: host.clone(), took, waited, outcome, error: error.clone() });
    parts.board.ended(EndedHelper { host, took, error, stderr });
    drop(entry);
    let exited = parts.provider.is_none();
    let answer = result.map(|(reply, stderr_tail)| HelperRun { reply, exited, took, waited, stderr_tail });
    let _ = run.answer.send(answer);
}

async fn perform(
    parts: &HelperParts,
    host: &str,
    input: Zeroizing<Vec<u8>>,
    must_panic: bool,
) -> Result<(HelperReply, Vec<String>), HelperError> {
    let settings = &parts.settings;
    if !parts.run_state.borrow().starts_helpers() {
        return Err(HelperError::Paused { program: settings.program.clone() });
    }
    if let Some(provider) = &parts.provider {
        fail_point(must_panic);
        let reply = provision(settings, provider, &parts.run_state, host, input).await?;
        return Ok((reply, Vec::new()));
    }
    let say = |line| {
        fail_point(must_panic);
        (parts.record)(Fact::HelperSaid { host: host.to_owned(), line });
    };
    let execution = execute(settings, &parts.orphans, &input, say).await?;
    Ok((execution.reply(settings)?, execution.stderr))
}

/// Whose purpose is to panic; never armed without the feature `testing`.
fn fail_point(must_panic: bool) {
    assert!(!must_panic, "forced by a fail point");
}
