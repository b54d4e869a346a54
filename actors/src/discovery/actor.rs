//! The Discoverer: looks when the plan says so, reads events as they come, says "seen" and nothing more.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle, WrapFuture};
use quartermaster_proto::choria::identity::Identity;
use tokio::time::Instant;

use super::event::{Noted, read_event};
use super::messages::{EventArrived, LookAgain, LookDue};
use super::plan::{Effect, Input, Plan};
use crate::control::RunStateReceiver;
use crate::host::Boxed;
use crate::link::LinkHandle;
use crate::metrics::{Fact, Recorder};
use crate::supervise::{ExitNotice, SendRefused};
use crate::text::chain;

/// Events and commands waiting at most. What a full mailbox turns away is counted by the sender, and the next look heals it.
pub const MAILBOX: usize = 16_384;

/// A sighting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The host answered a broadcast.
    Answered(Identity),
    /// The host started in provisioning mode: digest of the event's id, and its timestamp.
    Started(Identity, u64, i64),
    /// The host started as an ordinary server.
    Serves(Identity),
    /// Another instance of the cluster has provisioned the host.
    Elsewhere(Identity),
}

/// Where sightings go; refuses when the fleet's mailbox is full.
pub type SeenSink = Arc<dyn Fn(Seen) -> Result<(), SendRefused> + Send + Sync>;

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Distinct hosts that answered.
    pub found: usize,
}

/// Broadcasts.
pub trait LookPort: Send + Sync {
    /// Broadcasts once and hands every host that answers to `each`, as it answers.
    fn look(&self, each: Arc<dyn Fn(Identity) + Send + Sync>) -> Boxed<Result<Look, String>>;
    /// Resolves when the broker becomes reachable.
    fn connected(&self) -> Boxed<()>;
}

impl LookPort for LinkHandle {
    fn look(&self, each: Arc<dyn Fn(Identity) + Send + Sync>) -> Boxed<Result<Look, String>> {
        let handle = self.clone();
        Box::pin(async move {
            let looked = handle.discover(move |identity| {
                each(identity);
                Ok(())
            });
            looked.await.map(|discovered| Look { found: discovered.found }).map_err(|error| chain(&error))
        })
    }

    fn connected(&self) -> Boxed<()> {
        let mut client = self.watch_client();
        Box::pin(async move {
            client.changed().await;
            // None only when the link is gone for good, and this process with it.
            client.connected().await;
        })
    }
}

/// What a Discoverer needs.
#[derive(Clone)]
pub struct DiscoverySettings {
    /// The time between two looks.
    pub interval: Duration,
    /// The component of hosts in provisioning mode (`lifecycle_component`).
    pub component: String,
    /// Broadcasts.
    pub link: Arc<dyn LookPort>,
    /// Where sightings go.
    pub seen: SeenSink,
    /// Whether the instance may work.
    pub run_state: RunStateReceiver,
    /// Where facts go.
    pub recorder: Recorder,
}

/// The actor.
pub struct Discoverer {
    settings: DiscoverySettings,
    plan: Plan,
    timer: Option<SpawnHandle>,
    _notice: ExitNotice,
}

impl Discoverer {
    /// A Discoverer, not yet started.
    pub fn new(settings: DiscoverySettings, notice: ExitNotice) -> Self {
        let plan = Plan::new(settings.interval, Instant::now().into_std());
        Self { settings, plan, timer: None, _notice: notice }
    }

    fn feed(&mut self, input: Input, ctx: &mut Context<Self>) {
        let paused = !self.settings.run_state.borrow().admits();
        match self.plan.handle(input, paused, Instant::now().into_std()) {
            Effect::Look(cause) => self.look(cause, ctx),
            Effect::SayPaused => self.settings.recorder.record(Fact::DiscoverySkipped),
            Effect::Nothing => {}
        }
        if let Some(old) = self.timer.take() {
            ctx.cancel_future(old);
        }
        let wait = self.plan.due().saturating_duration_since(Instant::now().into_std());
        self.timer = Some(ctx.notify_later(LookDue, wait));
    }

    fn look(&self, cause: &'static str, ctx: &mut Context<Self>) {
        tracing::debug!(cause, "looking for hosts");
        let began = Instant::now();
        let (seen, recorder) = (Arc::clone(&self.settings.seen), self.settings.recorder.clone());
        let each = Arc::new(move |identity| {
            if seen(Seen::Answered(identity)).is_err() {
                recorder.record(Fact::SightingDropped { lane: "discovery" });
            }
        });
        let look = self.settings.link.look(each).into_actor(self);
        ctx.spawn(look.map(move |result, me, ctx| {
            let ok = result.is_ok();
            me.settings.recorder.record(match result {
                Ok(Look { found }) => Fact::DiscoveryRan { found, took: began.elapsed() },
                Err(error) => Fact::DiscoveryFailed { error },
            });
            me.feed(Input::Ended { ok }, ctx);
        }));
    }

    /// Looks again whenever the instance may work again or the broker comes back.
    fn watch(&self, ctx: &mut Context<Self>) {
        let mut run_state = self.settings.run_state.clone();
        let changed = async move { run_state.changed().await.is_ok() };
        ctx.spawn(changed.into_actor(self).map(|alive, me, ctx| {
            if alive {
                if me.settings.run_state.borrow_and_update().admits() {
                    me.feed(Input::Wanted("working again"), ctx);
                }
                me.watch(ctx);
            }
        }));
    }

    fn watch_link(&self, ctx: &mut Context<Self>) {
        let connected = self.settings.link.connected().into_actor(self);
        ctx.spawn(connected.map(|(), me, ctx| {
            me.feed(Input::Wanted("connected"), ctx);
            me.watch_link(ctx);
        }));
    }
}

impl Actor for Discoverer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.watch(ctx);
        self.watch_link(ctx);
        self.feed(Input::Due, ctx);
    }
}

impl Handler<LookDue> for Discoverer {
    type Result = ();

    fn handle(&mut self, _: LookDue, ctx: &mut Self::Context) {
        self.feed(Input::Due, ctx);
    }
}

impl Handler<LookAgain> for Discoverer {
    type Result = ();

    fn handle(&mut self, LookAgain(cause): LookAgain, ctx: &mut Self::Context) {
        self.feed(Input::Wanted(cause), ctx);
    }
}

impl Handler<EventArrived> for Discoverer {
    type Result = ();

    fn handle(&mut self, EventArrived(bytes): EventArrived, _: &mut Self::Context) {
        let seen = match read_event(&bytes, &self.settings.component) {
            Ok(Noted::WantsProvisioning { identity, event, stamp }) => Seen::Started(identity, event, stamp),
            Ok(Noted::Serves { identity }) => Seen::Serves(identity),
            Ok(Noted::Other) => return,
            Err(error) => return self.settings.recorder.record(Fact::EventRejected { error: chain(&error) }),
        };
        if (self.settings.seen)(seen).is_err() {
            self.settings.recorder.record(Fact::SightingDropped { lane: "events" });
        }
    }
}

crate::supervised!(Discoverer);
