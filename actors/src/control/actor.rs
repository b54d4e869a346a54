//! The Controller: the one writer of the run state.

use std::sync::Arc;

use actix::{Actor, Context, Handler};
use tokio::sync::watch;

use super::messages::{DrainFleet, EndFleet, LeadershipChanged, PauseFleet, ResumeFleet};
use super::state::{PausedBy, RunState};
use crate::metrics::{Fact, Recorder};
use crate::supervise::ExitNotice;

/// Commands waiting at most. They come from people and from the election, a few a second at the very most.
pub const MAILBOX: usize = 256;

/// The actor. The state itself lies in the watch value, so a new life goes on where the old one ended.
pub struct Controller {
    state: Arc<watch::Sender<RunState>>,
    recorder: Recorder,
    _notice: ExitNotice,
}

impl Controller {
    /// A Controller that writes this state.
    pub const fn new(state: Arc<watch::Sender<RunState>>, recorder: Recorder, notice: ExitNotice) -> Self {
        Self { state, recorder, _notice: notice }
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
    type Result = ();

    fn handle(&mut self, PauseFleet { who, why, now }: PauseFleet, _: &mut Self::Context) {
        self.change(|state| state.paused = Some(Arc::new(PausedBy { who, why, since: now })));
    }
}

impl Handler<ResumeFleet> for Controller {
    type Result = ();

    fn handle(&mut self, _: ResumeFleet, _: &mut Self::Context) {
        self.change(|state| state.paused = None);
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
