//! Emulated servers over a real broker: found, provisioned, back as ordinary servers, faithful over reconnects.

use std::time::Duration;

use quartermaster::emulate::{FaultPlan, Fleet, FleetSettings, Network, Phase};
use quartermaster_proto::choria::Generation;
use serde_json::{Value, json};

use super::emulate_client::{PATIENCE, Scripted};
use super::support::{Authority, BrokerOptions, eventually};

fn network(generation: Generation) -> Network {
    Network::generate(7, "s3cret", generation, false).unwrap()
}

fn plain() -> Value {
    json!({"plugin.choria.server.provision": "false", "plugin.security.provider": "file", "collectives": "mcollective"})
}

fn names(count: usize) -> Vec<String> {
    let mut names: Vec<String> = (1..=count).map(|number| format!("node{number}.example.net")).collect();
    names.sort();
    names
}

async fn provisions(generation: Generation, servers: usize, connections: usize, tls: bool) {
    let authority = Authority::new("emulate");
    let Some(broker) = BrokerOptions::new().tls(&authority).allow_plain().start() else { return };
    let mut client = Scripted::connect(&broker.url(), generation).await;
    let mut settings = FleetSettings::new(network(generation), broker.url(), servers);
    settings.connections = connections;
    settings.tls = tls;
    settings.restart_delay = Some(Duration::from_millis(20));
    let fleet = Fleet::start(settings).await.unwrap();
    assert_eq!(client.announced(servers).await, names(servers));
    // One connection is the client's.
    assert_eq!(broker.connections(), connections as u64 + 1);
    assert_eq!(client.discover(servers).await, names(servers));
    for name in names(servers) {
        client.provision(&name, &plain()).await;
    }
    let stats = fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert_eq!(
        (stats.configures, stats.repeated_configures, stats.restarts),
        (servers as u64, 0, servers as u64)
    );
    assert_eq!(stats.complaints, 0);
    let mut last = Vec::new();
    for _ in 0..servers * 3 {
        last.push(client.event().await);
    }
    for subject in ["provisioned.provision_mode_server", "shutdown.provision_mode_server", "startup.server"] {
        let mut of_kind: Vec<_> =
            last.iter().filter(|(found, _)| found == subject).map(|(_, identity)| identity.clone()).collect();
        of_kind.sort();
        assert_eq!(of_kind, names(servers), "{subject}");
    }
    assert_eq!(fleet.stats().connected, connections as u64);
    let one = fleet.server("node1.example.net").unwrap();
    assert_eq!(
        (one.record.phase, one.record.configures, one.duplicate_configures),
        (Phase::Provisioned, 1, 0)
    );
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_on_one_clear_text_connection_is_provisioned_with_protocol_1() {
    provisions(Generation::V1, 20, 1, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_on_one_tls_connection_is_provisioned_with_protocol_2() {
    provisions(Generation::V2, 20, 1, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_on_three_connections_is_provisioned() {
    provisions(Generation::V1, 20, 3, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_with_a_connection_each_are_provisioned() {
    provisions(Generation::V1, 5, 5, true).await;
}

/// How many of a hundred servers, more than connect at once, are connected when the first one announces itself.
async fn connected_at_the_first_announcement(together: bool) -> Option<u64> {
    let authority = Authority::new("emulate");
    let broker = BrokerOptions::new().tls(&authority).allow_plain().start()?;
    let mut client = Scripted::connect(&broker.url(), Generation::V1).await;
    let mut settings = FleetSettings::new(network(Generation::V1), broker.url(), 100);
    settings.connections = 100;
    settings.together = together;
    let fleet = Fleet::start(settings).await.unwrap();
    let connected = fleet.wait_until(PATIENCE, |stats| stats.provisioning > 0).await.unwrap().connects;
    client.event().await;
    fleet.wait_until_announced(PATIENCE).await.unwrap();
    fleet.stop().await;
    Some(connected)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_that_comes_together_announces_nobody_before_all_are_connected() {
    if let Some(connected) = connected_at_the_first_announcement(true).await {
        assert_eq!(connected, 100);
    }
    if let Some(connected) = connected_at_the_first_announcement(false).await {
        assert!(connected < 100, "{connected}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_its_own_subscribes_as_a_real_one_and_logs_in_with_its_token() {
    let network = network(Generation::V2);
    let authorization = format!("authorization {{ token: \"{}\" }}", network.jwt);
    let authority = Authority::new("emulate");
    let Some(broker) = BrokerOptions::new().tls(&authority).extra(&authorization).start() else { return };
    let fleet = Fleet::start(FleetSettings::new(network, broker.url(), 1)).await.unwrap();
    eventually("it has subscribed", || broker.subscriptions() == 5).await;
    let connz = broker.monitor("/connz?subs=1");
    let connection = &connz["connections"][0];
    assert_eq!(connection["name"], "node1.example.net");
    let mut subjects: Vec<&str> =
        connection["subscriptions_list"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    subjects.sort_unstable();
    assert_eq!(
        subjects,
        [
            "provisioning.broadcast.agent.choria_provision",
            "provisioning.broadcast.agent.choria_util",
            "provisioning.broadcast.agent.discovery",
            "provisioning.broadcast.agent.rpcutil",
            "provisioning.node.node1.example.net",
        ]
    );
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconnect_is_not_announced() {
    let Some(mut broker) = BrokerOptions::new().start() else { return };
    let mut settings = FleetSettings::new(network(Generation::V1), broker.url(), 3);
    settings.tls = false;
    let mut first = Scripted::connect(&broker.url(), Generation::V1).await;
    let fleet = Fleet::start(settings).await.unwrap();
    assert_eq!(first.announced(3).await, names(3));
    let connects = fleet.wait_until(PATIENCE, |stats| stats.connects > 0).await.unwrap().connects;
    broker.restart();
    let mut client = Scripted::connect(&broker.url(), Generation::V1).await;
    fleet.wait_until(PATIENCE, |stats| stats.connects > connects).await.unwrap();
    eventually("the subscriptions are there again", || broker.subscriptions() >= 5 + 2).await;
    assert_eq!(client.discover(3).await, names(3));
    client.provision("node1.example.net", &plain()).await;
    // The first event since the restart is that of the configuration: nobody announced a start.
    assert_eq!(
        client.event().await,
        ("provisioned.provision_mode_server".to_owned(), "node1.example.net".to_owned())
    );
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_hostile_server_among_good_ones_is_alone_in_it() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let mut client = Scripted::connect(&broker.url(), Generation::V1).await;
    let mut settings = FleetSettings::new(network(Generation::V1), broker.url(), 3);
    settings.tls = false;
    settings.faults =
        FaultPlan::parse("public_key_short=@node2.example.net,facts:2MiB=@node3.example.net").unwrap();
    let fleet = Fleet::start(settings).await.unwrap();
    client.announced(3).await;
    for (name, length) in [("node1.example.net", 64), ("node2.example.net", 62)] {
        let reply = client.call(name, "choria_provision", "gen25519", json!({"nonce": "n"})).await;
        assert_eq!(reply["data"]["public_key"].as_str().unwrap().len(), length, "{name}");
    }
    // Facts beyond the broker's limit cannot be sent at all, as by a real server.
    tokio::select! {
        reply = client.call("node3.example.net", "rpcutil", "inventory", json!({})) => panic!("{reply}"),
        () = eventually("it is counted", || fleet.stats().unsendable == 1) => (),
    }
    assert_eq!(fleet.server("node2.example.net").unwrap().faults, ["Malformed(PublicKeyShort)"]);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_vanishes_leaves_the_broker() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let mut settings = FleetSettings::new(network(Generation::V1), broker.url(), 2);
    settings.tls = false;
    settings.connections = 2;
    settings.faults = FaultPlan::parse("vanish=@node2.example.net").unwrap();
    let fleet = Fleet::start(settings).await.unwrap();
    fleet.wait_until(PATIENCE, |stats| stats.vanished == 1 && stats.provisioning == 1).await.unwrap();
    eventually("its connection is gone", || broker.connections() == 1).await;
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_names_every_server() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let mut client = Scripted::connect(&broker.url(), Generation::V1).await;
    let mut settings = FleetSettings::new(network(Generation::V1), broker.url(), 2);
    settings.tls = false;
    settings.restart_delay = Some(Duration::ZERO);
    let fleet = Fleet::start(settings).await.unwrap();
    client.announced(2).await;
    client.provision("node2.example.net", &plain()).await;
    fleet.wait_until(PATIENCE, |stats| stats.provisioned == 1).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.json");
    fleet.write_report(&file).unwrap();
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["totals"]["provisioned"], 1);
    assert_eq!(report["duplicate_configures"], 0);
    assert_eq!(report["servers"]["node1.example.net"]["phase"], "provisioning");
    assert_eq!(report["servers"]["node2.example.net"]["phase"], "provisioned");
    assert_eq!(report["servers"]["node2.example.net"]["config_digest"].as_str().unwrap().len(), 64);
    assert!(report["median_cycle_ms"].is_u64());
    fleet.stop().await;
}
