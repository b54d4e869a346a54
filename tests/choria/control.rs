//! The verbs that speak to a running instance, through a real Choria broker with the instance's own login: password, mutual
//! TLS, and token with seed.
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::networks::issuer_settings;
use super::support::lab::lab;
use super::support::network::{Kind, Network};
use super::support::provisioner::Provisioner;
use super::support::site::Site;
use super::support::{PATIENCE, wait_for};

/// Runs a verb with the two files of the instance.
fn verb(network: &Network, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    command.args(arguments).arg("--json").arg("--config").arg(network.file("provisioner.yaml"));
    command.arg("--choria-config").arg(network.file("choria.cfg")).current_dir(network.path()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", network.path()).env("USER", "root").stdin(Stdio::null());
    command.output().expect("the verb runs")
}

fn said(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Asks until the instance answers.
fn answered(network: &Network, arguments: &[&str]) -> Value {
    wait_for(&format!("an answer to {arguments:?}"), PATIENCE, || {
        let output = verb(network, arguments);
        output.status.success().then(|| said(&output)["answers"][0].clone())
    })
}

#[test]
fn an_operator_pauses_resumes_and_drains_in_an_issuer_network() {
    let Some(lab) = lab() else { return };
    let name = "web1.example.net";
    let mut network = Network::prepare(lab, Kind::Issuer, &[name]);
    let site = Site::open(network.path());
    site.answer(name, &json!({"configuration": issuer_settings(&network, &network.server(name))}));
    let mut provisioner = Provisioner::start(&network);
    let status = answered(&network, &["status"]);
    assert_eq!((&status["link"]["connected"], &status["ready"]["role"]), (&json!(true), &json!("leading")));

    let paused = answered(&network, &["pause", "--who", "ann", "--why", "the move"]);
    assert!(paused["run_state"]["says"].as_str().expect("a sentence").starts_with("paused by ann since "));
    network.start_server(name);
    network.tap().startup(name, "provision_mode_server", 1);
    assert!(!provisioner.output().contains("Provisioning web1"), "a paused instance provisions nobody");

    answered(&network, &["resume", "--who", "ann", "--why", "the move is over"]);
    network.tap().startup(name, "server", 1);
    let host = wait_for("the attempt in the history", PATIENCE, || {
        let host = answered(&network, &["host", name]);
        (host["history"][0]["ending"] == "provisioned").then_some(host)
    });
    assert!(host["history"][0]["helper"]["ending"].is_string(), "{host}");
    answered(&network, &["drain", "--all", "--who", "ann", "--why", "a new version"]);
    provisioner.ends();
}

#[test]
fn an_operator_has_control_in_an_x509_network() {
    let Some(lab) = lab() else { return };
    let network = Network::prepare(lab, Kind::X509, &["web1.example.net"]);
    let _site = Site::open(network.path());
    let mut provisioner = Provisioner::start(&network);
    assert_eq!(answered(&network, &["status"])["link"]["connected"], true);
    let paused = answered(&network, &["pause", "--who", "ann", "--why", "the move"]);
    assert_eq!(paused["run_state"]["paused"]["who"], "ann");
    answered(&network, &["drain", "--all", "--who", "ann", "--why", "a new version"]);
    provisioner.ends();
}
