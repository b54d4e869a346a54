//! The election that a real broker holds for provisioners.
use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::networks::issuer_settings;
use super::support::lab::lab;
use super::support::network::{Kind, Network};
use super::support::process::Process;
use super::support::provisioner::Provisioner;
use super::support::site::Site;
use super::support::wait_for;

/// The life of the key in the lab's broker, the longest wait of a candidate of the peer (30 s), and time for a busy machine.
const FAILOVER: Duration = Duration::from_secs(8 + 30 + 30);

#[test]
fn a_member_of_an_election_wins_the_real_brokers_bucket_and_then_provisions() {
    let Some(lab) = lab() else { return };
    let name = "web1.example.net";
    let mut network = Network::prepare(lab, Kind::Issuer, &[name]);
    let site = Site::open(network.path());
    site.answer(name, &json!({"configuration": issuer_settings(&network, &network.server(name))}));
    network.start_server(name);

    Provisioner::configure(&network, "elected.yaml", |yaml| yaml + "leader_election: true\n");
    let mut provisioner = Provisioner::start_with(&network, "elected.yaml");
    provisioner.says(&["Became leader after winning election"]);
    network.tap().startup(name, "server", 1);
    let lines = provisioner.output();
    let (won, worked) = (lines.find("Became leader"), lines.find("Provisioning web1"));
    assert!(won < worked, "it worked before it had won:\n{lines}");
    assert!(!lines.contains("Lost leadership"), "{lines}");
    provisioner.stop();
}

fn wait_for_word(member: &Process, word: &str) {
    let says = || member.output().lines().any(|line| line == word).then_some(());
    wait_for(&format!("a member with the peer's library to have {word}"), FAILOVER, says);
}

/// Waits until it leads; answers how long that took.
fn wait_for_lead(provisioner: &mut Provisioner) -> Duration {
    let began = Instant::now();
    provisioner.says(&["Became leader after winning election"]);
    began.elapsed()
}

#[test]
fn leadership_goes_from_the_peers_library_to_ours_and_on_to_ours_and_back() {
    let Some(lab) = lab() else { return };
    let name = "web1.example.net";
    let mut network = Network::prepare(lab, Kind::Issuer, &[name]);
    let site = Site::open(network.path());
    site.answer(name, &json!({"configuration": issuer_settings(&network, &network.server(name))}));
    let choria = fs::read_to_string(network.file("choria.cfg")).unwrap();
    for number in ["1", "2"] {
        let identity = format!("identity = ours{number}.example.net");
        fs::write(
            network.file(&format!("choria{number}.cfg")),
            choria.replace("identity = provisioner_signer", &identity),
        )
        .unwrap();
        let off = format!("monitor_port: {}", network.monitor_port());
        let port = if number == "1" { off.clone() } else { "monitor_port: 0".to_owned() };
        Provisioner::configure(&network, &format!("elected{number}.yaml"), |yaml| {
            yaml.replace(&off, &port) + "leader_election: true\n"
        });
    }

    // The peer leads; ours stands by and knows whom it stands by for.
    let peer = network.start_candidate("peer1.example.net");
    wait_for_word(&peer, "won");
    let mut first = Provisioner::start_with_both(&network, "elected1.yaml", "choria1.cfg");
    first.says(&["Heard the leader", "peer1.example.net"]);
    network.start_server(name);
    assert!(site.received(name).is_empty());
    assert!(!first.output().contains("Became leader"));

    // The peer dies; ours takes over once the key has expired, and works.
    drop(peer);
    wait_for_lead(&mut first);
    network.tap().startup(name, "server", 1);

    // Ours stops in good order, with a standby of each kind: ours does not have to wait for the key to expire.
    let mut second = Provisioner::start_with_both(&network, "elected2.yaml", "choria2.cfg");
    let peer = network.start_candidate("peer2.example.net");
    second.says(&["Heard the leader", "ours1.example.net"]);
    first.stop();
    let took = wait_for_lead(&mut second);
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(!peer.output().contains("won"));

    // Ours dies; the peer takes over once the key has expired.
    drop(second);
    wait_for_word(&peer, "won");
}
