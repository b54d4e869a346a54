//! Every series of this process, made at the start with all its label values, and updated without a lock.

use std::sync::Arc;

use prometheus::core::Collector;
use prometheus::{
    Encoder, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry, TextEncoder,
};

use super::claims::Claims;
use super::election::Election;
use super::keeping::Keeping;
use super::labels::{ACTORS, CYCLE_ENDS, EXIT_CAUSES, LANES, RPCS, position};
use super::providers::Providers;
use super::steps::Steps;
use super::summary::{SummaryCell, SummaryFamily};
use super::{Fact, Found, HelperOutcome};

/// Why the metrics could not be set up or rendered.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// A series could not be made.
    #[error("could not set up the metrics")]
    Setup(#[source] prometheus::Error),
    /// The text could not be written.
    #[error("could not render the metrics")]
    Render(#[source] prometheus::Error),
}

/// Upper bounds of the buckets, in seconds: calls take a millisecond or some, helpers seconds, queues minutes.
const SECONDS: [f64; 17] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0,
];

/// The series of one remote call.
#[derive(Debug)]
struct RpcSeries {
    time: Arc<SummaryCell>,
    errors: IntCounter,
    seconds: Histogram,
}

/// All series. The names, labels and types of the peer's are choria.md 12.5; ours begin with `quartermaster_`.
#[derive(Debug)]
pub(super) struct Store {
    registry: Registry,
    discovered: IntCounter,
    event_discovered: IntCounter,
    discover_cycles: IntCounter,
    discovery_errors: IntCounter,
    provision_errors: IntCounter,
    provisioned: IntCounter,
    helper_errors: IntCounter,
    helper_shutdown_requests: IntCounter,
    paused: IntGauge,
    busy_workers: IntGauge,
    work_queue_entries: IntGauge,
    waiting_nodes: IntGauge,
    helper_time: Arc<SummaryCell>,
    rpcs: Vec<RpcSeries>,
    helper_seconds: Histogram,
    helper_wait: Histogram,
    queue_wait: Histogram,
    cycle_seconds: Histogram,
    confirm_seconds: Histogram,
    confirmed: IntCounter,
    unconfirmed: IntCounter,
    aged_out: IntCounter,
    cycle_ends: Vec<IntCounter>,
    actor_endings: Vec<IntCounter>,
    link_connected: IntGauge,
    link_connects: IntCounter,
    dropped_sightings: Vec<IntCounter>,
    rejected_events: IntCounter,
    reply_conflicts: IntCounter,
    rejected_replies: IntCounter,
    election: Option<Election>,
    keeping: Keeping,
    steps: Steps,
    claims: Claims,
    pub(super) providers: Providers,
}

/// Makes series and registers them, all with the site's label.
pub(super) struct Maker<'a> {
    registry: &'a Registry,
    site: &'a str,
}

impl Maker<'_> {
    fn opts(&self, name: &str, help: &str) -> Opts {
        Opts::new(name, help).const_label("site", self.site)
    }

    fn register<C: Collector + Clone + 'static>(&self, collector: C) -> prometheus::Result<C> {
        self.registry.register(Box::new(collector.clone()))?;
        Ok(collector)
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> prometheus::Result<IntCounter> {
        self.register(IntCounter::with_opts(self.opts(name, help))?)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> prometheus::Result<IntGauge> {
        self.register(IntGauge::with_opts(self.opts(name, help))?)
    }

    /// One counter for every value of one label, all there from the start.
    fn counters(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: &[&str],
    ) -> prometheus::Result<Vec<IntCounter>> {
        let family = self.register(IntCounterVec::new(self.opts(name, help), &[label])?)?;
        values.iter().map(|value| family.get_metric_with_label_values(&[value])).collect()
    }

    pub(super) fn counter_family(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        self.register(IntCounterVec::new(self.opts(name, help), labels)?)
    }

    pub(super) fn gauge_family(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntGaugeVec> {
        self.register(IntGaugeVec::new(self.opts(name, help), labels)?)
    }

    pub(super) fn histogram_family(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<HistogramVec> {
        self.register(HistogramVec::new(self.histogram_opts(name, help), labels)?)
    }

    fn histogram_opts(&self, name: &str, help: &str) -> HistogramOpts {
        HistogramOpts::from(self.opts(name, help)).buckets(SECONDS.to_vec())
    }

    fn histogram(&self, name: &str, help: &str) -> prometheus::Result<Histogram> {
        self.register(Histogram::with_opts(self.histogram_opts(name, help))?)
    }

    fn summaries(
        &self,
        name: &str,
        help: &str,
        series: &[Vec<(&str, String)>],
    ) -> prometheus::Result<Vec<Arc<SummaryCell>>> {
        let family = SummaryFamily::new(name, help, self.site, series)?;
        let cells = family.cells();
        self.registry.register(Box::new(family))?;
        Ok(cells)
    }

    fn rpcs(&self) -> prometheus::Result<(Vec<RpcSeries>, Histogram)> {
        let names: Vec<String> = RPCS.iter().map(|(agent, action)| format!("{agent}#{action}")).collect();
        let labels: Vec<_> = names.iter().map(|name| vec![("rpc", name.clone())]).collect();
        let values: Vec<&str> = names.iter().map(String::as_str).collect();
        let times = self.summaries(
            "choria_provisioner_rpc_time",
            "Seconds that calls to hosts took, one observation per try",
            &labels,
        )?;
        let errors = self.counters(
            "choria_provisioner_rpc_errors",
            "Tries of calls to hosts that failed",
            "rpc",
            &values,
        )?;
        let steps = self.register(HistogramVec::new(
            self.histogram_opts("quartermaster_step_seconds", "Seconds one try of one step of a cycle took"),
            &["step"],
        )?)?;
        let mut rpcs = Vec::new();
        for ((time, errors), (_, action)) in times.into_iter().zip(errors).zip(RPCS) {
            rpcs.push(RpcSeries { time, errors, seconds: steps.get_metric_with_label_values(&[action])? });
        }
        Ok((rpcs, steps.get_metric_with_label_values(&["helper"])?))
    }
}

impl Store {
    /// All series at zero, with this value of `site`;
    /// those of an election only for an instance that takes part in one.
    pub(super) fn new(site: &str, elected: Option<&str>) -> Result<Self, MetricsError> {
        Self::make(site, elected).map_err(MetricsError::Setup)
    }

    fn make(site: &str, elected: Option<&str>) -> prometheus::Result<Self> {
        let registry = Registry::new();
        let make = Maker { registry: &registry, site };
        let (rpcs, helper_seconds) = make.rpcs()?;
        let helper_time =
            make.summaries("choria_provisioner_helper_time", "Seconds that helper runs took", &[vec![]])?;
        let version = env!("CARGO_PKG_VERSION");
        let build = Opts::new("quartermaster_build_info", "Always 1; the labels say what is running");
        let build = Gauge::with_opts(build.const_label("version", version))?;
        build.set(1.0);
        registry.register(Box::new(build))?;
        registry.register(Box::new(super::process::ProcessFigures::new()?))?;
        Ok(Self {
            discovered: make.counter("choria_provisioner_discovered", "Hosts taken on after a discovery")?,
            event_discovered: make.counter(
                "choria_provisioner_event_discovered",
                "Hosts taken on after their own startup event",
            )?,
            discover_cycles: make
                .counter("choria_provisioner_discover_cycles", "Discoveries that were run")?,
            discovery_errors: make
                .counter("choria_provisioner_discovery_errors", "Discoveries that failed")?,
            provision_errors: make.counter(
                "choria_provisioner_provision_errors",
                "Cycles that ended with the host not provisioned",
            )?,
            provisioned: make.counter("choria_provisioner_provisioned", "Hosts configured and restarted")?,
            helper_errors: make.counter("choria_provisioner_helper_errors", "Helper runs that failed")?,
            helper_shutdown_requests: make.counter(
                "choria_provisioner_helper_shutdown_requests",
                "Hosts shut down because the helper asked for it",
            )?,
            paused: make
                .gauge("choria_provisioner_paused", "1 while paused by an operator or on standby, else 0")?,
            busy_workers: make.gauge("choria_provisioner_busy_workers", "Hosts in a cycle now")?,
            work_queue_entries: make
                .gauge("choria_provisioner_work_queue_entries", "Hosts in the queue for a cycle now")?,
            waiting_nodes: make
                .gauge("choria_provisioner_waiting_nodes", "Hosts known and not yet provisioned")?,
            helper_time: helper_time.into_iter().next().unwrap_or_default(),
            rpcs,
            helper_seconds,
            helper_wait: make.histogram(
                "quartermaster_helper_wait_seconds",
                "Seconds a cycle waited for its turn with the helper",
            )?,
            queue_wait: make.histogram(
                "quartermaster_queue_wait_seconds",
                "Seconds a host waited for its cycle to begin",
            )?,
            cycle_seconds: make
                .histogram("quartermaster_cycle_seconds", "Seconds a cycle took that provisioned its host")?,
            confirm_seconds: make.histogram(
                "quartermaster_confirm_seconds",
                "Seconds from the end of a cycle until the host came up as an ordinary server",
            )?,
            confirmed: make.counter(
                "quartermaster_hosts_confirmed_total",
                "Provisioned hosts that came up as ordinary servers",
            )?,
            unconfirmed: make.counter(
                "quartermaster_hosts_unconfirmed_total",
                "Provisioned hosts that were not seen as ordinary servers within the limit",
            )?,
            aged_out: make.counter(
                "quartermaster_hosts_aged_out_total",
                "Hosts forgotten because they were not seen again",
            )?,
            cycle_ends: make.counters(
                "quartermaster_cycle_ends_total",
                "Ends of cycles by their cause",
                "cause",
                &CYCLE_ENDS,
            )?,
            actor_endings: make.actor_endings()?,
            link_connected: make
                .gauge("quartermaster_link_connected", "1 while logged in to a broker, else 0")?,
            link_connects: make.counter("quartermaster_link_connects_total", "Logins to a broker")?,
            dropped_sightings: make.counters(
                "quartermaster_dropped_sightings_total",
                "Sightings of hosts dropped because a lane was full, until the next discovery",
                "lane",
                &LANES,
            )?,
            rejected_events: make
                .counter("quartermaster_rejected_events_total", "Lifecycle events that could not be used")?,
            reply_conflicts: make.counter(
                "quartermaster_reply_conflicts_total",
                "Requests that were answered twice, differently",
            )?,
            rejected_replies: make
                .counter("quartermaster_rejected_replies_total", "Replies that could not count")?,
            claims: Claims::new(&make)?,
            providers: Providers::new(&make)?,
            election: elected.map(|identity| Election::new(&registry, site, identity)).transpose()?,
            keeping: Keeping::new(&registry, site)?,
            steps: Steps::new(&registry, site)?,
            registry,
        })
    }

    /// The Prometheus text of all series, sorted by name.
    pub(super) fn render(&self) -> Result<Vec<u8>, MetricsError> {
        let mut text = Vec::with_capacity(32 * 1024);
        TextEncoder::new().encode(&self.registry.gather(), &mut text).map_err(MetricsError::Render)?;
        Ok(text)
    }

    fn end_cycle(&self, cause: &str) {
        count(&self.cycle_ends, position(&CYCLE_ENDS, cause));
    }

    fn rpc(&self, agent: &str, action: &str) -> Option<&RpcSeries> {
        self.rpcs.get(RPCS.iter().position(|rpc| *rpc == (agent, action))?)
    }

    /// Takes one fact into the numbers.
    pub(super) fn update(&self, fact: &Fact) {
        match fact {
            Fact::HostFound { by: Found::Discovery, .. } => self.discovered.inc(),
            Fact::HostFound { by: Found::Event, .. } => self.event_discovered.inc(),
            Fact::DiscoveryRan { .. } => self.discover_cycles.inc(),
            Fact::DiscoveryFailed { .. } => {
                self.discover_cycles.inc();
                self.discovery_errors.inc();
            }
            Fact::EventRejected { .. } => self.rejected_events.inc(),
            Fact::SightingDropped { lane } => count(&self.dropped_sightings, position(&LANES, lane)),
            Fact::RpcFinished { agent, action, took, error, .. } => {
                if let Some(rpc) = self.rpc(agent, action) {
                    rpc.time.observe(*took);
                    rpc.seconds.observe(took.as_secs_f64());
                    rpc.errors.inc_by(u64::from(error.is_some()));
                }
            }
            Fact::HelperRan { took, waited, outcome, .. } => {
                self.helper_time.observe(*took);
                self.helper_wait.observe(waited.as_secs_f64());
                self.helper_seconds.observe(took.as_secs_f64());
                self.helper_errors.inc_by(u64::from(*outcome == HelperOutcome::Failed));
            }
            Fact::CycleStarted { waited, .. } => self.queue_wait.observe(waited.as_secs_f64()),
            Fact::HostProvisioned { took, .. } => {
                self.provisioned.inc();
                self.cycle_seconds.observe(took.as_secs_f64());
                self.end_cycle("provisioned");
            }
            Fact::HostConfirmed { took, .. } => {
                self.confirmed.inc();
                self.confirm_seconds.observe(took.as_secs_f64());
            }
            Fact::ShutdownRequested { .. } => self.helper_shutdown_requests.inc(),
            Fact::HostShutDown { .. } => {
                self.provisioned.inc();
                self.end_cycle("shut_down");
            }
            Fact::HostUpdating { .. } => {
                self.provisioned.inc();
                self.end_cycle("updating");
            }
            Fact::HostUnconfirmed { .. } => self.unconfirmed.inc(),
            Fact::HostAgedOut { .. } => self.aged_out.inc(),
            Fact::HostServing { .. } => self.end_cycle("serving"),
            Fact::HostInterrupted { .. } => self.end_cycle("interrupted"),
            Fact::HostFailed { cause, .. } => self.fail_cycle(cause),
            Fact::HostDeferred { .. } => self.fail_cycle("deferred"),
            Fact::HostBusy { .. } => self.end_cycle("busy"),
            Fact::ReplyConflict { .. } => self.reply_conflicts.inc(),
            Fact::ReplyRejected { .. } => self.rejected_replies.inc(),
            Fact::FleetCounted { waiting, queued, busy } => {
                set(&self.waiting_nodes, *waiting);
                set(&self.work_queue_entries, *queued);
                set(&self.busy_workers, *busy);
            }
            Fact::Paused { paused } => self.paused.set(i64::from(*paused)),
            Fact::ActorEnded { actor, cause, .. } => {
                let actor = if actor.starts_with("provider_") { "provider" } else { actor };
                let row = position(&ACTORS, actor) * EXIT_CAUSES.len();
                count(&self.actor_endings, row + position(&EXIT_CAUSES, cause));
            }
            Fact::LinkChanged { connected, .. } => {
                self.link_connected.set(i64::from(*connected));
                self.link_connects.inc_by(u64::from(*connected));
            }
            Fact::ClaimContended { .. } | Fact::ClaimLost { .. } | Fact::ClaimsCounted { .. } => {
                self.claims.update(fact);
            }
            Fact::LeadershipWon
            | Fact::LeadershipLost
            | Fact::LeadershipHandedOver
            | Fact::LeaderHeard { .. }
            | Fact::Campaigned { .. }
            | Fact::CampaignDue { .. } => {
                if let Some(election) = &self.election {
                    election.update(fact);
                }
            }
            Fact::JournalCommitted { .. } | Fact::JournalFailed { .. } | Fact::JournalDurable { .. } => {
                self.keeping.update(fact);
            }
            Fact::Step(step) => self.steps.update(step),
            Fact::DiscoverySkipped | Fact::HelperSaid { .. } => {}
        }
    }

    fn fail_cycle(&self, cause: &str) {
        self.provision_errors.inc();
        self.end_cycle(cause);
    }
}

impl Maker<'_> {
    /// A counter for every actor and cause, row by row.
    fn actor_endings(&self) -> prometheus::Result<Vec<IntCounter>> {
        let opts = self.opts("quartermaster_actor_endings_total", "Ends of actors by their cause");
        let family = self.register(IntCounterVec::new(opts, &["actor", "cause"])?)?;
        let rows = ACTORS.iter().flat_map(|actor| EXIT_CAUSES.iter().map(move |cause| (actor, cause)));
        rows.map(|(actor, cause)| family.get_metric_with_label_values(&[*actor, *cause])).collect()
    }
}

fn count(series: &[IntCounter], index: usize) {
    if let Some(counter) = series.get(index) {
        counter.inc();
    }
}

pub(super) fn set(gauge: &IntGauge, value: usize) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_call_outside_the_list_makes_no_series() {
        let store = Store::new("lab", None).unwrap();
        let before = store.render().unwrap();
        store.update(&Fact::RpcFinished {
            host: "h".to_owned(),
            agent: "rpcutil",
            action: "ping",
            took: Duration::from_secs(1),
            error: None,
        });
        assert_eq!(lines(&before), lines(&store.render().unwrap()));
    }

    fn lines(text: &[u8]) -> usize {
        text.split(|byte| *byte == b'\n').count()
    }
}
