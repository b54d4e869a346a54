//! The HostProvisioner: carries out what the plan decides for one host, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Recipient, WrapFuture};
use quartermaster_proto::choria::identity::Identity;
use rand::RngExt;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use super::board::CycleBoard;
use super::messages::{CycleStopAsked, Ending, HostAnswered, HostFinished, HostSilent, Kept};
use super::plan::Plan;
use super::ports::{
    Answer, Boxed, ClaimEnd, ClaimedHost, CommitPort, HelperAnswer, HostCall, StepIntent, Tools,
};
use super::resume::Resume;
use super::steps::Step;
use super::terms::{At, CallFailure, Effect, Input, PlanSettings, SiteSteps};
use crate::control::RunStateReceiver;
use crate::link::ConflictFlag;
use crate::metrics::{Fact, Recorder};
use crate::steps::{Ledger, StepLog};
use crate::supervise::ExitNotice;

/// How long the first answer is waited for before the host's place is given to another.
const CONTACT_PATIENCE: Duration = Duration::from_secs(2);

/// What one cycle starts with.
pub struct HostSettings {
    /// The host.
    pub identity: Identity,
    /// The cycle's number in the roster.
    pub cycle: u64,
    /// What every cycle has in common.
    pub plan: Arc<PlanSettings>,
    /// A decision of an earlier cycle.
    pub kept: Option<Kept>,
    /// What an earlier cycle that was cut off left to make good.
    pub resume: Option<Resume>,
    /// The wall clock, Unix milliseconds.
    pub wall_ms: fn() -> i64,
    /// The other actors.
    pub tools: Tools,
    /// Whether the instance may work.
    pub run_state: RunStateReceiver,
    /// Where facts go.
    pub recorder: Recorder,
    /// The owner's ears.
    pub finished: Recipient<HostFinished>,
    /// The owner's ears.
    pub silent: Recipient<HostSilent>,
    /// The owner's ears.
    pub answered: Recipient<HostAnswered>,
    /// What everything that is logged about this cycle lies in.
    pub span: Span,
    /// Asked before the host is configured.
    pub commit: CommitPort,
    /// Where it shows how far it has come.
    pub board: CycleBoard,
    /// What providers have done for the host.
    pub steps: StepLog,
    /// Tells the owner of the actor's end, panic included.
    pub notice: ExitNotice,
}

/// The actor of one cycle.
pub struct HostProvisioner {
    pub(super) identity: Identity,
    pub(super) cycle: u64,
    pub(super) plan: Plan,
    pub(super) wall_ms: fn() -> i64,
    pub(super) tools: Tools,
    pub(super) run_state: RunStateReceiver,
    pub(super) recorder: Recorder,
    finished: Recipient<HostFinished>,
    silent: Recipient<HostSilent>,
    answered: Recipient<HostAnswered>,
    span: Span,
    commit: CommitPort,
    pub(super) board: CycleBoard,
    pub(super) claim: Option<Arc<dyn ClaimedHost>>,
    pub(super) steps: StepLog,
    pub(super) site_steps: SiteSteps,
    /// As `stop_asked`, for steps under way.
    pub(super) stopping: Arc<AtomicBool>,
    resumed: bool,
    conflict: ConflictFlag,
    has_answered: bool,
    stop_asked: bool,
    _notice: ExitNotice,
}

impl HostProvisioner {
    /// The actor of one cycle, not yet started.
    pub fn new(settings: HostSettings) -> Self {
        let resumed = settings.resume.is_some();
        let nonce = hex::encode(rand::rng().random::<[u8; 16]>());
        settings.steps.give_to(settings.cycle);
        let open = !settings.steps.look(Ledger::is_empty);
        Self {
            site_steps: settings.plan.steps.clone(),
            stopping: Arc::default(),
            plan: Plan::new(settings.plan, settings.identity.clone(), nonce, settings.kept)
                .resuming(settings.resume)
                .with_steps(open),
            steps: settings.steps,
            wall_ms: settings.wall_ms,
            identity: settings.identity,
            cycle: settings.cycle,
            tools: settings.tools,
            run_state: settings.run_state,
            recorder: settings.recorder,
            finished: settings.finished,
            silent: settings.silent,
            answered: settings.answered,
            commit: settings.commit,
            board: settings.board,
            claim: None,
            resumed,
            conflict: ConflictFlag::of_cycle(settings.span.clone()),
            span: settings.span,
            has_answered: false,
            stop_asked: false,
            _notice: settings.notice,
        }
    }

    pub(super) fn feed(&mut self, input: Input, ctx: &mut Context<Self>) {
        let cycle = self.span.clone();
        let _inside = cycle.enter();
        let (paused, barred) = {
            let (state, claim) = (self.run_state.borrow(), self.claim.as_deref());
            let paused = self.stop_asked || state.is_paused() || claim.is_some_and(|claim| !claim.holds());
            (paused, state.has_lapsed() || claim.is_some_and(ClaimedHost::has_expired))
        };
        let at = At {
            now: Instant::now().into_std(),
            luck: rand::rng().random(),
            paused,
            barred,
            conflict: self.conflict.is_raised(),
            late_keys: self.conflict.late("gen25519"),
        };
        let before = self.plan.step();
        let effect = self.plan.handle(input, at);
        if before == Step::Configure && matches!(self.plan.step(), Step::After | Step::Restart) {
            self.tools.journal.done(self.cycle, before, (self.wall_ms)());
            // Whatever becomes of this cycle, the next one has the restart to make good and not the configuration. A roster that
            // has gone on without this cycle does not want to know.
            let _ = (self.commit)(self.cycle, Resume::Restart { sent: false });
        }
        if !matches!(effect, Effect::Finish(_)) {
            self.board.note(self.plan.step(), self.plan.tries(), self.plan.last_reason(), at.now);
        }
        if let Some(remark) = self.plan.take_remark() {
            tracing::warn!(host = %self.identity, "{remark}");
        }
        self.carry_out(effect, ctx);
    }

    /// A span inside the cycle's for one step, ended with the step.
    pub(super) fn step(&self, step: &'static str) -> Span {
        tracing::info_span!(parent: &self.span, "step", step)
    }

    fn carry_out(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Call { step, agent, action, data } => {
                let call = HostCall {
                    identity: self.identity.clone(),
                    agent,
                    action,
                    data,
                    conflict: self.conflict.clone(),
                };
                let span = self.step(action);
                let answer = self.after_intent(step, call).instrument(span.clone()).into_actor(self);
                ctx.spawn(answer.map(move |answer, me, ctx| {
                    let (answer, took) = match answer {
                        Called::Done(answer, took) => (answer, took),
                        Called::Replaced => {
                            tracing::debug!(host = %me.identity, "this cycle was replaced and ends");
                            return ctx.stop();
                        }
                        Called::NotOurs => {
                            tracing::info!(host = %me.identity, "another instance may have it by now; its cycle ends");
                            return me.carry_out(Effect::Finish(Ending::Interrupted), ctx);
                        }
                    };
                    if answer.is_ok() {
                        me.note_answer();
                    }
                    span.in_scope(|| {
                        me.recorder.record(Fact::RpcFinished {
                            host: me.identity.to_string(),
                            agent,
                            action,
                            took,
                            error: answer.as_ref().err().map(|failure| failure.reason.clone()),
                        });
                    });
                    drop(span);
                    me.feed(Input::Replied(answer), ctx);
                }));
            }
            Effect::VerifyToken { jwt } => {
                let verified = self.tools.vault.verify(jwt).instrument(self.step("token")).into_actor(self);
                ctx.spawn(verified.map(|result, me, ctx| me.feed(Input::Verified(result), ctx)));
            }
            Effect::RunHelper { input } => {
                let decision = self.tools.helper.run(self.identity.clone(), input);
                let decision = decision.instrument(self.step("helper")).into_actor(self);
                ctx.spawn(decision.map(|HelperAnswer { decision, run }, me, ctx| {
                    me.board.note_helper(run);
                    me.feed(Input::Decided(decision), ctx);
                }));
            }
            Effect::IssueToken(order) => {
                let issued =
                    self.tools.vault.issue(order).instrument(self.step("server_token")).into_actor(self);
                ctx.spawn(issued.map(|result, me, ctx| me.feed(Input::Issued(result), ctx)));
            }
            Effect::SealKey { pem, host_public } => {
                let sealed = self.tools.vault.seal(pem, host_public);
                let sealed = sealed.instrument(self.step("seal_key")).into_actor(self);
                ctx.spawn(sealed.map(|result, me, ctx| me.feed(Input::Sealed(result), ctx)));
            }
            Effect::RunSteps { step, specs, roots } => self.run_steps(step, specs, roots, ctx),
            Effect::TakeBack { why } => self.take_back(why, ctx),
            Effect::WakeAt(when) => {
                let wait = when.saturating_duration_since(Instant::now().into_std());
                ctx.run_later(wait, |me, ctx| me.feed(Input::Due, ctx));
            }
            Effect::Finish(ending) => {
                if let Ending::ShutDown { msg } = &ending {
                    let (host, msg) = (self.identity.to_string(), msg.clone());
                    self.recorder.record(Fact::ShutdownRequested { host, msg });
                }
                let claim = self.claim.take();
                // Without the claim, another instance may have begun anew: nothing is left to make good.
                let reply_lost =
                    self.plan.reply_lost() && claim.as_ref().is_none_or(|claim| !claim.has_expired());
                if let Some(claim) = claim {
                    claim.end(claim_end(&ending));
                }
                self.finished.do_send(HostFinished { cycle: self.cycle, ending, reply_lost });
                ctx.stop();
            }
        }
    }

    /// Calls the host; a step that changes it only once its intent is on the disk, and the roster knows what this cycle
    /// leaves undone if it is cut off from now on.
    fn after_intent(&self, step: Step, call: HostCall) -> Boxed<Called> {
        let is_first = self.plan.tries() == 1 && step.spec().is_some_and(|spec| spec.effect);
        let intent = is_first.then(|| self.intent(step));
        let (journal, link) = (Arc::clone(&self.tools.journal), Arc::clone(&self.tools.link));
        let (commit, cycle, unfinished) = (Arc::clone(&self.commit), self.cycle, self.plan.unfinished());
        let (run_state, claim) = (self.run_state.clone(), self.claim.clone());
        Box::pin(async move {
            let began = Instant::now();
            if let Some(intent) = intent {
                // A restart finishes what was begun, for as long as the claim cannot have run out.
                if let Some(claim) = claim.as_ref().filter(|_| step != Step::Restart)
                    && !claim.confirm().await
                {
                    return Called::NotOurs;
                }
                // A disk may take its time, so everything else is asked afterwards.
                journal.intend(intent).await;
                let is_ours = unfinished.is_none_or(|unfinished| commit(cycle, unfinished));
                // A host that was configured is told to restart even when the roster has gone on without this cycle.
                if step == Step::Configure && !is_ours {
                    return Called::Replaced;
                }
                let expired = claim.is_some_and(|claim| claim.has_expired());
                if expired || run_state.borrow().has_lapsed() {
                    let reason = "the right to work on it has lapsed".to_owned();
                    let answer = Err(CallFailure { reason, again: true, silent: false, sent: false });
                    return Called::Done(answer, began.elapsed());
                }
            }
            let began = Instant::now();
            let answer = link.call(call).await;
            Called::Done(answer, began.elapsed())
        })
    }

    fn intent(&self, step: Step) -> StepIntent {
        let material = match self.plan.unfinished() {
            Some(Resume::Configure(material)) => Some(material),
            _ => None,
        };
        let at_ms = (self.wall_ms)();
        StepIntent {
            identity: self.identity.clone(),
            cycle: self.cycle,
            step,
            at_ms,
            steps: self.board.records(Instant::now().into_std(), at_ms),
            helper: self.board.helper(),
            material,
        }
    }

    /// The first call goes out.
    fn begin(&mut self, ctx: &mut Context<Self>) {
        ctx.run_later(CONTACT_PATIENCE, |me, _| {
            if !me.has_answered {
                me.silent.do_send(HostSilent { cycle: me.cycle });
            }
        });
        self.feed(Input::Begin, ctx);
    }

    fn note_answer(&mut self) {
        if !self.has_answered {
            self.has_answered = true;
            self.answered.do_send(HostAnswered { cycle: self.cycle });
        }
    }
}

impl Actor for HostProvisioner {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let Some(claims) = &self.tools.claims else { return self.begin(ctx) };
        let claim = claims.take(self.identity.clone(), self.resumed).into_actor(self);
        ctx.spawn(claim.map(|claim, me, ctx| {
            if claim.is_some() {
                me.claim = claim;
                return me.begin(ctx);
            }
            me.carry_out(Effect::Finish(Ending::Elsewhere), ctx);
        }));
    }
}

/// What came of a call.
enum Called {
    /// It was made, or failed.
    Done(Answer, Duration),
    /// It was not, because the roster has gone on without this cycle.
    Replaced,
    /// It was not, because the host may be another instance's by now.
    NotOurs,
}

/// What other instances shall think of the host.
const fn claim_end(ending: &Ending) -> ClaimEnd {
    match ending {
        Ending::Provisioned | Ending::Updating | Ending::ShutDown { .. } | Ending::AlreadyServing => {
            ClaimEnd::Done
        }
        Ending::Deferred { .. } | Ending::Busy { .. } | Ending::Failed { .. } => ClaimEnd::Again,
        Ending::Interrupted | Ending::Elsewhere | Ending::TakenBack => ClaimEnd::Untouched,
    }
}

impl Handler<CycleStopAsked> for HostProvisioner {
    type Result = ();

    fn handle(&mut self, _: CycleStopAsked, ctx: &mut Self::Context) {
        if self.plan.leaves_host_as_it_was() {
            // A helper, or its turn, is not waited for: its process ends when nobody wants the answer.
            return self.carry_out(Effect::Finish(Ending::Interrupted), ctx);
        }
        // Read at the next step: a call with an effect ends first, and a committed cycle runs to its restart.
        self.stop_asked = true;
        self.stopping.store(true, Ordering::Relaxed);
    }
}

crate::supervised!(HostProvisioner);
