//! A broker that is bounced again and again under a fleet: no connection, no file, no subscription and no consumer of JetStream is
//! left behind by it.
//!
//! `QM_BOUNCE_NODES`, `QM_BOUNCE_CONNECTIONS` (which the nodes share) and `QM_BOUNCES` make it as large as the machine bears.

use std::time::Duration;

use quartermaster::emulate::FaultPlan;
use serde_json::Value;

use super::fault_stage::asked;
use super::prove_site::{PATIENCE, Site};
use super::support::{BrokerOptions, eventually_within};

/// What an instance holds at its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AtBroker {
    connections: usize,
    subscriptions: u64,
    /// Consumers of JetStream, all of them ours.
    consumers: u64,
}

fn at_broker(site: &Site) -> AtBroker {
    let connz = site.broker.monitor("/connz?subs=1&limit=100000");
    let all = connz["connections"].as_array().cloned().unwrap_or_default();
    let ours: Vec<_> = all.iter().filter(|one| one["name"] == "provisioner.example.net").collect();
    AtBroker {
        connections: ours.len(),
        subscriptions: ours.iter().filter_map(|one| one["subscriptions"].as_u64()).sum(),
        consumers: site.broker.monitor("/jsz")["consumers"].as_u64().unwrap(),
    }
}

#[tokio::test]
async fn a_broker_that_is_bounced_again_and_again_leaves_nothing_behind() {
    let nodes = asked("QM_BOUNCE_NODES").unwrap_or(1000);
    let connections = asked("QM_BOUNCE_CONNECTIONS").unwrap_or(100);
    let bounces: u64 = asked("QM_BOUNCES").unwrap_or(10);
    let patience = PATIENCE + Duration::from_millis(20) * u32::try_from(nodes).unwrap();
    let options = BrokerOptions::new().jetstream().extra("max_pending: 256MB");
    let Some(mut site) = Site::with(options) else { return };
    // Claims are watched in a bucket of JetStream, which needs a consumer for each connection.
    site.yaml("cluster: {mode: shared, ttl: 1m}");
    let mut process = site.run();
    process.ready().await;
    let fleet = site
        .servers("web", nodes, |settings| {
            settings.connections = connections;
            settings.faults = FaultPlan::parse("lock:10m=all").unwrap();
        })
        .await;
    fleet.wait_until_announced(patience).await.unwrap();
    eventually_within(patience, "the claims are watched and control is heard", || {
        let ours = at_broker(&site);
        ours.consumers > 0 && ours.subscriptions > 10
    })
    .await;
    let mut before = None;
    let mut held = Vec::new();
    for bounce in 1..=bounces {
        site.broker.restart();
        let connects = |status: Value| status["link"]["connects"].as_u64();
        eventually_within(patience, "we are back", || connects(process.status()) == Some(bounce + 1)).await;
        let all = connections as u64 + 1;
        eventually_within(patience, "the fleet is back", || {
            site.broker.monitor("/varz")["connections"].as_u64() == Some(all)
        })
        .await;
        // What is there after the first time: some of it is set up a moment after the connection.
        let first = *before.get_or_insert_with(|| settled(&site));
        eventually_within(patience, "we hold what we held", || at_broker(&site) == first).await;
        held.push((process.files(), process.resident() >> 20));
    }
    let files = || held.iter().map(|(files, _)| *files);
    println!(
        "{nodes} nodes, {bounces} bounces: {:?}, {} files, {held:?}",
        before.unwrap(),
        files().max().unwrap()
    );
    assert_eq!(before.unwrap().connections, 1);
    assert!(files().max().unwrap() - files().min().unwrap() <= 4, "{held:?}");
    assert!(process.exited().is_none());
    fleet.stop().await;
}

/// What we hold once it has not changed for a while, with all kinds of it there.
fn settled(site: &Site) -> AtBroker {
    let mut last = at_broker(site);
    let mut same = 0;
    while same < 20 {
        std::thread::sleep(Duration::from_millis(100));
        let now = at_broker(site);
        let is_whole = now.connections == 1 && now.subscriptions > 0 && now.consumers > 0;
        same = if now == last && is_whole { same + 1 } else { 0 };
        last = now;
    }
    last
}
