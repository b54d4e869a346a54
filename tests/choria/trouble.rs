//! What an operator can do to a provisioner, and it goes on.
use serde_json::json;

use super::endings::settings;
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
