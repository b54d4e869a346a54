//! What the link is told once, at its start: plain data, no secret.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quartermaster_proto::choria::Generation;
use quartermaster_proto::time::WallClock;

use super::servers::Servers;

/// The wall clock as a value; only the composition root reads the real one.
pub type Clock = Arc<dyn Fn() -> WallClock + Send + Sync>;

/// A message of an event subscription, as it arrived.
#[derive(Debug, Clone)]
pub struct RawEvent {
    /// The subject it was published on.
    pub subject: String,
    /// Its bytes, not looked at yet; at most [`MAX_EVENT_BYTES`].
    pub payload: Bytes,
}

/// Events above this many bytes never reach a sink.
pub const MAX_EVENT_BYTES: usize = 64 * 1024;

/// Said by a sink that cannot take more; the link drops the item and counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiver takes no more at the moment")]
pub struct SinkFull;

/// Where events of one subscription go. Must not block.
pub type EventSink = Arc<dyn Fn(RawEvent) -> Result<(), SinkFull> + Send + Sync>;

/// One subject to stay subscribed to, across all reconnects.
#[derive(Clone)]
pub struct EventSubscription {
    /// The subject, wildcards allowed.
    pub subject: String,
    /// Names the lane in [`Fact::SightingDropped`](crate::metrics::Fact::SightingDropped).
    pub lane: &'static str,
    /// Where the events go.
    pub sink: EventSink,
}

impl fmt::Debug for EventSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSubscription")
            .field("subject", &self.subject)
            .field("lane", &self.lane)
            .finish_non_exhaustive()
    }
}

/// How long to wait for the answer of each agent (choria.md 12.4); the discovery timeout comes on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentDeadlines {
    /// `choria_provision`.
    pub provision: Duration,
    /// `rpcutil`, and every agent without an entry of its own.
    pub other: Duration,
}

impl Default for AgentDeadlines {
    fn default() -> Self {
        Self { provision: Duration::from_secs(20), other: Duration::from_secs(2) }
    }
}

impl AgentDeadlines {
    /// The agent's own time.
    pub fn of(&self, agent: &str) -> Duration {
        if agent == "choria_provision" { self.provision } else { self.other }
    }
}

/// What a link listens to for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inbox {
    /// The replies to its caller's remote calls; the client library's own inboxes lie below them.
    Calls,
    /// Nothing but the library's own inboxes, in a place of this link's own below those replies: for a second connection
    /// with a login that may not hear anything else.
    Aside,
    /// Nothing but the library's own inboxes, where every NATS client has them.
    Plain,
}

/// All settings of the link.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// The name of its position among the actors.
    pub position: &'static str,
    /// What it listens to for answers.
    pub inbox: Inbox,
    /// Where the brokers are.
    pub servers: Servers,
    /// True when only TLS will do: a broker that does not offer it is no candidate.
    pub require_tls: bool,
    /// Own identity: the sender of every request, the name of the connection.
    pub identity: String,
    /// The collective, `provisioning` in every real network.
    pub collective: String,
    /// The protocol generation spoken.
    pub generation: Generation,
    /// Life time of a request, seconds; protocol 1 wants 30 at least.
    pub ttl: u32,
    /// Limit of one attempt to connect to one broker.
    pub connect_timeout: Duration,
    /// Comes on top of each agent's time; also the hard end of a broadcast discovery.
    pub discovery_timeout: Duration,
    /// A broadcast discovery ends when no reply came for this long.
    pub discovery_window: Duration,
    /// The agents' own times.
    pub deadlines: AgentDeadlines,
    /// A call whose only replies were invalid ends this long after the first of them.
    pub invalid_grace: Duration,
    /// A call made while the link is down waits this long for it to come back, within its own deadline.
    pub reconnect_grace: Duration,
    /// After a connection ended, requests sent over it are waited for at most this much longer.
    pub lost_grace: Duration,
    /// How long an answered request is remembered, to notice a second, different reply.
    pub conflict_memory: Duration,
    /// Time between pings on an idle connection; two unanswered ones end it. Short enough that a broker that froze, or a link
    /// that is half open, is noticed before the calls that went over it have run out of time.
    pub ping_interval: Duration,
    /// Factor on the waits between rounds of connecting; 1 outside of tests.
    pub backoff_scale: f64,
    /// How many requests may await replies at once.
    pub max_pending: usize,
    /// Subscriptions to keep.
    pub events: Vec<EventSubscription>,
}

impl LinkSettings {
    /// The peer's values for everything a configuration does not name.
    pub fn new(servers: Servers, identity: impl Into<String>, generation: Generation) -> Self {
        Self {
            position: "link",
            inbox: Inbox::Calls,
            servers,
            require_tls: true,
            identity: identity.into(),
            collective: "provisioning".to_owned(),
            generation,
            ttl: 60,
            connect_timeout: Duration::from_secs(2),
            discovery_timeout: Duration::from_secs(2),
            discovery_window: Duration::from_millis(300),
            deadlines: AgentDeadlines::default(),
            invalid_grace: Duration::from_secs(2),
            reconnect_grace: Duration::from_secs(5),
            lost_grace: Duration::from_secs(8),
            conflict_memory: Duration::from_mins(1),
            ping_interval: Duration::from_secs(5),
            backoff_scale: 1.0,
            max_pending: 65_536,
            events: Vec::new(),
        }
    }

    /// How long a call to `agent` waits for its answer.
    pub fn deadline(&self, agent: &str) -> Duration {
        self.deadlines.of(agent) + self.discovery_timeout
    }
}
