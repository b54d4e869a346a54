//! The steps of providers in a cycle, and taking them back: carried out for the plan.

use std::sync::Arc;

use actix::{ActorContext, ActorFutureExt, AsyncContext, Context, WrapFuture};
use quartermaster_proto::provider::{Mask, Members};
use rand::RngExt;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::actor::HostProvisioner;
use super::steps::Step;
use super::terms::Input;
use crate::metrics::{Fact, StepFact};
use crate::steps::{Desk, Ended, Forward, Record, StepSpec, Stops, Walk, mask, pruned};

/// How often each call that takes something back is tried in one go.
const UNDO_TRIES: u32 = 3;
/// The cause of an end by a log that is another cycle's by now.
const REPLACED: &str = "this cycle was replaced and ends";

impl HostProvisioner {
    /// What steps are done with. `forward`: a pause stops them too, and not only the end of this actor.
    fn desk(&self, forward: bool, mask: Mask) -> Option<Desk> {
        let port = self.tools.steps.clone()?;
        let (journal, identity) = (Arc::clone(&self.tools.journal), self.identity.clone());
        let wall_ms = self.wall_ms;
        let write = Arc::new(move |record| journal.step(&identity, record, (wall_ms)()));
        let (recorder, host, board) = (self.recorder.clone(), self.identity.to_string(), self.board.clone());
        let told = Arc::new(move |record: &Record, ledger: &crate::steps::Ledger| {
            board.note_record(record, Instant::now().into_std());
            if let Some(fact) = StepFact::of(&host, record, ledger) {
                recorder.record(Fact::Step(fact));
            }
        });
        Some(Desk {
            port,
            log: self.steps.clone(),
            owner: self.cycle,
            write,
            stops: self.stops(forward),
            told,
            mask,
            wall_ms: self.wall_ms,
        })
    }

    /// Whether nothing new is to be begun: what is taken back, and what follows `configure`, is finished also while the instance is
    /// paused.
    fn stops(&self, forward: bool) -> Stops {
        let (run_state, claim, asked) = (self.run_state.clone(), self.claim.clone(), self.stopping.clone());
        let may_pause = forward && !self.plan.is_committed();
        let asked_too = !forward || may_pause;
        Arc::new(move || {
            let state = run_state.borrow();
            let claim = claim.as_deref();
            let barred = state.has_lapsed() || claim.is_some_and(super::ports::ClaimedHost::has_expired);
            let paused = may_pause && (state.is_paused() || claim.is_some_and(|claim| !claim.holds()));
            barred || paused || (asked_too && asked.load(std::sync::atomic::Ordering::Relaxed))
        })
    }

    /// Lets providers do these steps.
    pub(super) fn run_steps(
        &self,
        step: Step,
        specs: Arc<[StepSpec]>,
        roots: Option<Members>,
        ctx: &mut Context<Self>,
    ) {
        let under_way = self.steps.look(|ledger| !ledger.run().is_empty());
        let known = roots.or_else(|| self.steps.look(|ledger| ledger.scope().cloned())).unwrap_or_default();
        let Some(desk) = self.desk(true, mask(&known)) else {
            let nothing = async {}.into_actor(self);
            ctx.spawn(nothing.map(|(), me, ctx| me.feed(Input::Stepped(Ended::AllDone), ctx)));
            return;
        };
        // Once for a cycle, before anything is sent: what the steps after `configure` need must survive.
        let fresh = step == Step::Before || !under_way;
        let run =
            format!("{}.{}.{}", self.identity, self.cycle, hex::encode(rand::rng().random::<[u8; 4]>()));
        let references = self.after_references();
        let began = fresh.then(|| Record::Began { run, scope: Some(pruned(&known, &references)) });
        let work = async move {
            if let Some(began) = began
                && !desk.write(began).await
            {
                return None;
            }
            let mut forward = Forward::new(specs, known);
            desk.carry_out(|ledger, input, at| forward.handle(ledger, input, at)).await
        };
        let work = work.instrument(self.step(step.name())).into_actor(self);
        ctx.spawn(work.map(|ended, me, ctx| match ended {
            Some(ended) => me.feed(Input::Stepped(ended), ctx),
            None => me.replaced(ctx),
        }));
    }

    /// Takes back what providers did.
    pub(super) fn take_back(&self, why: String, ctx: &mut Context<Self>) {
        let known = self.steps.look(|ledger| ledger.scope().cloned()).unwrap_or_default();
        let Some(desk) = self.desk(false, mask(&known)) else {
            let taken = crate::steps::Taken { stopped: true, ..Default::default() };
            let nothing = async {}.into_actor(self);
            ctx.spawn(nothing.map(|(), me, ctx| me.feed(Input::TakenBack(taken), ctx)));
            return;
        };
        let (recorder, host) = (self.recorder.clone(), self.identity.to_string());
        let work = async move {
            let mut walk = Walk::new(why, UNDO_TRIES);
            let taken = desk.carry_out(|ledger, input, at| walk.handle(ledger, input, at)).await?;
            for left in taken.left.iter().filter(|_| !taken.stopped) {
                let (left, asks) = (left.to_string(), left.asks_operator());
                recorder.record(Fact::Step(StepFact::left(&host, left, asks)));
            }
            Some(taken)
        };
        let work = work.instrument(self.step(Step::TakeBack.name())).into_actor(self);
        ctx.spawn(work.map(|taken, me, ctx| match taken {
            Some(taken) => me.feed(Input::TakenBack(taken), ctx),
            None => me.replaced(ctx),
        }));
    }

    fn replaced(&self, ctx: &mut Context<Self>) {
        tracing::debug!(host = %self.identity, "{REPLACED}");
        ctx.stop();
    }

    fn after_references(&self) -> Vec<crate::expression::Reference> {
        let mut references = Vec::new();
        for spec in self.site_steps.after.iter() {
            references.extend(spec.attrs.references().into_iter().cloned());
            references.extend(spec.when.iter().flat_map(|when| when.references()).cloned());
        }
        references
    }
}
