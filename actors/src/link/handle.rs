//! What everybody else holds of the link.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::Context;
use bytes::Bytes;
use quartermaster_proto::choria::Identity;
use tokio::sync::watch;

use super::actor::{BrokerLink, DiscoverHosts, MakeCall, PublishMessage};
use super::broker::{Broker, Session};
use super::credentials::Credentials;
use super::messages::{Answer, Call, CallError, Discovered, IdentitySink};
use super::servers::SrvResolver;
use super::settings::{Clock, LinkSettings};
use super::snapshot::{Counters, LinkSnapshot, LinkState, Published};
use crate::metrics::Fact;
use crate::supervise::{AskError, Birth, Slot};

/// What a question to the link may take on top of the deadline of the work itself.
const MARGIN: Duration = Duration::from_secs(15);

/// Where the link's facts go.
pub type FactSink = Arc<dyn Fn(Fact) + Send + Sync>;

/// The outside world of the link; tests put their own in.
#[derive(Clone)]
pub struct LinkParts {
    /// The keeper of the keys.
    pub credentials: Arc<dyn Credentials>,
    /// How brokers are connected to.
    pub broker: Arc<dyn Broker>,
    /// How SRV records are found.
    pub resolver: Arc<dyn SrvResolver>,
    /// The wall clock.
    pub clock: Clock,
    /// Randomness for request ids.
    pub random: Arc<dyn Fn() -> [u8; 16] + Send + Sync>,
    /// Randomness for orders and waits.
    pub random_u32: Arc<dyn Fn() -> u32 + Send + Sync>,
    /// Where facts go.
    pub facts: FactSink,
}

impl LinkParts {
    /// The real broker, resolver and randomness.
    pub fn real(credentials: Arc<dyn Credentials>, clock: Clock, facts: FactSink) -> Self {
        Self {
            credentials,
            broker: Arc::new(super::NatsBroker),
            resolver: Arc::new(super::SystemResolver::new()),
            clock,
            random: Arc::new(rand::random),
            random_u32: Arc::new(rand::random),
            facts,
        }
    }

    pub(super) fn record(&self, fact: Fact) {
        (self.facts)(fact);
    }
}

impl fmt::Debug for LinkParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkParts").finish_non_exhaustive()
    }
}

/// What outlives one life of the link.
pub(super) struct Shared {
    pub(super) counters: Counters,
    pub(super) session: watch::Sender<Option<Arc<dyn Session>>>,
    state: watch::Sender<Published>,
    life: watch::Sender<u64>,
}

impl Shared {
    fn new() -> Self {
        let state = LinkState::Connecting { rounds: 0, last_error: String::new(), refused: false };
        Self {
            counters: Counters::default(),
            session: watch::Sender::new(None),
            state: watch::Sender::new(Published::new(state)),
            life: watch::Sender::new(0),
        }
    }

    /// Begins a life; the one before it notices and ends.
    pub(super) fn begin_life(&self) -> u64 {
        self.life.send_modify(|number| *number += 1);
        *self.life.borrow()
    }

    pub(super) fn is_current(&self, number: u64) -> bool {
        *self.life.borrow() == number
    }

    /// Waits until another life has begun.
    pub(super) async fn replaced(&self, number: u64) {
        let mut life = self.life.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = life.wait_for(|now| *now != number).await;
    }

    pub(super) fn publish_state(&self, state: LinkState) {
        self.state.send_replace(Published::new(state));
    }

    pub(super) fn last_error(&self) -> String {
        match self.state.borrow().state.as_ref() {
            LinkState::Connecting { last_error, .. } if !last_error.is_empty() => last_error.clone(),
            _ => "still connecting".to_owned(),
        }
    }
}

/// The link, for everybody but its owner. Cheap to clone; survives restarts of the actor.
#[derive(Clone)]
pub struct LinkHandle {
    slot: Slot<BrokerLink>,
    settings: Arc<LinkSettings>,
    parts: LinkParts,
    shared: Arc<Shared>,
}

impl fmt::Debug for LinkHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkHandle").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl LinkHandle {
    /// The handle of a link that does not live yet: its owner starts it from [`LinkHandle::slot`] and
    /// [`LinkHandle::factory`].
    pub fn new(settings: LinkSettings, parts: LinkParts) -> Self {
        let slot = Slot::new(settings.position, settings.max_pending.saturating_add(1024));
        Self { slot, settings: Arc::new(settings), parts, shared: Arc::new(Shared::new()) }
    }

    /// The link's position.
    pub const fn slot(&self) -> &Slot<BrokerLink> {
        &self.slot
    }

    /// Makes one life of the link.
    pub fn factory(&self) -> impl Fn(Birth, &mut Context<BrokerLink>) -> BrokerLink + Send + Sync + 'static {
        let me = self.clone();
        move |birth, _| {
            let settings = Arc::clone(&me.settings);
            BrokerLink::new(settings, me.parts.clone(), Arc::clone(&me.shared), birth.notice)
        }
    }

    /// Calls one action on one host and waits for its answer, at most for the agent's deadline (plus the grace for a link
    /// that is just reconnecting).
    pub async fn call(&self, call: Call) -> Result<Answer, CallError> {
        let limit = self.settings.deadline(call.agent) + self.settings.reconnect_grace + MARGIN;
        self.slot.ask(MakeCall(call), limit).await.unwrap_or_else(|error| Err(refused(&error)))
    }

    /// Broadcasts a discovery. Every host that answers goes to the sink as it is seen, each once.
    pub async fn discover(
        &self,
        sink: impl Fn(Identity) -> Result<(), super::SinkFull> + Send + Sync + 'static,
    ) -> Result<Discovered, CallError> {
        let limit = self.settings.discovery_timeout + self.settings.reconnect_grace + MARGIN;
        let sink: IdentitySink = Arc::new(sink);
        self.slot.ask(DiscoverHosts(sink), limit).await.unwrap_or_else(|error| Err(refused(&error)))
    }

    /// Publishes bytes as they are, with an empty reply field.
    pub async fn publish(
        &self,
        subject: impl Into<String>,
        payload: impl Into<Bytes>,
    ) -> Result<(), CallError> {
        let limit = self.settings.reconnect_grace + MARGIN;
        let message = PublishMessage { subject: subject.into(), payload: payload.into() };
        self.slot.ask(message, limit).await.unwrap_or_else(|error| Err(refused(&error)))
    }

    /// State and numbers now; never waits on the actor.
    pub fn snapshot(&self) -> LinkSnapshot {
        self.shared.counters.snapshot(&self.shared.state.borrow())
    }

    /// True while connected and subscribed.
    pub fn is_connected(&self) -> bool {
        self.shared.state.borrow().state.is_connected()
    }

    /// Waits until the link is connected; false when the limit passed first.
    pub async fn ready(&self, limit: Duration) -> bool {
        let mut state = self.shared.state.subscribe();
        let connected = state.wait_for(|now| now.state.is_connected());
        matches!(tokio::time::timeout(limit, connected).await, Ok(Ok(_)))
    }

    /// Waits until the connection is another one than now: made, lost or replaced. Then look with
    /// [`LinkHandle::client`]. A watcher is created by [`LinkHandle::watch_client`].
    pub fn watch_client(&self) -> ClientWatch {
        ClientWatch { sessions: self.shared.session.subscribe() }
    }

    /// The client library's handle on the present connection, for JetStream, key-value and micro services.
    pub fn client(&self) -> Option<async_nats::Client> {
        self.shared.session.borrow().as_ref().and_then(|session| session.client())
    }
}

/// Follows the link from connection to connection.
pub struct ClientWatch {
    sessions: watch::Receiver<Option<Arc<dyn Session>>>,
}

impl fmt::Debug for ClientWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientWatch").finish_non_exhaustive()
    }
}

impl ClientWatch {
    /// The client of the present connection, waiting for one if there is none. `None` only when the link is gone for
    /// good.
    pub async fn connected(&mut self) -> Option<async_nats::Client> {
        let session = self.sessions.wait_for(Option::is_some).await.ok()?;
        session.as_ref().and_then(|session| session.client())
    }

    /// The present connection, waiting for one if there is none. `None` only when the link is gone for good.
    pub async fn session(&mut self) -> Option<Arc<dyn Session>> {
        self.sessions.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// Waits until the connection that [`ClientWatch::connected`] answered last is gone or replaced.
    pub async fn changed(&mut self) {
        if self.sessions.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn refused(error: &AskError) -> CallError {
    match error {
        AskError::Full { .. } => CallError::QueueFull,
        AskError::Down { .. } | AskError::Dropped { .. } => CallError::Down,
        AskError::TimedOut { after, .. } => CallError::TimedOut { after: *after },
    }
}
