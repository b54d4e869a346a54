//! What an operator watches, on a running provisioner with a fleet: every series before, during and after; a waiting gauge
//! that returns to zero; health and readiness while the broker is away.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quartermaster::emulate::{
    FaultPlan, Fleet, FleetHandle, FleetSettings, Network, NetworkFiles, PrepareSettings, prepare,
};
use rustix::process::Signal;
use serde_json::Value;

use super::support::{Broker, BrokerOptions, Daemon, append, eventually, replace};

/// What a real peer exported, `site` being `lab`.
const PEER: &str = include_str!("../../proto/tests/vectors/choria-provisioner.metrics.txt");

/// One of them is hostile.
const SERVERS: usize = 30;
/// The others.
const GOOD: f64 = 29.0;

/// A plain network with a provisioner that listens and sees nobody yet.
struct Watched {
    broker: Broker,
    daemon: Daemon,
    files: NetworkFiles,
    _dir: tempfile::TempDir,
}

impl Watched {
    async fn start() -> Option<Self> {
        let broker = BrokerOptions::new().start()?;
        let dir = tempfile::tempdir().unwrap();
        let settings = PrepareSettings {
            broker: format!("127.0.0.1:{}", broker.port()),
            seed: Some(9),
            ..PrepareSettings::default()
        };
        let files = prepare(dir.path(), &settings).unwrap().plain;
        replace(&files.config, "site: emulated", "site: lab");
        append(&files.config, "listen: 127.0.0.1:0\nretry:\n  first: 10m\n");
        let mut daemon = Daemon::start(&files);
        daemon.listens().await;
        Some(Self { broker, daemon, files, _dir: dir })
    }

    async fn fleet(&self, servers: usize) -> FleetHandle {
        let network = Network::load(&self.files.dir).unwrap();
        let mut settings = FleetSettings::new(network, self.broker.url(), servers);
        settings.tls = false;
        settings.restart_delay = Some(Duration::from_millis(50));
        settings.faults = FaultPlan::parse("jwt_alg_none=@node7.example.net").unwrap();
        Fleet::start(settings).await.unwrap()
    }

    /// Value by series.
    fn scrape(&self) -> BTreeMap<String, f64> {
        let (status, text) = self.daemon.get("/metrics");
        assert_eq!(status, 200);
        series(&text)
    }

    /// Waits for this value of a series of the peer's.
    async fn until(&mut self, name: &str, expected: f64) {
        let series = format!("choria_provisioner_{name}{{site=\"lab\"}}");
        eventually(&format!("{series} is {expected}"), || {
            self.daemon.assert_alive();
            (self.scrape()[&series] - expected).abs() < 1e-9
        })
        .await;
    }

    /// The status of a page, and its reasons.
    fn page(&self, path: &str) -> (u16, Vec<String>) {
        let (status, body) = self.daemon.get(path);
        let page: Value = serde_json::from_str(&body).unwrap();
        let reasons = page["reasons"].as_array().unwrap();
        (status, reasons.iter().map(|reason| reason.as_str().unwrap().to_owned()).collect())
    }
}

fn series(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let values = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    values.collect()
}

fn names(scrape: &BTreeMap<String, f64>) -> BTreeSet<&String> {
    scrape.keys().collect()
}

#[actix::test]
async fn every_series_is_there_from_the_first_scrape_and_none_is_added_by_a_fleet() {
    let Some(mut watched) = Watched::start().await else { return };
    let before = watched.scrape();
    for name in series(PEER).keys() {
        assert!(before.contains_key(name), "{name}");
    }
    let fleet = watched.fleet(SERVERS).await;
    watched.until("provisioned", GOOD).await;
    watched.until("provision_errors", 1.0).await;
    let after = watched.scrape();
    assert_eq!(names(&before), names(&after));
    let rpc = |action: &str| format!("choria_provisioner_rpc_time_count{{rpc=\"{action}\",site=\"lab\"}}");
    assert!((after[&rpc("choria_provision#configure")] - GOOD).abs() < 1e-9);
    assert!((after[&rpc("choria_provision#gencsr")]).abs() < 1e-9, "nobody asks for signing requests here");
    assert!((after["choria_provisioner_helper_time_count{site=\"lab\"}"] - GOOD).abs() < 1e-9);
    assert!(after["choria_provisioner_helper_time_sum{site=\"lab\"}"] > 0.0);
    watched.until("busy_workers", 0.0).await;
    watched.until("work_queue_entries", 0.0).await;
    fleet.stop().await;
    watched.daemon.signal(Signal::TERM);
    assert_eq!(watched.daemon.ended().await.code(), Some(0));
}

#[actix::test]
async fn the_waiting_gauge_returns_to_zero_when_everybody_is_provisioned() {
    let Some(mut watched) = Watched::start().await else { return };
    let fleet = watched.fleet(5).await;
    watched.until("provisioned", 5.0).await;
    watched.until("waiting_nodes", 0.0).await;
    fleet.stop().await;
}

#[actix::test]
async fn a_broker_that_is_away_shows_in_readiness_and_not_in_health() {
    let Some(mut watched) = Watched::start().await else { return };
    eventually("it is ready", || watched.page("/readyz") == (200, vec![])).await;
    watched.broker.stop();
    eventually("it is not ready", || watched.page("/readyz").0 == 503).await;
    let (_, reasons) = watched.page("/readyz");
    assert!(reasons[0].starts_with("not connected to a broker"), "{reasons:?}");
    assert_eq!(watched.page("/healthz"), (200, vec![]));
    watched.broker.restart();
    eventually("it is ready again", || watched.page("/readyz") == (200, vec![])).await;
    let (_, status) = watched.daemon.get("/api/v1/status");
    let status: Value = serde_json::from_str(&status).unwrap();
    let actors = status["actors"].as_array().unwrap();
    assert!(actors.len() >= 7, "{actors:?}");
    assert!(actors.iter().all(|actor| actor["state"] == "running" && actor["lives"] == 1), "{actors:?}");
}
