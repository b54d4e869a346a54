//! The hosts' actors: started, watched, and what their ends mean.

use quartermaster_proto::time::whole_ms;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, WrapFuture};
use rand::RngExt;
use tokio::time::Instant;

use super::actor::{FleetKeeper, Running};
use super::roster::{LeftBehind, STUCK};
use super::terms::{Admission, Verdict};
use super::thread::{HostThread, MISSED_PINGS};
use crate::host::{CycleBoard, Ending, HostProvisioner, HostSettings};
use crate::journal::{AttemptRecord, Began};
use crate::metrics::{Fact, StepFact};
use crate::supervise::{ChildId, ExitCause, ExitNotice, Ping};

impl FleetKeeper {
    pub(super) fn start_cycle(&mut self, admission: Admission, ctx: &mut Context<Self>) {
        let Admission { identity, cycle, attempt, kept, resume, waited } = admission;
        let clocks = self.clocks();
        if let Some(standing) = self.settings.shelf.roster().standing(&identity, clocks) {
            let began = Began { cycle, attempt, at_ms: clocks.wall_ms, standing };
            self.settings.journal.began(identity.clone(), began);
        }
        // One span for each cycle: all that is logged about it, by whomever, lies inside and so carries host and attempt.
        let span = tracing::info_span!(parent: None, "cycle", host = %identity, attempt);
        span.in_scope(|| {
            self.settings.recorder.record(Fact::CycleStarted { host: identity.to_string(), attempt, waited });
        });
        let address = ctx.address();
        let board = CycleBoard::default();
        let steps = {
            let mut roster = self.settings.shelf.roster();
            // Kept with the host only where there is something to keep.
            if self.settings.plan.features.steps {
                roster.step_log(&identity)
            } else {
                roster.known_step_log(&identity).unwrap_or_default()
            }
        };
        let host = HostSettings {
            identity,
            cycle,
            plan: Arc::clone(&self.settings.plan),
            kept,
            resume,
            wall_ms: self.settings.wall_ms,
            tools: self.settings.tools.clone(),
            run_state: self.settings.run_state.clone(),
            recorder: self.settings.recorder.clone(),
            finished: address.clone().recipient(),
            silent: address.clone().recipient(),
            answered: address.clone().recipient(),
            commit: Arc::clone(&self.commit),
            board: board.clone(),
            steps,
            span: span.clone(),
            notice: ExitNotice::new(ChildId { name: "host", generation: cycle }, address.recipient()),
        };
        let thread = self.next_thread.checked_rem(self.threads.len()).unwrap_or_default();
        self.next_thread = self.next_thread.wrapping_add(1);
        let (addr, thread) = match self.threads.get(thread) {
            Some(thread) => {
                let handle = thread.handle();
                let start = move |_: &mut Context<_>| HostProvisioner::new(host);
                (HostProvisioner::start_in_arbiter(&handle, start), thread.number())
            }
            None => (HostProvisioner::new(host).start(), 0),
        };
        self.running.insert(cycle, Running { addr, thread, unanswered: 0, board, span });
    }

    pub(super) fn end_cycle(&mut self, cycle: u64, ending: Ending, ctx: &mut Context<Self>) {
        let running = self.running.remove(&cycle);
        self.conclude(cycle, running, ending, ctx);
    }

    fn conclude(&mut self, cycle: u64, running: Option<Running>, ending: Ending, ctx: &mut Context<Self>) {
        let (span, board) = running.map_or_else(
            || (tracing::Span::none(), CycleBoard::default()),
            |running| (running.span, running.board),
        );
        span.in_scope(|| self.settle(cycle, &board, ending));
        if !self.led {
            // Another member's by now: what it left behind is not this one's to go on with later.
            self.forget_idle();
        }
        self.pump(ctx);
    }

    /// Forgets every host that is not in a cycle: they are another member's by now.
    pub(super) fn forget_idle(&self) {
        let gone = self.settings.shelf.roster().forget_idle(Instant::now().into_std());
        self.settle_provided();
        let wall_ms = (self.settings.wall_ms)();
        for identity in gone {
            self.settings.journal.stands(&identity, None, wall_ms);
        }
    }

    /// Tells the journal and the log what is over of what providers did.
    pub(super) fn settle_provided(&self) {
        let (over, behind) = {
            let mut roster = self.settings.shelf.roster();
            (roster.take_steps_over(), roster.take_left_behind())
        };
        for host in over {
            self.settings.journal.steps_over(&host, (self.settings.wall_ms)());
        }
        for LeftBehind { host, left } in behind {
            for left in left {
                self.settings
                    .recorder
                    .record(Fact::Step(StepFact::given_up(host.as_str(), left.to_string())));
            }
        }
    }

    /// Enters the end of a cycle everywhere.
    fn settle(&self, cycle: u64, board: &CycleBoard, ending: Ending) {
        let now = Instant::now().into_std();
        let luck = rand::rng().random();
        let error = ending.error();
        board.close(error, now);
        let helper = board.helper();
        let (identity, verdict, record) = {
            let mut roster = self.settings.shelf.roster();
            let Some(identity) = roster.host_of(cycle).cloned() else { return };
            let attempt = roster.attempt_of(&identity);
            let began = roster.began(&identity).unwrap_or(now);
            let verdict = roster.finish(cycle, ending.clone(), now, luck);
            roster.note_helper(&identity, helper.clone(), now);
            drop(roster);
            let wall_ms = (self.settings.wall_ms)();
            let took_ms = whole_ms(now.duration_since(began));
            let record = AttemptRecord {
                attempt,
                cycle,
                began_ms: wall_ms.saturating_sub_unsigned(took_ms),
                took_ms,
                ending: ending.name().to_owned(),
                cause: ending.cause().map(ToOwned::to_owned),
                error: error.map(ToOwned::to_owned),
                steps: board.records(now, wall_ms),
                helper,
            };
            (identity, verdict, record)
        };
        if verdict == Verdict::Unknown {
            return;
        }
        let clocks = self.clocks();
        let standing = self.settings.shelf.roster().standing(&identity, clocks);
        self.settings.journal.ended(&identity, record, standing, clocks.wall_ms);
        // Afterwards: a cycle that has not ended must not be gone on with once its steps are no longer known.
        self.settle_provided();
        self.report(identity.to_string(), ending, &verdict);
    }

    fn report(&self, host: String, ending: Ending, verdict: &Verdict) {
        let fact = match (ending, verdict) {
            (Ending::Provisioned, Verdict::Held { took }) => {
                self.settings.publish.send_modify(|numbers| numbers.provisioned += 1);
                Fact::HostProvisioned { host, took: *took }
            }
            (Ending::Updating, Verdict::Held { took }) => Fact::HostUpdating { host, took: *took },
            (Ending::ShutDown { .. }, Verdict::Held { took }) => Fact::HostShutDown { host, took: *took },
            (_, Verdict::Held { .. }) => Fact::HostServing { host },
            (Ending::Deferred { msg }, Verdict::Retry { retry_in, .. }) => {
                Fact::HostDeferred { host, msg, retry_in: retry_in.unwrap_or_default() }
            }
            (Ending::Busy { .. }, Verdict::Retry { retry_in, .. }) => {
                Fact::HostBusy { host, retry_in: retry_in.unwrap_or_default() }
            }
            (Ending::Failed { cause, error }, Verdict::Retry { attempt, retry_in }) => {
                self.settings.publish.send_modify(|numbers| numbers.failed += 1);
                Fact::HostFailed { host, cause, error, attempt: *attempt, retry_in: *retry_in }
            }
            (Ending::Interrupted, Verdict::Requeued) => Fact::HostInterrupted { host },
            (_, Verdict::Requeued | Verdict::Unknown | Verdict::Elsewhere | Verdict::Retry { .. }) => return,
        };
        self.settings.recorder.record(fact);
    }

    pub(super) fn ping_hosts(&mut self, ctx: &mut Context<Self>) {
        let mut blocked = Vec::new();
        for thread in &mut self.threads {
            if thread.is_blocked() {
                // Whatever blocks the old thread, new cycles shall not meet it.
                self.threads_started += 1;
                let old = std::mem::replace(thread, HostThread::start(self.threads_started));
                blocked.push(old.number());
                old.stop();
            }
            thread.ask();
        }
        let is_stuck =
            |running: &Running| running.unanswered >= MISSED_PINGS || blocked.contains(&running.thread);
        // All of them off the list before the first is ended: that admits others.
        let stuck: Vec<_> = self.running.extract_if(|_, running| is_stuck(running)).collect();
        for (cycle, running) in stuck {
            self.settings.recorder.record(Fact::ActorEnded {
                actor: "host",
                cause: ExitCause::Stuck.as_str(),
                decision: "its host is tried again later".to_owned(),
            });
            let error = "its actor made no progress and was abandoned".to_owned();
            self.conclude(cycle, Some(running), Ending::Failed { cause: STUCK, error }, ctx);
        }
        let mut asked = Vec::with_capacity(self.running.len());
        for (cycle, running) in &mut self.running {
            running.unanswered += 1;
            asked.push((*cycle, running.addr.send(Ping)));
        }
        for (cycle, pong) in asked {
            ctx.spawn(pong.into_actor(self).map(move |answer, me, _| {
                if let (Ok(_), Some(running)) = (answer, me.running.get_mut(&cycle)) {
                    running.unanswered = 0;
                }
            }));
        }
    }
}
