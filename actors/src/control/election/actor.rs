//! The actor that takes part in the election: asks the broker what the plan wants asked, and tells the Controller.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, WrapFuture};

use super::plan::{Ask, ElectionPlan, ElectionState, Input, Step};
use crate::control::RunStateReceiver;
use crate::link::{CasKey, LinkHandle};
use crate::metrics::{Fact, Recorder};
use crate::supervise::ExitNotice;

/// Only its owner and its own timer write to it.
const MAILBOX: usize = 16;

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
        recorder: Recorder,
    ) -> Self {
        let key = CasKey {
            prefix: "choria.streams".to_owned(),
            bucket: "CHORIA_LEADER_ELECTION".to_owned(),
            key: "provisioner".to_owned(),
        };
        let value = identity.chars().take(MAX_VALUE / 4).collect();
        Self { key, value, limit: Duration::from_secs(5), scale: 1.0, link, state, lead, recorder }
    }
}

/// Takes part in the election for as long as it lives. A new life starts as a candidate.
pub struct Elector {
    settings: ElectorSettings,
    plan: ElectionPlan,
    reported: Option<String>,
    _notice: ExitNotice,
}

impl fmt::Debug for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elector").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// The next move is due.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct MoveDue;

impl Elector {
    /// An instance that has not begun.
    pub const fn new(settings: ElectorSettings, notice: ExitNotice) -> Self {
        Self { settings, plan: ElectionPlan::new(), reported: None, _notice: notice }
    }

    fn feed(&mut self, input: Input, ctx: &mut Context<Self>) {
        let now = tokio::time::Instant::now().into_std();
        let Step { ask, wake, lead } = self.plan.handle(input, now, rand::random());
        if let Some(leads) = lead {
            self.settings.recorder.record(if leads { Fact::LeadershipWon } else { Fact::LeadershipLost });
        }
        self.report_trouble();
        self.tell();
        match ask {
            Some(Ask::Open) => {
                let ElectorSettings { key, limit, link, .. } = self.settings.clone();
                let asked = async move { link.cas_ttl(&key, limit).await }.into_actor(self);
                ctx.spawn(asked.map(|answer, me, ctx| me.feed(Input::Opened(answer), ctx)));
            }
            Some(Ask::Write { after }) => {
                let leading = self.plan.state() != ElectionState::Candidate;
                self.settings.recorder.record(Fact::Campaigned { leading });
                let ElectorSettings { key, value, limit, link, .. } = self.settings.clone();
                let asked = async move { link.cas_write(&key, value.as_bytes(), after, limit).await }
                    .into_actor(self);
                ctx.spawn(asked.map(|answer, me, ctx| me.feed(Input::Written(answer), ctx)));
            }
            None => {}
        }
        if let Some(wait) = wake {
            self.settings.recorder.record(Fact::CampaignDue { after: wait });
            ctx.notify_later(MoveDue, wait.mul_f64(self.settings.scale));
        }
    }

    /// Says what keeps the election from working, once per wording. That somebody else leads is no trouble.
    fn report_trouble(&mut self) {
        let trouble = self.plan.trouble();
        if trouble != self.reported.as_deref() {
            if let Some(trouble) = trouble {
                tracing::warn!(component = "election", "the election does not work: {trouble}");
            }
            self.reported = trouble.map(str::to_owned);
        }
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

impl Actor for Elector {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        // Whatever an earlier life was, this one has won nothing yet.
        self.tell();
        ctx.notify_later(MoveDue, ElectionPlan::splay(rand::random()).mul_f64(self.settings.scale));
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
