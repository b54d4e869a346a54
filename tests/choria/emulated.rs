//! Emulated servers in a real issuer network: what `quartermaster emulate` plays, the real broker takes for real.
use quartermaster::emulate::{Fleet, FleetSettings, Network as EmulatedNetwork, Phase};
use quartermaster_proto::choria::token::VerifyKey;
use serde_json::json;

use super::networks::issuer_settings;
use super::support::PATIENCE;
use super::support::lab::lab;
use super::support::network::{Kind, Network};
use super::support::provisioner::Provisioner;
use super::support::site::Site;

const SERVERS: [&str; 3] = ["web1.example.net", "web2.example.net", "web3.example.net"];

#[test]
fn emulated_servers_pass_the_broker_before_and_after() {
    let Some(lab) = lab() else { return };
    let network = Network::prepare(lab, Kind::Issuer, &SERVERS);
    let site = Site::open(network.path());
    for name in SERVERS {
        site.answer(name, &json!({"configuration": issuer_settings(&network, &network.server(name))}));
    }
    let token = std::fs::read_to_string(network.server(SERVERS[0]).path("provisioning.jwt")).unwrap();
    let mut emulated = EmulatedNetwork::from_jwt(&token).unwrap();
    let issuer = std::fs::read_to_string(network.file("issuer.public")).unwrap();
    emulated.server_key = Some(VerifyKey::from_text(&issuer).unwrap());
    let mut settings =
        FleetSettings::new(emulated, format!("nats://localhost:{}", network.port()), SERVERS.len());
    settings.identity_format = "web{}.example.net".to_owned();
    settings.connections = SERVERS.len();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fleet = runtime.block_on(Fleet::start(settings)).unwrap();
    for name in SERVERS {
        network.tap().startup(name, "provision_mode_server", 1);
    }
    let provisioner = Provisioner::start(&network);
    for name in SERVERS {
        // The broker lets only a server say this whose token it accepts and which has signed its nonce.
        network.tap().startup(name, "server", 1);
    }
    runtime.block_on(fleet.wait_until_all_provisioned(PATIENCE)).unwrap();
    for name in SERVERS {
        let server = fleet.server(name).unwrap();
        assert_eq!((server.record.phase, server.record.configures), (Phase::Provisioned, 1), "{server:?}");
        // Its own look at the token agrees with the broker's.
        assert_eq!(server.record.complaints, 0, "{server:?}");
    }
    provisioner.stop();
    runtime.block_on(fleet.stop());
}
