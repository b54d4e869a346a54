//! Where a fact becomes its log line and its number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quartermaster_proto::text::escape_bounded;
use tracing::{debug, error, info, warn};

use super::rate::Throttle;
use super::store::{MetricsError, Store};
use super::{Fact, Found, HelperOutcome};
use crate::provider::{ProviderFact, ProviderSink};

/// The longest identity in a log line, in characters; valid ones are shorter.
const MAX_HOST: usize = 255;
/// The longest error or foreign text in a log line, in characters.
const MAX_TEXT: usize = 1000;

/// The facts a tapped recorder was given, in order.
#[cfg(feature = "testing")]
pub type FactLog = Arc<std::sync::Mutex<Vec<Fact>>>;

/// Takes facts from anywhere; cheap to clone, never blocks, never fails.
#[derive(Debug, Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    throttles: Throttles,
    #[cfg(feature = "testing")]
    tap: Option<FactLog>,
}

/// Lines that a stranger can cause are bounded in rate; the counters still count each.
#[derive(Debug, Default)]
struct Throttles {
    events: Throttle,
    sightings: Throttle,
    replies: Throttle,
    conflicts: Throttle,
    sight: Sight,
}

/// Whether this network shows servers to the provisioner. A broker with accounts does not: there a host that was not seen
/// after its restart means nothing, and a warning for every host would hide those that mean something.
#[derive(Debug, Default)]
struct Sight {
    servers: AtomicBool,
    explained: AtomicBool,
}

impl Recorder {
    /// A recorder whose series all carry this `site`.
    pub fn new(site: &str) -> Result<Self, MetricsError> {
        Store::new(site, None).map(Self::over)
    }

    /// As [`Recorder::new`], with the series of an election in which this instance takes part under this identity.
    pub fn in_election(site: &str, identity: &str) -> Result<Self, MetricsError> {
        Store::new(site, Some(identity)).map(Self::over)
    }

    fn over(store: Store) -> Self {
        let inner = Inner {
            store,
            throttles: Throttles::default(),
            #[cfg(feature = "testing")]
            tap: None,
        };
        Self { inner: Arc::new(inner) }
    }

    /// A recorder whose facts can be read back, in order.
    #[cfg(feature = "testing")]
    pub fn tapped() -> Result<(Self, FactLog), MetricsError> {
        let facts = FactLog::default();
        let (store, throttles) = (Store::new("test", None)?, Throttles::default());
        let inner = Inner { store, throttles, tap: Some(Arc::clone(&facts)) };
        Ok((Self { inner: Arc::new(inner) }, facts))
    }

    /// Logs the fact and takes it into the numbers.
    #[cfg_attr(
        not(feature = "testing"),
        expect(clippy::needless_pass_by_value, reason = "a fact is given away; callers must not reuse it")
    )]
    pub fn record(&self, fact: Fact) {
        self.inner.store.update(&fact);
        log(&fact, &self.inner.throttles);
        #[cfg(feature = "testing")]
        if let Some(tap) = &self.inner.tap {
            tap.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(fact);
        }
    }

    /// Takes what happens to the provider of this name: into its series, all there from now on, and into the log.
    ///
    /// # Errors
    /// The name is none of a label's value.
    pub fn provider_sink(&self, name: &str) -> Result<ProviderSink, MetricsError> {
        let series = self.inner.store.providers.of(name).map_err(MetricsError::Setup)?;
        Ok(Arc::new(move |fact: ProviderFact| {
            series.update(&fact);
            fact.log();
        }))
    }

    /// This recorder as a plain closure.
    pub fn sink(&self) -> Arc<dyn Fn(Fact) + Send + Sync> {
        let me = self.clone();
        Arc::new(move |fact| me.record(fact))
    }

    /// The Prometheus text of all series now.
    pub(super) fn render(&self) -> Result<Vec<u8>, MetricsError> {
        self.inner.store.render()
    }
}

fn name(host: &str) -> String {
    escape_bounded(host, MAX_HOST)
}

fn text(text: &str) -> String {
    escape_bounded(text, MAX_TEXT)
}

fn retry(after: Duration) -> String {
    format!("{:.1} s", after.as_secs_f64())
}

/// The peer's stable lines keep their exact words (choria.md 12.6), and `component` its values: the identity for lines
/// about one host.
fn log(fact: &Fact, throttles: &Throttles) {
    match fact {
        Fact::Step(step) => step.log(),
        Fact::HostFound { .. }
        | Fact::CycleStarted { .. }
        | Fact::HostProvisioned { .. }
        | Fact::HostUpdating { .. }
        | Fact::HostShutDown { .. }
        | Fact::HostAgedOut { .. }
        | Fact::HostServing { .. }
        | Fact::HostInterrupted { .. }
        | Fact::HostFailed { .. }
        | Fact::HostDeferred { .. }
        | Fact::HostBusy { .. }
        | Fact::ShutdownRequested { .. } => log_cycle(fact),
        Fact::HostConfirmed { .. } | Fact::HostUnconfirmed { .. } => log_sight(fact, &throttles.sight),
        Fact::RpcFinished { .. } | Fact::HelperRan { .. } | Fact::HelperSaid { .. } => log_step(fact),
        Fact::EventRejected { .. }
        | Fact::SightingDropped { .. }
        | Fact::ReplyRejected { .. }
        | Fact::ReplyConflict { .. } => log_throttled(fact, throttles),
        Fact::DiscoveryRan { .. }
        | Fact::DiscoveryFailed { .. }
        | Fact::DiscoverySkipped
        | Fact::FleetCounted { .. }
        | Fact::Paused { .. }
        | Fact::LeadershipWon
        | Fact::LeadershipLost
        | Fact::LeadershipHandedOver
        | Fact::LeaderHeard { .. }
        | Fact::ClaimContended { .. }
        | Fact::ClaimLost { .. }
        | Fact::ClaimsCounted { .. }
        | Fact::Campaigned { .. }
        | Fact::CampaignDue { .. }
        | Fact::ActorEnded { .. }
        | Fact::JournalFailed { .. }
        | Fact::JournalCommitted { .. }
        | Fact::JournalDurable { .. }
        | Fact::LinkChanged { .. } => log_instance(fact),
    }
}

/// Lines about what became of a host after its restart.
fn log_sight(fact: &Fact, sight: &Sight) {
    match fact {
        Fact::HostConfirmed { host, took } => {
            sight.servers.store(true, Ordering::Relaxed);
            let (host, took_ms) = (name(host), took.as_millis());
            info!(component = host, host, took_ms, "Confirmed {host} as a server after its restart");
        }
        Fact::HostUnconfirmed { host } if sight.servers.load(Ordering::Relaxed) => {
            let host = name(host);
            warn!(component = host, host, "Not seen as a server after its restart: {host}");
        }
        Fact::HostUnconfirmed { host } => {
            let host = name(host);
            if !sight.explained.swap(true, Ordering::Relaxed) {
                info!(
                    component = "hosts",
                    "No restart is confirmed here: this network has shown no server after its restart so far, and a \
                     broker with accounts never does"
                );
            }
            debug!(component = host, host, "Not seen as a server after its restart: {host}");
        }
        _ => {}
    }
}

/// Lines about a host's way through the list.
fn log_cycle(fact: &Fact) {
    match fact {
        Fact::HostFound { host, by } => {
            let host = name(host);
            let how = match by {
                Found::Discovery => "discovering it",
                Found::Event => "receiving an event",
            };
            info!(component = "hosts", host, "Adding {host} to the provision list after {how}");
        }
        Fact::CycleStarted { host, attempt, waited } => {
            let (host, waited_ms) = (name(host), waited.as_millis());
            info!(component = host, host, attempt, waited_ms, "Provisioning {host}");
        }
        Fact::HostProvisioned { host, took } => {
            let (host, took_ms) = (name(host), took.as_millis());
            info!(component = host, host, took_ms, "Provisioned {host}");
        }
        Fact::HostUpdating { host, took } => {
            let (host, took_ms) = (name(host), took.as_millis());
            info!(component = host, host, took_ms, "Updating {host}, it returns with its new version");
        }
        Fact::HostShutDown { host, took } => {
            let (host, took_ms) = (name(host), took.as_millis());
            info!(component = host, host, took_ms, "Shut {host} down");
        }
        Fact::HostAgedOut { host } => {
            let host = name(host);
            info!(component = "hosts", host, "Forgetting {host}, it was not seen again");
        }
        Fact::HostServing { host } => {
            let host = name(host);
            info!(component = host, host, "Leaving {host} alone, it is provisioned already");
        }
        Fact::HostInterrupted { host } => {
            let host = name(host);
            info!(component = host, host, "Interrupted {host} between two steps");
        }
        Fact::HostFailed { host, cause, error, attempt, retry_in } => {
            let (host, error) = (name(host), text(error));
            let retry_in = retry_in.map_or_else(|| "never".to_owned(), retry);
            error!(component = host, host, cause, attempt, retry_in, "Could not provision {host}: {error}");
        }
        Fact::HostDeferred { host, msg, retry_in } => {
            let (host, msg, retry_in) = (name(host), text(msg), retry(*retry_in));
            warn!(component = host, host, cause = "deferred", retry_in, "The helper put {host} off: {msg}");
        }
        Fact::HostBusy { host, retry_in } => {
            let (host, retry_in) = (name(host), retry(*retry_in));
            let cause = "busy";
            warn!(component = host, host, cause, retry_in, "Another provisioner holds the lock of {host}");
        }
        Fact::ShutdownRequested { host, msg } => {
            let (host, msg) = (name(host), text(msg));
            warn!(component = host, host, "Shutting down {host} as the helper asked: {msg}");
        }
        _ => {}
    }
}

/// Lines about one step of a cycle.
fn log_step(fact: &Fact) {
    match fact {
        Fact::RpcFinished { host, agent, action, took, error } => {
            let (host, took_ms) = (name(host), took.as_millis());
            if let Some(error) = error {
                let error = text(error);
                warn!(component = host, host, took_ms, "Calling {agent}#{action} on {host} failed: {error}");
            } else {
                debug!(component = host, host, took_ms, "Called {agent}#{action} on {host}");
            }
        }
        Fact::HelperRan { host, took, outcome, error, .. } => {
            let (host, took_ms) = (name(host), took.as_millis());
            match outcome {
                HelperOutcome::Answered => debug!(component = host, host, took_ms, "The helper answered"),
                HelperOutcome::Failed => {
                    let error = text(error.as_deref().unwrap_or("no reason given"));
                    error!(component = host, host, took_ms, "The helper failed: {error}");
                }
            }
        }
        Fact::HelperSaid { host, line } => {
            let (host, line) = (name(host), text(line));
            info!(component = host, host, "The helper says: {line}");
        }
        _ => {}
    }
}

/// Lines that a stranger can cause as often as they like.
fn log_throttled(fact: &Fact, throttles: &Throttles) {
    let throttle = match fact {
        Fact::EventRejected { .. } => &throttles.events,
        Fact::SightingDropped { .. } => &throttles.sightings,
        Fact::ReplyRejected { .. } => &throttles.replies,
        _ => &throttles.conflicts,
    };
    let Some(unsaid) = throttle.admit() else { return };
    match fact {
        Fact::EventRejected { error } => {
            let error = text(error);
            warn!(component = "hosts", unsaid, "Ignoring a lifecycle event: {error}");
        }
        Fact::SightingDropped { lane } => {
            warn!(component = "hosts", unsaid, "Dropped a sighting, the {lane} lane is full");
        }
        Fact::ReplyRejected { host, reason } => {
            let (host, reason) = (name(host), text(reason));
            warn!(component = host, host, unsaid, "Ignoring a reply that claims to be from {host}: {reason}");
        }
        Fact::ReplyConflict { host, agent, action } => {
            let host = name(host);
            error!(component = host, host, unsaid, "Two different replies of {host} to {agent}#{action}");
        }
        _ => {}
    }
}

/// Lines about this instance.
fn log_instance(fact: &Fact) {
    match fact {
        Fact::DiscoveryRan { found, took } => {
            let took_ms = took.as_millis();
            info!(component = "broadcast_discovery", found, took_ms, "Discovered {found} hosts");
        }
        Fact::DiscoveryFailed { error } => {
            let error = text(error);
            error!(component = "broadcast_discovery", "Could not discover hosts: {error}");
        }
        Fact::DiscoverySkipped => warn!(component = "hosts", "Skipping discovery while paused"),
        Fact::FleetCounted { waiting, queued, busy } => {
            debug!(component = "hosts", waiting, queued, busy, "Counted the fleet");
        }
        Fact::Paused { paused: true } => warn!(component = "provisioner", "Paused"),
        Fact::Paused { paused: false } => info!(component = "provisioner", "Working"),
        Fact::LeadershipWon => info!(component = "hosts", "Became leader after winning election"),
        Fact::LeadershipLost => warn!(component = "hosts", "Lost leadership"),
        Fact::ClaimContended { host } => {
            debug!(component = name(host), host = name(host), "Another instance has it");
        }
        Fact::ClaimLost { host } => {
            warn!(
                component = name(host),
                host = name(host),
                "Its claim was lost, its cycle ends at the next safe point"
            );
        }
        Fact::LeadershipHandedOver => info!(component = "election", "Leadership was handed over"),
        Fact::LeaderHeard { name: leader, anew: true, .. } => {
            info!(component = "election", leader = name(leader), "Heard the leader");
        }
        Fact::ActorEnded { actor, cause, decision } => {
            let decision = text(decision);
            error!(component = "provisioner", actor, cause, "The {actor} actor ended: {decision}");
        }
        Fact::JournalFailed { error } => {
            warn!(component = "journal", "the journal could not be written: {}", text(error));
        }
        Fact::LinkChanged { connected: true, detail } => {
            let detail = text(detail);
            info!(component = "client", "Connected: {detail}");
        }
        Fact::LinkChanged { connected: false, detail } => {
            let detail = text(detail);
            warn!(component = "client", "Not connected: {detail}");
        }
        _ => {}
    }
}
