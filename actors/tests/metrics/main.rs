//! The series an operator's dashboards rely on, the lines their log searches rely on, and the keeper that renders.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod lines;
mod providers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::host::{HostError, STEPS, Step};
use quartermaster_actors::metrics::{
    ACTORS, CYCLE_ENDS, EXIT_CAUSES, Fact, Found, HelperOutcome, MetricsHandle, MetricsKeeper, RPCS, Recorder,
};
use quartermaster_actors::supervise::{ChildState, Ending, ExitCause, Force, Overseer, OverseerSettings};

/// The page for operators.
const PAGE: &str = include_str!("../../../docs/watching.md");

/// What a real peer exported after one host, `site` being `lab`.
const PEER: &str = include_str!("../../../proto/tests/vectors/choria-provisioner.metrics.txt");

const SOON: Duration = Duration::from_secs(20);

/// Every counter, gauge and summary of choria.md 12.5.
const COUNTERS: [&str; 9] = [
    "discovered",
    "event_discovered",
    "discover_cycles",
    "discovery_errors",
    "provision_errors",
    "provisioned",
    "rpc_errors",
    "helper_errors",
    "helper_shutdown_requests",
];
const GAUGES: [&str; 4] = ["paused", "busy_workers", "work_queue_entries", "waiting_nodes"];
const SUMMARIES: [&str; 2] = ["rpc_time", "helper_time"];

/// A running keeper, asked as the web server asks it.
struct Scraper {
    recorder: Recorder,
    handle: MetricsHandle,
    overseer: quartermaster_actors::supervise::OverseerHandle,
}

impl Scraper {
    async fn start() -> Self {
        Self::over(Recorder::new("lab").unwrap()).await
    }

    async fn over(recorder: Recorder) -> Self {
        let handle = MetricsHandle::new();
        let settings = OverseerSettings {
            ping_every: Duration::from_millis(10),
            stuck_after: Duration::from_secs(2),
            restarts_at_once: 1,
        };
        let keeper = MetricsKeeper::owned(&handle, &recorder);
        let overseer = Overseer::launch(settings, vec![Box::new(keeper)], Arc::new(|_| {}));
        let me = Self { recorder, handle, overseer };
        me.until_generation(1).await;
        me
    }

    async fn until_generation(&self, generation: u64) {
        let mut states = self.overseer.subscribe();
        let reached = states.wait_for(|now| {
            let keeper = &now.children[0];
            keeper.child.generation == generation && keeper.state == ChildState::Running
        });
        tokio::time::timeout(SOON, reached).await.unwrap().unwrap();
    }

    fn record(&self, facts: &[Fact]) {
        for fact in facts {
            self.recorder.record(fact.clone());
        }
    }

    async fn scrape(&self) -> Scrape {
        Scrape::parse(&String::from_utf8(self.handle.render().await.unwrap()).unwrap())
    }

    async fn end(self) {
        assert_eq!(self.overseer.stop(SOON).await, Some(vec![]));
    }
}

/// A scrape, taken apart.
#[derive(Debug, Default, PartialEq)]
struct Scrape {
    /// Type by family name.
    types: BTreeMap<String, String>,
    helps: BTreeMap<String, String>,
    /// Value by series, labels as written.
    series: BTreeMap<String, f64>,
}

impl Scrape {
    fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        for line in text.lines() {
            let (head, value) = line.rsplit_once(' ').unwrap();
            if let Some(family) = line.strip_prefix("# HELP ") {
                let (name, help) = family.split_once(' ').unwrap();
                scrape.helps.insert(name.to_owned(), help.to_owned());
            } else if let Some(family) = head.strip_prefix("# TYPE ") {
                assert!(scrape.types.insert(family.to_owned(), value.to_owned()).is_none(), "twice: {line}");
            } else {
                let value = value.parse().unwrap();
                assert!(scrape.series.insert(head.to_owned(), value).is_none(), "twice: {line}");
            }
        }
        scrape
    }

    fn value(&self, series: &str) -> f64 {
        *self.series.get(series).unwrap_or_else(|| panic!("no series {series} in {:#?}", self.series))
    }

    fn names(&self) -> BTreeSet<&String> {
        self.series.keys().collect()
    }
}

/// Everything of the peer's is there: by name, labels and type.
fn check_contract(scrape: &Scrape) {
    let peer = Scrape::parse(PEER);
    assert!(peer.series.len() > 10, "the recording is there");
    for (family, kind) in &peer.types {
        assert_eq!(scrape.types.get(family), Some(kind), "{family}");
    }
    for series in peer.series.keys() {
        scrape.value(series);
    }
    for (kind, names) in [("counter", &COUNTERS[..]), ("gauge", &GAUGES[..]), ("summary", &SUMMARIES[..])] {
        for name in names {
            let family = format!("choria_provisioner_{name}");
            assert_eq!(scrape.types.get(&family).map(String::as_str), Some(kind), "{family}");
        }
    }
    for series in scrape.series.keys().filter(|series| series.starts_with("choria_")) {
        assert!(series.contains("site=\"lab\""), "{series}");
        assert!(!series.contains("_total") && !series.contains("quantile="), "{series}");
    }
    for (family, help) in &peer.helps {
        assert_ne!(scrape.helps.get(family), Some(help), "the help texts are our own");
    }
}

fn whole_cycle(host: &str) -> Vec<Fact> {
    let host = || host.to_owned();
    let rpc = |agent, action| Fact::RpcFinished {
        host: host(),
        agent,
        action,
        took: Duration::from_millis(250),
        error: None,
    };
    vec![
        Fact::DiscoveryRan { found: 1, took: Duration::from_secs(1) },
        Fact::HostFound { host: host(), by: Found::Discovery },
        Fact::FleetCounted { waiting: 1, queued: 1, busy: 0 },
        Fact::CycleStarted { host: host(), attempt: 1, waited: Duration::from_millis(3) },
        Fact::FleetCounted { waiting: 1, queued: 0, busy: 1 },
        rpc("choria_provision", "jwt"),
        rpc("rpcutil", "inventory"),
        Fact::HelperRan {
            host: host(),
            took: Duration::from_millis(1500),
            waited: Duration::from_millis(20),
            outcome: HelperOutcome::Answered,
            error: None,
        },
        rpc("choria_provision", "configure"),
        rpc("choria_provision", "restart"),
        Fact::HostProvisioned { host: host(), took: Duration::from_secs(3) },
        Fact::FleetCounted { waiting: 0, queued: 0, busy: 0 },
    ]
}

#[actix::test]
async fn every_series_of_the_peer_is_there_before_during_and_after_the_first_host() {
    let scraper = Scraper::start().await;
    let before = scraper.scrape().await;
    check_contract(&before);
    for fact in whole_cycle("web1.example.net") {
        scraper.recorder.record(fact);
        let during = scraper.scrape().await;
        check_contract(&during);
        assert_eq!(before.names(), during.names(), "no series comes or goes");
    }
    scraper.end().await;
}

#[actix::test]
async fn the_numbers_follow_one_host_through_its_cycle_and_the_waiting_gauge_returns_to_zero() {
    let scraper = Scraper::start().await;
    let before = scraper.scrape().await;
    let zero = before.series.iter().filter(|(name, _)| name.starts_with("choria_"));
    for (series, value) in zero {
        assert_eq!(value.to_bits(), 0, "{series} starts at zero");
    }
    let facts = whole_cycle("web1.example.net");
    let (first, rest) = facts.split_at(3);
    scraper.record(first);
    let waiting = r#"choria_provisioner_waiting_nodes{site="lab"}"#;
    assert!((scraper.scrape().await.value(waiting) - 1.0).abs() < 1e-9);
    scraper.record(rest);
    let after = scraper.scrape().await;
    for (series, expected) in [
        (waiting, 0.0),
        (r#"choria_provisioner_work_queue_entries{site="lab"}"#, 0.0),
        (r#"choria_provisioner_busy_workers{site="lab"}"#, 0.0),
        (r#"choria_provisioner_discovered{site="lab"}"#, 1.0),
        (r#"choria_provisioner_event_discovered{site="lab"}"#, 0.0),
        (r#"choria_provisioner_discover_cycles{site="lab"}"#, 1.0),
        (r#"choria_provisioner_provisioned{site="lab"}"#, 1.0),
        (r#"choria_provisioner_provision_errors{site="lab"}"#, 0.0),
        (r#"choria_provisioner_rpc_time_count{rpc="choria_provision#jwt",site="lab"}"#, 1.0),
        (r#"choria_provisioner_rpc_time_sum{rpc="choria_provision#jwt",site="lab"}"#, 0.25),
        (r#"choria_provisioner_rpc_time_count{rpc="choria_provision#gencsr",site="lab"}"#, 0.0),
        (r#"choria_provisioner_rpc_errors{rpc="rpcutil#inventory",site="lab"}"#, 0.0),
        (r#"choria_provisioner_helper_time_sum{site="lab"}"#, 1.5),
        (r#"choria_provisioner_helper_time_count{site="lab"}"#, 1.0),
        (r#"quartermaster_cycle_ends_total{cause="provisioned",site="lab"}"#, 1.0),
        (r#"quartermaster_step_seconds_count{site="lab",step="helper"}"#, 1.0),
        (r#"quartermaster_queue_wait_seconds_count{site="lab"}"#, 1.0),
    ] {
        assert!((after.value(series) - expected).abs() < 1e-9, "{series}: {}", after.value(series));
    }
    scraper.end().await;
}

#[actix::test]
async fn the_series_of_an_election_are_there_for_those_who_take_part() {
    let scraper = Scraper::over(Recorder::in_election("lab", "prov1.example.net").unwrap()).await;
    let series = [
        r#"choria_election_campaigns{election="provisioner",identity="prov1.example.net",state="candidate"}"#,
        r#"choria_election_campaigns{election="provisioner",identity="prov1.example.net",state="leader"}"#,
        r#"choria_election_leader{election="provisioner",identity="prov1.example.net"}"#,
        r#"choria_election_interval_seconds{election="provisioner",identity="prov1.example.net"}"#,
    ];
    let values = |scrape: &Scrape| series.map(|series| format!("{}", scrape.value(series)));
    assert_eq!(values(&scraper.scrape().await), ["0", "0", "0", "0"]);
    scraper.record(&[
        Fact::Campaigned { leading: false },
        Fact::Campaigned { leading: true },
        Fact::Campaigned { leading: true },
        Fact::LeadershipWon,
        Fact::CampaignDue { after: Duration::from_millis(400) },
    ]);
    assert_eq!(values(&scraper.scrape().await), ["1", "2", "1", "0.4"]);
    scraper.record(&[Fact::LeadershipLost]);
    assert_eq!(values(&scraper.scrape().await), ["1", "2", "0", "0.4"]);
    scraper.end().await;

    let alone = Scraper::start().await;
    assert!(!alone.scrape().await.series.keys().any(|name| name.starts_with("choria_election")));
    alone.end().await;
}

#[actix::test]
async fn the_page_for_operators_lists_every_family_and_no_other() {
    let scraper = Scraper::over(Recorder::in_election("lab", "prov1").unwrap()).await;
    providers::called(&scraper.recorder);
    let families: BTreeSet<String> = scraper.scrape().await.types.into_keys().collect();
    let prefixes = ["choria_provisioner_", "choria_election_", "quartermaster_", "process_"];
    let listed = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next());
    let listed = listed.filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    assert_eq!(listed.map(str::to_owned).collect::<BTreeSet<_>>(), families);
    for cause in CYCLE_ENDS {
        assert!(PAGE.contains(&format!("`{cause}`")), "{cause}");
    }
    scraper.end().await;
}

/// Records one fact; exactly these series change, each by one.
async fn check_counts(fact: Fact, expected: &[&str]) {
    let scraper = Scraper::start().await;
    let ours = |name: &str| name.starts_with("choria_") || name.starts_with("quartermaster_");
    let before = scraper.scrape().await;
    scraper.recorder.record(fact);
    let after = scraper.scrape().await;
    let changed: BTreeSet<_> = after
        .series
        .iter()
        .filter(|(name, value)| ours(name) && (before.value(name) - **value).abs() > 1e-12)
        .map(|(name, value)| {
            assert!((value - before.value(name) - 1.0).abs() < 1e-9, "{name} by {value}");
            name.replace(",site=\"lab\"", "").replace("site=\"lab\"", "").replace("{}", "")
        })
        .collect();
    assert_eq!(changed, expected.iter().map(|name| (*name).to_owned()).collect());
    scraper.end().await;
}

fn host() -> String {
    "web1".to_owned()
}

#[actix::test]
async fn a_startup_event_counts_as_event_discovered() {
    let fact = Fact::HostFound { host: host(), by: Found::Event };
    check_counts(fact, &["choria_provisioner_event_discovered"]).await;
}

#[actix::test]
async fn a_failed_discovery_counts_as_a_cycle_and_an_error() {
    let fact = Fact::DiscoveryFailed { error: "no answer".to_owned() };
    let expected = ["choria_provisioner_discover_cycles", "choria_provisioner_discovery_errors"];
    check_counts(fact, &expected).await;
}

#[actix::test]
async fn a_failed_host_counts_by_its_cause() {
    let error = "refused".to_owned();
    let fact = Fact::HostFailed { host: host(), cause: "csr", error, attempt: 1, retry_in: None };
    let ends = "quartermaster_cycle_ends_total{cause=\"csr\"}";
    check_counts(fact, &["choria_provisioner_provision_errors", ends]).await;
}

#[actix::test]
async fn a_cause_outside_the_set_counts_as_other() {
    let error = "refused".to_owned();
    let fact = Fact::HostFailed { host: host(), cause: "web1", error, attempt: 1, retry_in: None };
    let ends = "quartermaster_cycle_ends_total{cause=\"other\"}";
    check_counts(fact, &["choria_provisioner_provision_errors", ends]).await;
}

#[actix::test]
async fn a_deferred_host_counts_as_an_error_as_with_the_peer() {
    let fact = Fact::HostDeferred { host: host(), msg: "later".to_owned(), retry_in: SOON };
    let ends = "quartermaster_cycle_ends_total{cause=\"deferred\"}";
    check_counts(fact, &["choria_provisioner_provision_errors", ends]).await;
}

#[actix::test]
async fn a_helpers_shutdown_request_is_counted() {
    let fact = Fact::ShutdownRequested { host: host(), msg: "not ours".into() };
    check_counts(fact, &["choria_provisioner_helper_shutdown_requests"]).await;
}

#[actix::test]
async fn a_paused_instance_says_so() {
    check_counts(Fact::Paused { paused: true }, &["choria_provisioner_paused"]).await;
}

#[actix::test]
async fn an_actors_end_counts_by_actor_and_cause() {
    let fact = Fact::ActorEnded { actor: "link", cause: "stuck", decision: String::new() };
    check_counts(fact, &["quartermaster_actor_endings_total{actor=\"link\",cause=\"stuck\"}"]).await;
}

#[actix::test]
async fn a_login_counts_and_sets_the_link_state() {
    let fact = Fact::LinkChanged { connected: true, detail: String::new() };
    check_counts(fact, &["quartermaster_link_connected", "quartermaster_link_connects_total"]).await;
}

#[actix::test]
async fn a_dropped_sighting_counts_by_lane() {
    let fact = Fact::SightingDropped { lane: "events" };
    check_counts(fact, &["quartermaster_dropped_sightings_total{lane=\"events\"}"]).await;
}

#[test]
fn the_causes_of_an_actors_end_are_those_of_supervision() {
    assert_eq!(ExitCause::ALL.map(ExitCause::as_str), EXIT_CAUSES);
}

#[test]
fn every_step_and_every_call_of_a_cycle_has_its_label() {
    for spec in STEPS {
        // What a provider's step does to a cycle has one label, whichever side of `configure` it stands on.
        let end = if matches!(spec.step, Step::Before | Step::After) { "step" } else { spec.step.name() };
        assert!(CYCLE_ENDS.contains(&end), "{end}");
        if let Some(call) = spec.call {
            assert!(RPCS.contains(&call), "{call:?}");
        }
    }
}

#[test]
fn every_failure_of_a_cycle_has_its_label() {
    let text = String::new;
    for failure in [
        HostError::Token(text()),
        HostError::KeyProof(text()),
        HostError::Csr(text()),
        HostError::Helper(text()),
        HostError::EmptyConfiguration,
        HostError::ServerToken(text()),
        HostError::SealKey(text()),
        HostError::Update { version: text(), reason: text() },
        HostError::Conflict,
    ] {
        assert!(CYCLE_ENDS.contains(&failure.cause()), "{}", failure.cause());
    }
}

#[test]
fn no_label_value_stands_twice_in_its_set() {
    for set in [&ACTORS[..], &CYCLE_ENDS[..]] {
        assert_eq!(set.iter().collect::<BTreeSet<_>>().len(), set.len());
    }
    assert_eq!(RPCS.iter().collect::<BTreeSet<_>>().len(), RPCS.len());
}

/// Resident memory of this process, in bytes.
fn resident(scrape: &Scrape) -> f64 {
    scrape.value("process_resident_memory_bytes")
}

/// In a process of its own, whose memory no other test makes grow.
#[test]
fn fifty_thousand_hosts_with_distinct_errors_add_no_series_and_no_memory() {
    const ALONE: &str = "QM_TEST_ALONE";
    const NAME: &str = "fifty_thousand_hosts_with_distinct_errors_add_no_series_and_no_memory";
    if std::env::var_os(ALONE).is_some() {
        actix::System::new().block_on(fifty_thousand_hosts());
        return;
    }
    let alone = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&alone.stdout);
    assert!(alone.status.success() && said.contains("1 passed"), "{said}");
}

async fn fifty_thousand_hosts() {
    let scraper = Scraper::start().await;
    let before = scraper.scrape().await;
    for n in 0..50_000 {
        let host = format!("host{n}.example.net");
        scraper.recorder.record(Fact::HostFound { host: host.clone(), by: Found::Event });
        scraper.recorder.record(Fact::RpcFinished {
            host: host.clone(),
            agent: "choria_provision",
            action: "jwt",
            took: Duration::from_millis(n % 7),
            error: (n % 3 == 0).then(|| format!("error {n}")),
        });
        scraper.recorder.record(Fact::ReplyRejected { host: host.clone(), reason: format!("reason {n}") });
        let error = format!("distinct error {n}");
        let retry_in = Some(SOON);
        scraper.recorder.record(Fact::HostFailed { host, cause: "jwt", error, attempt: 1, retry_in });
    }
    let after = scraper.scrape().await;
    assert_eq!(before.names(), after.names());
    assert!((after.value(r#"choria_provisioner_provision_errors{site="lab"}"#) - 50_000.0).abs() < 1e-9);
    // A few series per host would be more.
    let grown = resident(&after) - resident(&before);
    assert!(grown < 48.0 * 1024.0 * 1024.0, "grew by {grown} bytes");
    scraper.end().await;
}

/// Ends the keeper by force: the next life renders, and the numbers are still there.
async fn check_numbers_survive(ending: Ending) {
    let scraper = Scraper::start().await;
    scraper.recorder.record(Fact::HostFound { host: host(), by: Found::Event });
    scraper.handle.slot().try_send(Force(ending)).unwrap();
    scraper.until_generation(2).await;
    let after = scraper.scrape().await;
    assert!((after.value(r#"choria_provisioner_event_discovered{site="lab"}"#) - 1.0).abs() < 1e-9);
    quartermaster_actors::supervise::release_blocked_threads();
    scraper.end().await;
}

#[actix::test]
async fn the_numbers_survive_a_keeper_that_stops() {
    check_numbers_survive(Ending::Stop).await;
}

#[actix::test]
async fn the_numbers_survive_a_keeper_that_panics() {
    check_numbers_survive(Ending::Panic).await;
}

#[actix::test]
async fn the_numbers_survive_a_keeper_that_panics_in_a_future() {
    check_numbers_survive(Ending::PanicInFuture).await;
}

#[actix::test]
async fn the_numbers_survive_a_keeper_that_hangs() {
    check_numbers_survive(Ending::Hang).await;
}

#[actix::test]
async fn the_numbers_survive_a_keeper_that_blocks_its_thread() {
    check_numbers_survive(Ending::BlockThread).await;
}
