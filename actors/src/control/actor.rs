//! The Controller: the one writer of the run state.

use std::sync::Arc;

use actix::{Actor, Context, Handler, ResponseFuture};
use tokio::sync::watch;

use super::messages::{DrainFleet, EndFleet, LeadershipChanged, PauseFleet, ResumeFleet};
use super::state::{PausedBy, RunState};
use crate::journal::{JournalHandle, StoredPause};
use crate::metrics::{Fact, Recorder};
use crate::supervise::ExitNotice;

/// Commands waiting at most. They come from people and from the election, a few a second at the very most.
pub const MAILBOX: usize = 256;

/// The actor. The state itself lies in the watch value, so a new life goes on where the old one ended.
pub struct Controller {
    state: Arc<watch::Sender<RunState>>,
    recorder: Recorder,
    journal: Option<JournalHandle>,
    _notice: ExitNotice,
}

impl Controller {
    /// A Controller that writes this state.
    pub const fn new(state: Arc<watch::Sender<RunState>>, recorder: Recorder, notice: ExitNotice) -> Self {
        Self { state, recorder, journal: None, _notice: notice }
    }

    /// Keeps an operator's pause in this journal, so that it outlives the process.
    #[must_use]
    pub fn keeping(mut self, journal: JournalHandle) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Ends when the pause in force now, or its absence, is kept.
    fn keep(&self) -> ResponseFuture<()> {
        let Some(journal) = self.journal.clone() else { return Box::pin(async {}) };
        let paused = self.state.borrow().paused.clone();
        Box::pin(async move {
            let pause = paused.map(|paused| {
                let PausedBy { who, why, since } = paused.as_ref().clone();
                StoredPause { who, why, since }
            });
            let what = if pause.is_some() { "the pause" } else { "the end of the pause" };
            if !journal.pause(pause).await {
                tracing::warn!("{what} is kept in memory only: a restart will not know of it");
            }
        })
    }

    fn change(&self, change: impl FnOnce(&mut RunState)) {
        let before = self.state.borrow().is_paused();
        self.state.send_modify(change);
        let after = self.state.borrow().is_paused();
        if before != after {
            self.recorder.record(Fact::Paused { paused: after });
        }
    }
}

impl Actor for Controller {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.recorder.record(Fact::Paused { paused: self.state.borrow().is_paused() });
    }
}

impl Handler<PauseFleet> for Controller {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, PauseFleet { who, why, now }: PauseFleet, _: &mut Self::Context) -> Self::Result {
        self.change(|state| state.paused = Some(Arc::new(PausedBy { who, why, since: now })));
        self.keep()
    }
}

impl Handler<ResumeFleet> for Controller {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: ResumeFleet, _: &mut Self::Context) -> Self::Result {
        self.change(|state| state.paused = None);
        self.keep()
    }
}

impl Handler<LeadershipChanged> for Controller {
    type Result = ();

    fn handle(&mut self, LeadershipChanged { leading }: LeadershipChanged, _: &mut Self::Context) {
        self.change(|state| state.leading = leading);
    }
}

impl Handler<DrainFleet> for Controller {
    type Result = ();

    fn handle(&mut self, _: DrainFleet, _: &mut Self::Context) {
        self.change(|state| state.draining = true);
    }
}

impl Handler<EndFleet> for Controller {
    type Result = ();

    fn handle(&mut self, _: EndFleet, _: &mut Self::Context) {
        self.change(|state| {
            state.draining = true;
            state.ending = true;
        });
    }
}

crate::supervised!(Controller);
