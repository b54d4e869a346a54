//! The actor that takes part in the election: asks the broker what the plan wants asked, and tells the Controller.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};
use tokio::sync::watch;

use super::messages::{ElectionSnapshot, ElectionState, MoveDue};
use super::plan::{Ask, ElectionPlan, Fault, Input, Step, Wait};
use crate::control::{LeadingUntil, RunStateReceiver};
use crate::link::{CasFault, CasKey, LinkHandle, twenty_sec};
use crate::metrics::{Fact, Recorder};
use crate::supervise::ExitNotice;

/// Only its owner and its own timer write to it.
const MAILBOX: usize = 16;

/// Between the second write and acting as the leader.
const SETTLE: Duration = Duration::from_millis(200);

/// Largest random wait before the first move, so that instances started together do not race in step.
const MAX_SPLAY: Duration = Duration::from_secs(5);

/// Longest value a Choria broker's election bucket takes.
const MAX_VALUE: usize = 1024;

/// Where leadership is announced.
pub type LeadSink = Arc<dyn Fn(bool) + Send + Sync>;

/// What an instance needs for the election.
#[derive(Clone)]
pub struct ElectorSettings {
    /// The key that is fought over.
    pub key: CasKey,
    /// What we write into it: our identity.
    pub value: String,
    /// How long the broker may take over one answer.
    pub limit: Duration,
    /// Factor on all waits between attempts; 1 outside of tests.
    pub scale: f64,
    /// The connection.
    pub link: LinkHandle,
    /// The run state, which is to follow.
    pub state: RunStateReceiver,
    /// Makes the run state follow: true when this instance leads. Must not block.
    pub lead: LeadSink,
    /// How long the lead lasts: renewed with every write that succeeds.
    pub until: LeadingUntil,
    /// Where facts go.
    pub recorder: Recorder,
}

impl fmt::Debug for ElectorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectorSettings")
            .field("key", &self.key)
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}

impl ElectorSettings {
    /// The election that the peer's instances hold (choria.md 7), as `identity`.
    pub fn peer(
        identity: &str,
        link: LinkHandle,
        state: RunStateReceiver,
        lead: LeadSink,
        until: LeadingUntil,
        recorder: Recorder,
    ) -> Self {
        let key = CasKey {
            prefix: "choria.streams".to_owned(),
            bucket: "CHORIA_LEADER_ELECTION".to_owned(),
            key: "provisioner".to_owned(),
        };
        let value = identity.chars().take(MAX_VALUE / 4).collect();
        Self { key, value, limit: Duration::from_secs(5), scale: 1.0, link, state, lead, until, recorder }
    }
}

/// Takes part in the election for as long as it lives. A new life starts as a candidate.
pub struct Elector {
    settings: ElectorSettings,
    plan: ElectionPlan,
    publish: Arc<watch::Sender<ElectionSnapshot>>,
    _notice: ExitNotice,
}

impl fmt::Debug for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elector").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Elector {
    /// An instance that has not begun.
    pub(super) const fn new(
        settings: ElectorSettings,
        publish: Arc<watch::Sender<ElectionSnapshot>>,
        notice: ExitNotice,
    ) -> Self {
        Self { settings, plan: ElectionPlan::new(), publish, _notice: notice }
    }

    fn feed(&mut self, input: Input, ctx: &mut Context<Self>) {
        let now = tokio::time::Instant::now().into_std();
        let Step { ask, wake, lead } = self.plan.handle(input, now);
        if let Some(leads) = lead {
            self.settings.recorder.record(if leads { Fact::LeadershipWon } else { Fact::LeadershipLost });
        }
        // Before anybody hears of a lead that was won.
        if let Some(until) = self.plan.holds_until() {
            self.settings.until.extend(until.into());
        }
        self.show();
        self.tell();
        match ask {
            Some(Ask::Open) => {
                let ElectorSettings { key, limit, link, .. } = self.settings.clone();
                let asked = async move { link.cas_ttl(&key, limit).await }.into_actor(self);
                ctx.spawn(asked.map(|answer, me, ctx| me.feed(Input::Opened(answer.map_err(fault)), ctx)));
            }
            Some(Ask::Write { after }) => {
                let leading = self.plan.state() != ElectionState::Candidate;
                self.settings.recorder.record(Fact::Campaigned { leading });
                let ElectorSettings { key, value, limit, link, .. } = self.settings.clone();
                let asked = async move { link.cas_write(&key, value.as_bytes(), after, limit).await }
                    .into_actor(self);
                ctx.spawn(asked.map(|answer, me, ctx| me.feed(Input::Written(answer.map_err(fault)), ctx)));
            }
            None => {}
        }
        if let Some(wait) = wake {
            let after = wait_for(wait, rand::random());
            self.settings.recorder.record(Fact::CampaignDue { after });
            ctx.notify_later(MoveDue, after.mul_f64(self.settings.scale));
        }
    }

    /// Publishes where it stands, and says what keeps the election from working, once per wording.
    fn show(&self) {
        let trouble = self.plan.trouble();
        if let Some(trouble) = trouble.filter(|new| self.publish.borrow().trouble.as_deref() != Some(*new)) {
            tracing::warn!(component = "election", "the election does not work: {trouble}");
        }
        self.publish.send_replace(ElectionSnapshot {
            state: self.plan.state(),
            campaigns: self.plan.campaigns(),
            trouble: trouble.map(str::to_owned),
        });
    }

    /// Makes the run state follow the plan. Said at every move while they differ, since a Controller that is being
    /// restarted does not hear it.
    fn tell(&self) {
        let leads = self.plan.leads();
        if self.settings.state.borrow().leading != leads {
            (self.settings.lead)(leads);
        }
    }
}

/// A wait of the plan as time. `random` is uniform over all of `u32`.
pub(super) fn wait_for(wait: Wait, random: u32) -> Duration {
    match wait {
        Wait::Settle => SETTLE,
        Wait::Table(entry) => twenty_sec(entry, random),
    }
}

fn fault(fault: CasFault) -> Fault {
    match fault {
        CasFault::Conflict => Fault::Conflict,
        CasFault::NoBucket { .. } => Fault::NoBucket(fault.to_string()),
        CasFault::Other(said) => Fault::Other(said),
    }
}

impl Actor for Elector {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        // Whatever an earlier life was, this one has won nothing yet.
        self.tell();
        ctx.notify_later(MoveDue, MAX_SPLAY.mul_f64(rand::random::<f64>() * self.settings.scale));
    }
}

impl Drop for Elector {
    fn drop(&mut self) {
        // Until the next life has won, nobody here keeps the key alive.
        (self.settings.lead)(false);
    }
}

impl Handler<MoveDue> for Elector {
    type Result = ();

    fn handle(&mut self, _: MoveDue, ctx: &mut Self::Context) {
        self.feed(Input::Due, ctx);
    }
}

crate::supervised!(Elector);
