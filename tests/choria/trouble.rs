//! What an operator can do to a provisioner, and it goes on.
use std::fs;

use serde_json::json;

use super::endings::settings;
use super::networks::issuer_settings;
use super::support::lab::lab;
use super::support::network::{Kind, Network};
use super::support::provisioner::Provisioner;
use super::support::site::Site;

#[test]
fn a_wrong_token_fails_visibly_and_the_daemon_goes_on() {
    let Some(lab) = lab() else { return };
    let name = "web1.example.net";
    let mut network = Network::prepare(lab, Kind::Plain, &[name]);
    let site = Site::open(network.path());
    site.answer(name, &json!({"configuration": settings(&network, name)}));
    network.start_server(name);

    Provisioner::configure(&network, "wrong.yaml", |yaml| yaml.replace("token: s3cret", "token: gu3ss"));
    let mut wrong = Provisioner::start_with(&network, "wrong.yaml");
    wrong.says(&[name, "Incorrect provision token supplied"]);
    wrong.shows(r#"choria_provisioner_provision_errors{site="lab"}"#, 1.0);
    assert_eq!(wrong.metric(r#"choria_provisioner_provisioned{site="lab"}"#), Some(0.0));
    assert!(!wrong.output().contains("gu3ss"), "the log holds the token");
    wrong.stop();
    assert!(site.received(name).is_empty(), "the helper was asked about a server that refused");

    let right = Provisioner::start(&network);
    network.tap().startup(name, "server", 1);
    right.stop();
}

#[test]
fn a_login_the_broker_refuses_is_tried_again_with_the_token_that_replaced_it() {
    let Some(lab) = lab() else { return };
    let name = "web1.example.net";
    let mut network = Network::prepare(lab, Kind::Issuer, &[name]);
    let site = Site::open(network.path());
    site.answer(name, &json!({"configuration": issuer_settings(&network, &network.server(name))}));
    network.start_server(name);

    let login = network.file("login.jwt");
    fs::copy(network.file("powerless.jwt"), &login).expect("a token");
    let choria = fs::read_to_string(network.file("choria.cfg")).expect("the client's file");
    fs::write(network.file("login.cfg"), choria.replace("signer.jwt", "login.jwt")).expect("a file");
    let mut provisioner = Provisioner::start_with_both(&network, "provisioner.yaml", "login.cfg");
    provisioner.says(&["uthoriz"]);
    assert!(site.received(name).is_empty(), "the helper was asked about a server nobody can reach");

    let fresh = network.file("fresh.jwt");
    fs::copy(network.file("signer.jwt"), &fresh).expect("a token");
    fs::rename(&fresh, &login).expect("a token in its place");
    network.tap().startup(name, "server", 1);
    provisioner.stop();
}
