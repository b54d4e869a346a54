//! Cycles that do not end with a provisioned server, because the helper says so or because its answer cannot work.
use std::time::Duration;

use serde_json::{Value, json};

use super::support::PATIENCE;
use super::support::lab::lab;
use super::support::network::{Kind, Network};
use super::support::provisioner::Provisioner;
use super::support::site::Site;

/// Settings a server of a plain network needs to stay out of provisioning.
pub fn settings(network: &Network, server: &str) -> Value {
    json!({
        "identity": server,
        "plugin.choria.middleware_hosts": format!("127.0.0.1:{}", network.port()),
        "plugin.choria.server.provision": "false",
        "plugin.choria.use_srv": "false",
        "plugin.security.provider": "file",
    })
}

/// The network's own file, with retries that a test can wait for.
pub fn with_quick_retries(yaml: String) -> String {
    yaml + "retry:\n  first: 3s\n"
}

#[test]
fn a_deferred_server_stays_in_provisioning_and_is_asked_about_again() {
    let Some(lab) = lab() else { return };
    let name = "later.example.net";
    let mut network = Network::prepare(lab, Kind::Plain, &[name]);
    let site = Site::open(network.path());
    site.answer(name, &json!({"defer": true, "msg": "the rack is not cabled"}));
    network.start_server(name);
    let mut provisioner = Provisioner::start(&network);

    provisioner.says(&[name, "the rack is not cabled"]);
    assert!(network.tap().requests(name, "configure").is_empty(), "a deferred server was configured");
    assert!(!network.server(name).has("server.cfg"), "a deferred server has a configuration");

    // No sooner than an interval later, which is the longest part of this test.
    site.answer(name, &json!({"configuration": settings(&network, name)}));
    network.tap().startup(name, "server", 1);
    assert_eq!(site.received(name).len(), 2, "times the helper was asked");
    provisioner.shows(r#"choria_provisioner_provisioned{site="lab"}"#, 1.0);
    provisioner.stop();
}

#[test]
fn a_server_the_helper_wants_shut_down_ends_with_success_and_is_not_configured() {
    let Some(lab) = lab() else { return };
    let name = "gone.example.net";
    let mut network = Network::prepare(lab, Kind::Plain, &[name]);
    let site = Site::open(network.path());
    site.answer(name, &json!({"shutdown": true, "msg": "not one of ours"}));
    network.start_server(name);
    let mut provisioner = Provisioner::start(&network);

    let status = network.process(name).wait("the server to shut itself down", PATIENCE);
    assert!(status.success(), "the server ended with {status}");
    assert!(network.tap().requests(name, "configure").is_empty(), "it was configured before");
    assert!(!network.server(name).has("server.cfg"));
    // One time in ten the server ends before it answers; then this comes after the last try.
    provisioner.shows(r#"choria_provisioner_helper_shutdown_requests{site="lab"}"#, 1.0);
    provisioner.says(&[name, "not one of ours"]);
    provisioner.stop();
}

#[test]
fn a_server_that_returns_to_provisioning_is_a_failure_with_its_own_reason() {
    let Some(lab) = lab() else { return };
    let name = "again.example.net";
    let mut network = Network::prepare(lab, Kind::Plain, &[name]);
    let site = Site::open(network.path());
    // Without the setting that ends it, a server goes on provisioning after its restart.
    let mut wanting = settings(&network, name);
    wanting.as_object_mut().expect("settings").remove("plugin.choria.server.provision");
    site.answer(name, &json!({"configuration": wanting}));
    network.start_server(name);
    Provisioner::configure(&network, "quick.yaml", with_quick_retries);
    let mut provisioner = Provisioner::start_with(&network, "quick.yaml");

    network.tap().startup(name, "provision_mode_server", 2);
    provisioner.says(&[name, "provisioning mode"]);
    provisioner.shows(r#"choria_provisioner_provision_errors{site="lab"}"#, 1.0);

    site.answer(name, &json!({"configuration": settings(&network, name)}));
    network.tap().startup(name, "server", 1);
}

#[test]
fn a_restart_that_the_server_refuses_is_reported_with_the_servers_words() {
    let Some(lab) = lab() else { return };
    let name = "stuck.example.net";
    let mut network = Network::prepare(lab, Kind::Plain, &[name]);
    let site = Site::open(network.path());
    let mut wrong = settings(&network, name);
    wrong["plugin.choria.server.provision"] = json!("true");
    site.answer(name, &json!({"configuration": wrong}));
    network.start_server(name);
    Provisioner::configure(&network, "quick.yaml", with_quick_retries);
    let mut provisioner = Provisioner::start_with(&network, "quick.yaml");

    provisioner.says(&[name, "enables provisioning, restart cannot continue"]);
    provisioner.shows(r#"choria_provisioner_provision_errors{site="lab"}"#, 1.0);
    site.answer(name, &json!({"configuration": settings(&network, name)}));
    network.tap().within(Duration::from_secs(90), "the server to restart", 1, |h| {
        h.subject == "choria.lifecycle.event.startup.server" && h.data.contains(name)
    });
}
