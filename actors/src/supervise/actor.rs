//! The owner of the process's actors.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, ResponseActFuture, WrapFuture,
};
use actix_rt::Arbiter;
use tokio::sync::watch;
use tokio::time::Instant;

use super::messages::StopAll;
use super::owned::{Ended, PingOutcome};
use super::{
    ActorEnding, ChildExited, ChildId, ChildState, Decision, ExitCause, Fatal, OverseerHandle, RestartPermit,
    RestartPool, SupervisionSnapshot, Vital, Ward,
};

/// How long a restart waits for a place in the pool before it looks again.
const PLACE_WAIT: Duration = Duration::from_millis(50);

/// Called once for every ending, from the overseer's thread; must not block.
pub type Observer = Arc<dyn Fn(&ActorEnding) + Send + Sync>;

/// How closely children are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverseerSettings {
    /// Time between two pings of a child, and between two beats of the overseer.
    pub ping_every: Duration,
    /// A child that leaves a ping unanswered for this long, and declared no wait, is stuck.
    pub stuck_after: Duration,
    /// Children in the middle of a restart at once.
    pub restarts_at_once: usize,
}

impl Default for OverseerSettings {
    fn default() -> Self {
        Self { ping_every: Duration::from_secs(2), stuck_after: Duration::from_secs(20), restarts_at_once: 4 }
    }
}

/// Owns children, restarts them by their policies, replaces the stuck, and says when the process cannot go on. Runs on a
/// thread of its own, so that no child can block it.
pub struct Overseer {
    settings: OverseerSettings,
    wards: Vec<Box<dyn Ward>>,
    watched: HashMap<&'static str, Watched>,
    pool: RestartPool,
    observer: Observer,
    publish: watch::Sender<SupervisionSnapshot>,
    vital: Vital,
    stopping: bool,
}

/// What the overseer remembers about the watching of one child's present life.
#[derive(Debug, Default)]
struct Watched {
    asked: bool,
    seen_gone: bool,
    permit: Option<RestartPermit>,
}

impl fmt::Debug for Overseer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overseer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Overseer {
    /// Starts an overseer on a new thread of the current actix system; it starts the children in the order given.
    pub fn launch(
        settings: OverseerSettings,
        wards: Vec<Box<dyn Ward>>,
        observer: Observer,
    ) -> OverseerHandle {
        let snapshot = SupervisionSnapshot { children: wards.iter().map(|ward| ward.snapshot()).collect() };
        let (publish, published) = watch::channel(snapshot);
        let vital = Vital::new();
        let overseer = Self {
            settings,
            wards,
            watched: HashMap::new(),
            pool: RestartPool::new(settings.restarts_at_once),
            observer,
            publish,
            vital: vital.clone(),
            stopping: false,
        };
        let addr = Self::start_in_arbiter(&Arbiter::new().handle(), move |_| overseer);
        OverseerHandle { addr, snapshot: published, vital }
    }

    fn publish(&self) {
        let children = self.wards.iter().map(|ward| ward.snapshot()).collect();
        self.publish.send_if_modified(|now| {
            let next = SupervisionSnapshot { children };
            let changed = *now != next;
            *now = next;
            changed
        });
    }

    fn ward(&mut self, name: &str) -> Option<&mut Box<dyn Ward>> {
        self.wards.iter_mut().find(|ward| ward.name() == name)
    }

    fn has_life(&self, name: &str) -> bool {
        let state = self.wards.iter().find(|ward| ward.name() == name).map(|ward| ward.snapshot().state);
        matches!(state, Some(ChildState::Starting | ChildState::Running))
    }

    /// Starts the child and, after it, those below it that wait for it.
    fn start_child(&mut self, name: &'static str, permit: Option<RestartPermit>, ctx: &mut Context<Self>) {
        let owner = ctx.address().recipient();
        let Some(ward) = self.ward(name) else { return };
        ward.start(owner, Instant::now().into_std());
        self.watched.insert(name, Watched { permit, ..Watched::default() });
        self.ping_child(name, ctx);
        for below in self.names_below(name) {
            if !self.has_life(below) {
                self.start_child(below, None, ctx);
            }
        }
    }

    fn names_below(&self, name: &str) -> Vec<&'static str> {
        self.wards.iter().filter(|ward| ward.under() == Some(name)).map(|ward| ward.name()).collect()
    }

    /// An owner's end cancels all below it.
    fn cancel_below(&mut self, name: &str) {
        for below in self.names_below(name) {
            self.cancel_below(below);
            if let Some(ward) = self.ward(below) {
                ward.abandon(ChildState::OwnerDown);
            }
        }
    }

    fn ping_child(&mut self, name: &'static str, ctx: &mut Context<Self>) {
        let limit = self.settings.stuck_after;
        let Some(ward) = self.wards.iter().find(|ward| ward.name() == name) else { return };
        let child = ward.snapshot().child;
        let watched = self.watched.entry(name).or_default();
        if watched.asked {
            return;
        }
        let Some(ping) = ward.ping(limit) else { return };
        watched.asked = true;
        ctx.spawn(ping.into_actor(self).map(move |outcome, me, ctx| me.pinged(child, outcome, ctx)));
    }

    fn pinged(&mut self, child: ChildId, outcome: PingOutcome, ctx: &mut Context<Self>) {
        let limit = self.settings.stuck_after;
        let Some(ward) = self.ward(child.name) else { return };
        if ward.snapshot().child != child {
            return;
        }
        let excused = ward.is_excused();
        if outcome == PingOutcome::Alive {
            ward.note_alive(child.generation);
        }
        let watched = self.watched.entry(child.name).or_default();
        watched.asked = false;
        let gone_before = std::mem::replace(&mut watched.seen_gone, outcome == PingOutcome::Gone);
        let (cause, detail) = match outcome {
            PingOutcome::Alive => {
                watched.permit = None;
                self.publish();
                return;
            }
            PingOutcome::Silent if excused => return,
            // The exit notice is on its way, and it knows the cause; only a second look without one decides here.
            PingOutcome::Gone if !gone_before => return,
            PingOutcome::Gone => (ExitCause::Stopped, "its mailbox closed without a notice".to_owned()),
            PingOutcome::Silent => (ExitCause::Stuck, format!("no answer within {limit:?}")),
            PingOutcome::Stalled(why) => (ExitCause::Stuck, why),
        };
        self.ended(&ChildExited { child, cause, detail: Some(detail) }, ctx);
    }

    fn ended(&mut self, exited: &ChildExited, ctx: &mut Context<Self>) {
        let name = exited.child.name;
        let now = Instant::now().into_std();
        let stopping = self.stopping;
        let Some(ward) = self.ward(name) else { return };
        if stopping {
            if ward.snapshot().child == exited.child {
                ward.abandon(ChildState::Retired);
                self.publish();
            }
            return;
        }
        let Some(Ended { ending, decision }) = ward.exited(exited, now, rand::random::<f64>()) else {
            return;
        };
        self.watched.remove(name);
        self.cancel_below(name);
        (self.observer)(&ending);
        match decision {
            Decision::RestartAfter(delay, _) => self.restart_later(exited.child, delay, ctx),
            Decision::Retire(_) => {}
            Decision::GiveUp(why) => self.vital.give_up(Fatal { child: name, why }),
        }
        self.publish();
    }

    fn restart_later(&self, child: ChildId, delay: Duration, ctx: &mut Context<Self>) {
        let _ = self;
        ctx.run_later(delay, move |me, ctx| {
            let waits = me.ward(child.name).is_some_and(|ward| {
                let now = ward.snapshot();
                now.child == child && matches!(now.state, ChildState::Waiting { .. })
            });
            if me.stopping || !waits {
                return;
            }
            match me.pool.try_take() {
                Some(permit) => me.start_child(child.name, Some(permit), ctx),
                None => me.restart_later(child, PLACE_WAIT, ctx),
            }
            me.publish();
        });
    }
}

impl Actor for Overseer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.vital.beat();
        let roots: Vec<_> = self.wards.iter().filter(|w| w.under().is_none()).map(|w| w.name()).collect();
        for name in roots {
            self.start_child(name, None, ctx);
        }
        self.publish();
        ctx.run_interval(self.settings.ping_every, |me, ctx| {
            me.vital.beat();
            let names: Vec<_> = me.wards.iter().map(|ward| ward.name()).collect();
            for name in names {
                me.ping_child(name, ctx);
            }
        });
    }
}

impl Handler<ChildExited> for Overseer {
    type Result = ();

    fn handle(&mut self, exited: ChildExited, ctx: &mut Self::Context) {
        self.ended(&exited, ctx);
    }
}

impl Handler<StopAll> for Overseer {
    type Result = ResponseActFuture<Self, Vec<&'static str>>;

    fn handle(&mut self, msg: StopAll, _: &mut Self::Context) -> Self::Result {
        self.stopping = true;
        let names: Vec<_> = self.wards.iter().rev().map(|ward| ward.name()).collect();
        let abandoned = actix::fut::wrap_stream::<_, Self>(futures::stream::iter(names));
        let all = actix::fut::ActorStreamExt::fold(abandoned, Vec::new(), move |abandoned, name, me, _| {
            me.stop_child(name, msg.each, abandoned)
        });
        Box::pin(all.map(|abandoned, _, ctx| {
            ctx.stop();
            abandoned
        }))
    }
}

impl Overseer {
    /// Asks one child to stop and waits for its notice; past the limit it is abandoned and its name noted.
    fn stop_child(
        &mut self,
        name: &'static str,
        limit: Duration,
        mut abandoned: Vec<&'static str>,
    ) -> ResponseActFuture<Self, Vec<&'static str>> {
        let lives = self.has_life(name);
        let mut changes = self.publish.subscribe();
        if let Some(ward) = self.ward(name) {
            if lives {
                ward.ask_to_stop();
            } else {
                ward.abandon(ChildState::Retired);
            }
        }
        self.publish();
        let gone = async move {
            let retired = changes.wait_for(|now| {
                now.child(name)
                    .is_none_or(|child| matches!(child.state, ChildState::Retired | ChildState::GaveUp))
            });
            tokio::time::timeout(limit, retired).await.is_ok()
        };
        Box::pin(gone.into_actor(self).map(move |gone, me, _| {
            if !gone {
                abandoned.push(name);
                if let Some(ward) = me.ward(name) {
                    ward.abandon(ChildState::Retired);
                }
                me.publish();
            }
            abandoned
        }))
    }
}

#[cfg(feature = "testing")]
impl Handler<super::messages::ForceOverseer> for Overseer {
    type Result = ();

    fn handle(&mut self, force: super::messages::ForceOverseer, ctx: &mut Self::Context) {
        super::force(self, force.0, ctx);
    }
}
