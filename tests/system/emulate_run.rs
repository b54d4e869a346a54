//! What only a fleet can show of the running provisioner: shared fleets, and private keys sealed for their servers.

use std::path::Path;
use std::time::Duration;

use quartermaster::emulate::{
    FaultPlan, Fleet, FleetHandle, FleetSettings, Network, NetworkFiles, Phase, PrepareSettings, prepare,
};
use serde_json::json;

use super::support::{Broker, BrokerOptions, Daemon, append, eventually, replace};

const LIMIT: Duration = Duration::from_mins(2);

/// The files of a provisioner in the plain network of that broker; each helper run leaves a line in `runs`.
fn provisioner(broker: &Broker, dir: &Path, runs: &Path) -> NetworkFiles {
    let broker = format!("127.0.0.1:{}", broker.port());
    let settings = PrepareSettings { broker, seed: Some(9), ..PrepareSettings::default() };
    let files = prepare(dir, &settings).unwrap().plain;
    // One attempt for each server: the next one comes long after the test.
    append(&files.config, "retry:\n  first: 10m\n");
    let noted = format!("echo \"$identity\" >> {}\nprintf '%s\\n' \"{{", runs.display());
    replace(&files.helper, "printf '%s\\n' \"{", &noted);
    files
}

async fn fleet(broker: &Broker, files: &NetworkFiles, servers: usize, faults: &str) -> FleetHandle {
    let mut settings = FleetSettings::new(Network::load(&files.dir).unwrap(), broker.url(), servers);
    settings.tls = false;
    settings.restart_delay = Some(Duration::from_millis(50));
    settings.faults = FaultPlan::parse(faults).unwrap();
    Fleet::start(settings).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_provisioners_share_a_fleet_through_the_locks_of_its_servers() {
    const SERVERS: usize = 60;
    let Some(broker) = BrokerOptions::new().start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let first = provisioner(&broker, dir.path(), &runs);
    let second = provisioner(&broker, &dir.path().join("second"), &runs);
    replace(&second.choria_config, "provisioner.example.net", "provisioner2.example.net");
    let mut daemons = [Daemon::start(&first), Daemon::start(&second)];
    eventually("both are connected", || broker.connections() == 2).await;
    let fleet = fleet(&broker, &first, SERVERS, "").await;
    let stats = fleet.wait_until_all_provisioned(LIMIT).await.unwrap();
    assert_eq!((stats.configures, stats.repeated_configures), (SERVERS as u64, 0));
    assert!(stats.lock_refusals > 0, "they met at no server");
    let runs = std::fs::read_to_string(&runs).unwrap();
    assert_eq!(runs.lines().count(), SERVERS, "no helper run is wasted on a server that somebody else has");
    for daemon in &mut daemons {
        daemon.assert_alive();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_key_reaches_only_servers_with_a_usable_exchange_key() {
    let bad = ["ecdh_short", "ecdh_zero", "ecdh_not_hex"];
    let Some(broker) = BrokerOptions::new().start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let files = provisioner(&broker, dir.path(), &dir.path().join("runs"));
    let certified = rcgen::generate_simple_self_signed(vec!["node.example.net".to_owned()]).unwrap();
    let certificate = certified.cert.pem();
    let reply = json!({
        "key": certified.signing_key.serialize_pem(), "certificate": certificate, "ca": certificate,
        "ssldir": "/etc/choria/ssl",
        "configuration": {"plugin.choria.server.provision": "false", "plugin.security.provider": "file"},
    });
    std::fs::write(&files.helper, format!("#!/bin/sh\ncat >/dev/null\ncat <<'REPLY'\n{reply}\nREPLY\n"))
        .unwrap();
    let faults: Vec<String> = bad
        .iter()
        .enumerate()
        .map(|(index, fault)| format!("{fault}=@node{}.example.net", index + 1))
        .collect();
    let mut daemon = Daemon::start(&files);
    let fleet = fleet(&broker, &files, bad.len() + 5, &faults.join(",")).await;
    fleet.wait_until(LIMIT, |stats| stats.provisioned == 5).await.unwrap();
    for number in 1..=bad.len() + 5 {
        let name = format!("node{number}.example.net");
        if number <= bad.len() {
            eventually("it is refused", || {
                daemon.stderr().contains(&format!("Could not provision {name}: "))
            })
            .await;
            assert_eq!(fleet.server(&name).unwrap().record.configures, 0, "{name}");
        } else {
            // It has decrypted the key with the half it kept, and the key fits the certificate.
            let record = fleet.server(&name).unwrap().record;
            assert_eq!((record.phase, record.complaints), (Phase::Provisioned, 0), "{name}: {record:?}");
        }
    }
    daemon.assert_alive();
}
