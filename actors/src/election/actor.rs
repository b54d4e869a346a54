//! The actor that takes part in the election: asks the broker what the plan wants asked, and tells the Controller.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, SpawnHandle, StreamHandler,
    WrapFuture,
};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::messages::{ElectionSnapshot, ElectionState, HandOver, MoveDue, Offer};
use super::plan::{Ask, ElectionPlan, Fault, Input, Step, Wait};
use super::sight::KnownLeader;
use crate::control::{LeadingUntil, RunStateReceiver};
use crate::link::{CasFault, CasKey, Heard, LinkHandle, listen, twenty_sec};
use crate::metrics::{Fact, Recorder};
use crate::supervise::ExitNotice;
use quartermaster_proto::text::escape_bounded;

/// Only its owner and its own timer write to it.
const MAILBOX: usize = 16;

/// Between the second write and acting as the leader.
const SETTLE: Duration = Duration::from_millis(200);

/// Largest random wait before the first move, so that instances started together do not race in step.
const MAX_SPLAY: Duration = Duration::from_secs(5);

/// The entry of the table of waits that candidates stay at, 5 s: a failed attempt costs the broker next to nothing, and
/// every second of the wait is one without a leader.
const LAST_ENTRY: usize = 10;

/// How long telling the others that they may lead may take.
const OFFER_WITHIN: Duration = Duration::from_secs(1);

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
    timer: Option<SpawnHandle>,
    asking: bool,
    resigning: Vec<oneshot::Sender<bool>>,
    resigned: bool,
    leader: Option<KnownLeader>,
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
        Self {
            settings,
            plan: ElectionPlan::new(),
            publish,
            timer: None,
            asking: false,
            resigning: Vec::new(),
            resigned: false,
            leader: None,
            _notice: notice,
        }
    }

    fn feed(&mut self, input: Input, ctx: &mut Context<Self>) {
        if self.resigned {
            return;
        }
        let Step { ask, wake, lead } = self.plan.handle(input, Instant::now().into_std());
        if let Some(leads) = lead {
            self.settings.recorder.record(if leads { Fact::LeadershipWon } else { Fact::LeadershipLost });
        }
        // Before anybody hears of a lead that was won.
        if let Some(until) = self.plan.holds_until() {
            self.settings.until.extend(until.into());
        }
        self.show();
        self.tell();
        self.asking = ask.is_some();
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
            self.timer = Some(ctx.notify_later(MoveDue, after.mul_f64(self.settings.scale)));
        }
        if !self.asking && !self.resigning.is_empty() {
            self.resign(ctx);
        }
    }

    /// Gives the lead up and tells the others which write to go on from. The key stays as it is: for instances of the
    /// peer it expires as after any leader's end.
    fn resign(&mut self, ctx: &mut Context<Self>) {
        self.resigned = true;
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let led = self.plan.leads();
        let waiting = std::mem::take(&mut self.resigning);
        let Some(seq) = self.plan.resign() else {
            return answer(waiting, true);
        };
        self.show();
        self.tell();
        if led {
            self.settings.recorder.record(Fact::LeadershipHandedOver);
        }
        let ElectorSettings { key, value, link, .. } = self.settings.clone();
        let offer = serde_json::to_vec(&Offer { by: value, seq }).unwrap_or_default();
        let told =
            async move { link.tell_now(offer_subject(&key), offer, OFFER_WITHIN).await }.into_actor(self);
        ctx.spawn(told.map(move |told, _, _| answer(waiting, told)));
    }

    /// Somebody renews the lead.
    fn heard(&mut self, name: &str) {
        let now = Instant::now();
        self.plan.hear(now.into_std());
        let own = name == self.settings.value;
        let known = KnownLeader::heard(self.leader.as_ref(), name, own, self.plan.ttl(), now);
        self.settings.recorder.record(Fact::LeaderHeard {
            name: known.name.clone(),
            anew: self.leader.as_ref().is_none_or(|before| before.since != known.since),
            since: known.since,
            until: known.heard + known.lives,
        });
        self.leader = Some(known);
        self.show();
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
            leader: self.leader.clone(),
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

fn answer(waiting: Vec<oneshot::Sender<bool>>, told: bool) {
    for asker in waiting {
        // One that does not wait any more needs no answer.
        let _ = asker.send(told);
    }
}

/// A wait of the plan as time. `random` is uniform over all of `u32`.
pub(super) fn wait_for(wait: Wait, random: u32) -> Duration {
    match wait {
        Wait::Settle => SETTLE,
        Wait::Table(entry) => twenty_sec(entry.min(LAST_ENTRY), random),
        Wait::None => Duration::ZERO,
    }
}

/// Where a leader that stops says so; instances of the peer do not listen there.
fn offer_subject(key: &CasKey) -> String {
    format!("quartermaster.election.{}.{}.offer", key.bucket, key.key)
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
        let ElectorSettings { key, link, .. } = &self.settings;
        ctx.add_stream(listen(link.watch_client(), vec![key.subject(), offer_subject(key)]));
        self.timer =
            Some(ctx.notify_later(MoveDue, MAX_SPLAY.mul_f64(rand::random::<f64>() * self.settings.scale)));
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
        self.timer = None;
        self.feed(Input::Due, ctx);
    }
}

impl Handler<HandOver> for Elector {
    type Result = ResponseFuture<bool>;

    fn handle(&mut self, _: HandOver, ctx: &mut Self::Context) -> Self::Result {
        let (asker, answer) = oneshot::channel();
        self.resigning.push(asker);
        // A write under way would change the number that the others need.
        if !self.asking {
            self.resign(ctx);
        }
        Box::pin(async move { answer.await.unwrap_or(false) })
    }
}

impl StreamHandler<Heard> for Elector {
    fn handle(&mut self, heard: Heard, ctx: &mut Self::Context) {
        if heard.subject == offer_subject(&self.settings.key) {
            let offer = serde_json::from_slice::<Offer>(&heard.payload).ok();
            let Some(Offer { by, seq }) = offer.filter(|offer| offer.by != self.settings.value) else {
                return;
            };
            tracing::info!(
                component = "election",
                by = escape_bounded(&by, 255),
                "the leader stops and offers the lead"
            );
            if self.plan.offer(seq) && !self.asking && !self.resigned {
                if let Some(timer) = self.timer.take() {
                    ctx.cancel_future(timer);
                }
                self.feed(Input::Due, ctx);
            }
        } else if heard.after.is_some_and(|after| after > 0) {
            // A write that asks for no predecessor is a candidate's attempt and says nothing about who leads.
            self.heard(&escape_bounded(&String::from_utf8_lossy(&heard.payload), 255));
        }
    }

    fn finished(&mut self, _: &mut Self::Context) {}
}

crate::supervised!(Elector);
