//! The FleetKeeper: owns the roster and one HostProvisioner per admitted host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, SpawnHandle, WrapFuture};
use quartermaster_proto::choria::identity::Identity;
use rand::RngExt;
use tokio::sync::watch;
use tokio::time::Instant;

use super::messages::{EndCycles, FleetSnapshot, HostNoticed, RosterDue};
use super::roster::{Clocks, ENDED, Roster};
use super::terms::{Noticed, Passed, RosterSettings, Sighting};
use super::thread::HostThread;
use crate::control::RunStateReceiver;
use crate::discovery::Seen;
use crate::host::{
    CommitPort, CycleBoard, CycleStopAsked, Ending, HostAnswered, HostFinished, HostProvisioner, HostSilent,
    PlanSettings, Tools,
};
use crate::journal::JournalHandle;
use crate::metrics::{Fact, Found, Recorder};
use crate::supervise::{ChildExited, ExitNotice};

/// Sightings waiting at most; what does not fit is counted by the sender, and the next discovery heals it.
pub const MAILBOX: usize = 65_536;
/// Time between two looks at whether the hosts' actors still answer, unless a test wants it shorter.
pub const HOST_PING_EVERY: Duration = Duration::from_secs(10);
/// Roster entries handled in one go of the clock.
const CLOCK_BATCH: usize = 1000;

/// What a FleetKeeper needs.
#[derive(Clone)]
pub struct FleetSettings {
    /// The bounds of the roster.
    pub roster: RosterSettings,
    /// What every cycle has in common.
    pub plan: Arc<PlanSettings>,
    /// The other actors.
    pub tools: Tools,
    /// Whether the instance may work.
    pub run_state: RunStateReceiver,
    /// Where facts go.
    pub recorder: Recorder,
    /// Threads that the hosts' actors share; none: they run on the keeper's own, as tests with paused time need it.
    pub threads: usize,
    /// Time between two looks at whether the hosts' actors still answer.
    pub host_ping_every: Duration,
    /// Where the roster lies, so that it outlives a keeper that panics.
    pub shelf: Shelf,
    /// Where the numbers are published.
    pub publish: Arc<watch::Sender<FleetSnapshot>>,
    /// The wall clock, Unix milliseconds: startup events are compared with it, and the journal dated by it.
    pub wall_ms: fn() -> i64,
    /// Where it is written down what happened.
    pub journal: JournalHandle,
}

/// The roster's place outside the actor. Only the keeper of the moment locks it, for the length of one decision.
#[derive(Debug, Clone)]
pub struct Shelf(Arc<Mutex<Roster>>);

impl Shelf {
    /// A shelf with an empty roster.
    pub fn new(settings: RosterSettings) -> Self {
        Self(Arc::new(Mutex::new(Roster::new(settings))))
    }

    /// A shelf with what the journal has found.
    pub fn restored(settings: RosterSettings, found: crate::journal::Found, wall_ms: i64) -> Self {
        let shelf = Self::new(settings);
        let clocks = Clocks { now: Instant::now().into_std(), wall_ms };
        {
            let mut roster = shelf.roster();
            roster.count_cycles_from(found.next_cycle);
            for host in found.hosts {
                roster.restore(host, clocks);
            }
            for (host, ledger) in found.only_provided {
                roster.restore_provided(host, ledger, clocks.now);
            }
        }
        shelf
    }

    pub(super) fn roster(&self) -> MutexGuard<'_, Roster> {
        // A roster left behind by a panic is plain data; the worst it can hold is a host in a state that time ends.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Running {
    pub(super) addr: Addr<HostProvisioner>,
    pub(super) thread: u64,
    pub(super) unanswered: u32,
    pub(super) board: CycleBoard,
    pub(super) span: tracing::Span,
}

/// The actor.
pub struct FleetKeeper {
    pub(super) settings: FleetSettings,
    pub(super) running: HashMap<u64, Running>,
    pub(super) threads: Vec<HostThread>,
    pub(super) next_thread: usize,
    pub(super) threads_started: u64,
    pub(super) commit: CommitPort,
    timer: Option<(std::time::Instant, SpawnHandle)>,
    pub(super) led: bool,
    /// Whether the journal has room for the entries of new cycles.
    room: watch::Receiver<bool>,
    _notice: ExitNotice,
}

impl FleetKeeper {
    /// A keeper, not yet started.
    pub fn new(settings: FleetSettings, notice: ExitNotice) -> Self {
        let led = settings.run_state.borrow().leading;
        let shelf = settings.shelf.clone();
        let room = settings.journal.room();
        Self {
            settings,
            running: HashMap::new(),
            threads: Vec::new(),
            next_thread: 0,
            threads_started: 0,
            // Not a message to this keeper: a host must never be configured on the word of one that was replaced.
            commit: Arc::new(move |cycle, resume| shelf.roster().commit(cycle, resume)),
            timer: None,
            led,
            room,
            _notice: notice,
        }
    }

    /// Admits whoever may start, publishes the numbers, sets the clock. Called after everything that changes the roster.
    pub(super) fn pump(&mut self, ctx: &mut Context<Self>) {
        let now = Instant::now().into_std();
        while *self.room.borrow() {
            let (admits, finishes) = {
                let state = self.settings.run_state.borrow();
                (state.admits(), state.finishes())
            };
            let admission = {
                let mut roster = self.settings.shelf.roster();
                match (admits, finishes) {
                    (true, _) => roster.admit(now),
                    (false, true) => roster.admit_unfinished(now),
                    (false, false) => None,
                }
            };
            let Some(admission) = admission else { break };
            self.start_cycle(admission, ctx);
        }
        self.settle_provided();
        self.publish();
        self.set_clock(ctx);
    }

    fn publish(&self) {
        let counts = self.settings.shelf.roster().counts();
        let changed = self.settings.publish.send_if_modified(|numbers| {
            let changed = numbers.counts != counts;
            numbers.counts = counts;
            changed
        });
        if changed {
            self.settings.recorder.record(Fact::FleetCounted {
                waiting: counts.waiting + counts.in_flight,
                queued: counts.waiting,
                busy: counts.in_flight,
            });
        }
    }

    fn set_clock(&mut self, ctx: &mut Context<Self>) {
        let due = self.settings.shelf.roster().next_due();
        if self.timer.as_ref().map(|(when, _)| *when) == due {
            return;
        }
        if let Some((_, timer)) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        if let Some(when) = due {
            let wait = when.saturating_duration_since(Instant::now().into_std());
            self.timer = Some((when, ctx.notify_later(RosterDue, wait)));
        }
    }

    /// Goes on when the journal has room again.
    fn watch_room(&self, ctx: &mut Context<Self>) {
        let mut room = self.room.clone();
        let changed = async move { room.changed().await.is_ok() };
        ctx.spawn(changed.into_actor(self).map(|alive, me, ctx| {
            if alive {
                me.room.mark_unchanged();
                me.pump(ctx);
                me.watch_room(ctx);
            }
        }));
    }

    /// Both clocks now.
    pub(super) fn clocks(&self) -> Clocks {
        Clocks { now: Instant::now().into_std(), wall_ms: (self.settings.wall_ms)() }
    }

    /// Tells the journal what the roster remembers of a host from now on.
    pub(super) fn remember(&self, identity: &Identity) {
        // First: what is nobody's any more must not be found without the host it belongs to.
        self.settle_provided();
        let clocks = self.clocks();
        let standing = self.settings.shelf.roster().standing(identity, clocks);
        self.settings.journal.stands(identity, standing, clocks.wall_ms);
    }

    /// Follows the run state: work goes on when it may, and a lost leadership empties the queue.
    fn watch(&self, ctx: &mut Context<Self>) {
        let mut run_state = self.settings.run_state.clone();
        let changed = async move { run_state.changed().await.is_ok() };
        ctx.spawn(changed.into_actor(self).map(|alive, me, ctx| {
            if !alive {
                return;
            }
            let leading = me.settings.run_state.borrow_and_update().leading;
            if me.led && !leading {
                me.forget_idle();
            }
            me.led = leading;
            me.pump(ctx);
            me.watch(ctx);
        }));
    }
}

impl Actor for FleetKeeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.threads = (1..).take(self.settings.threads).map(HostThread::start).collect();
        self.threads_started = self.threads.last().map_or(0, HostThread::number);
        let lost = self.settings.shelf.roster().recover(Instant::now().into_std());
        if !lost.is_empty() {
            tracing::warn!(hosts = lost.len(), "cycles were lost with their keeper and are started again");
        }
        let clocks = self.clocks();
        for (cycle, identity) in lost {
            let standing = self.settings.shelf.roster().standing(&identity, clocks);
            self.settings.journal.lost(&identity, cycle, standing, clocks.wall_ms);
        }
        ctx.run_interval(self.settings.host_ping_every, Self::ping_hosts);
        self.watch(ctx);
        self.watch_room(ctx);
        self.pump(ctx);
    }
}

impl Drop for FleetKeeper {
    fn drop(&mut self) {
        // The owner's end cancels all below it, but for hosts between configure and restart, which run to their end.
        for running in self.running.values() {
            running.addr.do_send(CycleStopAsked);
        }
        // Those run to their end on a thread that nobody else will use.
        let every = self.settings.host_ping_every;
        for thread in self.threads.drain(..) {
            let on_it = self.running.values().filter(|running| running.thread == thread.number());
            thread.stop_after(on_it.map(|running| running.addr.clone()).collect(), every);
        }
    }
}

impl Handler<HostNoticed> for FleetKeeper {
    type Result = ();

    fn handle(&mut self, HostNoticed(seen): HostNoticed, ctx: &mut Self::Context) {
        let now = Instant::now().into_std();
        let (identity, sighting, by) = match seen {
            Seen::Serves(identity) => {
                let took = self.settings.shelf.roster().confirm(&identity, now);
                if let Some(took) = took {
                    self.remember(&identity);
                    self.settings.recorder.record(Fact::HostConfirmed { host: identity.to_string(), took });
                    self.pump(ctx);
                }
                return;
            }
            Seen::Elsewhere(identity) => {
                self.settings.shelf.roster().give_away(&identity);
                return self.pump(ctx);
            }
            _ if !self.settings.run_state.borrow().admits() => return,
            Seen::Answered(identity) => (identity, Sighting::Answered, Found::Discovery),
            Seen::Started(identity, event, stamp) => {
                let now = (self.settings.wall_ms)().div_euclid(1000);
                (identity, Sighting::Started { event, stamp, now }, Found::Event)
            }
        };
        let luck = rand::rng().random();
        let noticed = self.settings.shelf.roster().notice(&identity, sighting, now, luck);
        let host = identity.to_string();
        match noticed {
            Noticed::Queued => self.settings.recorder.record(Fact::HostFound { host, by }),
            Noticed::QueueFull => self.settings.recorder.record(Fact::SightingDropped { lane: "queue" }),
            Noticed::Known | Noticed::Replayed => return,
            Noticed::CameBack { attempt, retry_in } => {
                self.remember(&identity);
                self.settings.publish.send_modify(|numbers| numbers.failed += 1);
                let error = "it came back in provisioning mode after its restart".to_owned();
                self.settings.recorder.record(Fact::HostFailed {
                    host,
                    cause: "came_back",
                    error,
                    attempt,
                    retry_in,
                });
            }
        }
        self.pump(ctx);
    }
}

impl Handler<HostFinished> for FleetKeeper {
    type Result = ();

    fn handle(&mut self, finished: HostFinished, ctx: &mut Self::Context) {
        let HostFinished { cycle, ending, reply_lost } = finished;
        self.settings.shelf.roster().note_reply(cycle, reply_lost);
        self.end_cycle(cycle, ending, ctx);
    }
}

impl Handler<HostSilent> for FleetKeeper {
    type Result = ();

    fn handle(&mut self, HostSilent { cycle }: HostSilent, ctx: &mut Self::Context) {
        self.settings.shelf.roster().went_silent(cycle);
        self.pump(ctx);
    }
}

impl Handler<HostAnswered> for FleetKeeper {
    type Result = ();

    fn handle(&mut self, HostAnswered { cycle }: HostAnswered, _: &mut Self::Context) {
        self.settings.shelf.roster().answered(cycle);
    }
}

impl Handler<ChildExited> for FleetKeeper {
    type Result = ();

    fn handle(&mut self, exited: ChildExited, ctx: &mut Self::Context) {
        let cycle = exited.child.generation;
        // An ordinary end has reported itself before; what is still on the list ended some other way.
        if self.running.contains_key(&cycle) {
            let cause = exited.cause.as_str();
            let decision = "its host is tried again later".to_owned();
            self.settings.recorder.record(Fact::ActorEnded { actor: "host", cause, decision });
            let error = format!("its actor ended unexpectedly ({cause})");
            self.end_cycle(cycle, Ending::Failed { cause: ENDED, error }, ctx);
        }
    }
}

impl Handler<RosterDue> for FleetKeeper {
    type Result = ();

    fn handle(&mut self, _: RosterDue, ctx: &mut Self::Context) {
        self.timer = None;
        let passed = self.settings.shelf.roster().pass(Instant::now().into_std(), CLOCK_BATCH);
        for event in passed {
            match event {
                Passed::Requeued(_) => {}
                Passed::Released(identity) => self.remember(&identity),
                Passed::AgedOut(identity) => {
                    self.remember(&identity);
                    self.settings.recorder.record(Fact::HostAgedOut { host: identity.to_string() });
                }
                Passed::Unconfirmed(identity) => {
                    self.remember(&identity);
                    self.settings.recorder.record(Fact::HostUnconfirmed { host: identity.to_string() });
                }
            }
        }
        self.pump(ctx);
    }
}

impl Handler<EndCycles> for FleetKeeper {
    type Result = ();

    fn handle(&mut self, _: EndCycles, _: &mut Self::Context) {
        for running in self.running.values() {
            running.addr.do_send(CycleStopAsked);
        }
    }
}

/// Ends actors of hosts in a forced way.
#[cfg(feature = "testing")]
impl Handler<super::messages::ForceHosts> for FleetKeeper {
    type Result = usize;

    fn handle(&mut self, force: super::messages::ForceHosts, _: &mut Self::Context) -> usize {
        let forced: Vec<_> = self.running.values().take(force.most).collect();
        for running in &forced {
            running.addr.do_send(crate::supervise::Force(force.ending));
        }
        forced.len()
    }
}

crate::supervised!(FleetKeeper);
