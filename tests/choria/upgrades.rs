//! A server that the helper wants to run another version.
use serde_json::json;

use super::endings::settings;
use super::support::lab::lab;
use super::support::network::{Kind, Network};
use super::support::provisioner::Provisioner;
use super::support::repository::{Repository, VERSION};
use super::support::site::Site;

#[test]
fn a_server_is_upgraded_first_and_configured_when_it_is_back_with_the_new_version() {
    let Some(lab) = lab() else { return };
    let name = "web1.example.net";
    let mut network = Network::prepare(lab, Kind::Plain, &[name]);
    let repository = Repository::open();
    let site = Site::open(network.path());
    site.answer(name, &json!({"upgrade": VERSION, "configuration": settings(&network, name)}));
    network.start_upgradable_server(name);
    Provisioner::configure(&network, "upgrades.yaml", |yaml| {
        format!("{yaml}  upgrades: true\nupgrades_repository: {}\n", repository.url())
    });
    let mut provisioner = Provisioner::start_with(&network, "upgrades.yaml");

    let back = network.tap().startup(name, "provision_mode_server", 2);
    assert!(back.data.contains(VERSION), "the version it came back with: {}", back.data);
    let update = network.tap().request(name, "release_update", 1).json();
    assert_eq!(
        update["data"],
        json!({"repository": repository.url(), "token": "s3cret", "version": VERSION})
    );

    let full = network.tap().startup(name, "server", 1);
    assert!(full.data.contains(VERSION), "the version it serves with: {}", full.data);
    assert_eq!(network.tap().requests(name, "release_update").len(), 1, "times it was upgraded");
    assert_eq!(network.tap().requests(name, "configure").len(), 1, "times it was configured");
    assert_eq!(site.received(name).len(), 2, "calls of the helper, one a cycle");
    provisioner.shows(r#"choria_provisioner_provisioned{site="lab"}"#, 1.0);
    provisioner.stop();
}
