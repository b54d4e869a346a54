//! The election that a real broker holds for provisioners.
use serde_json::json;

use super::networks::issuer_settings;
use super::support::lab::lab;
use super::support::network::{Kind, Network};
use super::support::provisioner::Provisioner;
use super::support::site::Site;

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
