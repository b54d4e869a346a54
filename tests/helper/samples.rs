//! Every sample helper, fed with what a real Choria Provisioner fed its helper.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use quartermaster_proto::helper::HelperReply;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::{IDENTITY, have, must, recorded, repository, run_sample};

fn sample(name: &str) -> PathBuf {
    repository().join("examples/helpers").join(name)
}

async fn reply(program: &Path, arguments: &[&str], input: Vec<u8>) -> HelperReply {
    run_sample(program, arguments, input).await.unwrap_or_else(|error| panic!("{}", error.chain())).reply
}

/// The recorded input with a change.
fn changed(network: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut input = serde_json::from_slice(&recorded(network)).unwrap();
    change(&mut input);
    serde_json::to_vec(&input).unwrap()
}

/// The recorded input with a change in the inventory, which is JSON inside a string.
fn with_inventory(network: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    changed(network, |input| {
        let mut inventory = serde_json::from_str(input["inventory"].as_str().unwrap()).unwrap();
        change(&mut inventory);
        input["inventory"] = inventory.to_string().into();
    })
}

fn certificate_authority() -> TempDir {
    let folder = TempDir::new().unwrap();
    must(Command::new(sample("make-ca.sh")).arg(folder.path()));
    folder
}

#[track_caller]
fn check_configuration(reply: &HelperReply) {
    assert_eq!(reply.configuration["identity"], IDENTITY);
    assert_eq!(reply.configuration["plugin.choria.server.provision"], "false");
    assert!(reply.configuration.contains_key("plugin.choria.middleware_hosts"));
    assert!(!reply.defer && !reply.shutdown);
}

/// The certificate is for the key of the request, for the server's name, and from the CA: OpenSSL says so.
#[track_caller]
fn check_certificate(reply: &HelperReply, ca: &Path) {
    let input: Value = serde_json::from_slice(&recorded("v1-x509")).unwrap();
    let csr = ca.join("request.pem");
    fs::write(&csr, input["csr"]["csr"].as_str().unwrap()).unwrap();
    let (certificate, sent_ca) = (ca.join("certificate.pem"), ca.join("sent-ca.pem"));
    fs::write(&certificate, &reply.certificate).unwrap();
    fs::write(&sent_ca, &reply.ca).unwrap();
    must(
        Command::new("openssl")
            .args(["verify", "-x509_strict", "-purpose", "sslclient", "-CAfile"])
            .arg(&sent_ca)
            .arg(&certificate),
    );
    must(
        Command::new("openssl")
            .args(["verify", "-verify_hostname", IDENTITY, "-CAfile"])
            .arg(&sent_ca)
            .arg(&certificate),
    );
    let key = |what: &str, file: &Path| {
        must(Command::new("openssl").args([what, "-noout", "-pubkey", "-in"]).arg(file))
    };
    assert_eq!(key("x509", &certificate), key("req", &csr));
    assert_eq!(reply.ssldir, "/etc/choria/ssl");
    assert_eq!(reply.configuration["plugin.security.file.certificate"], "/etc/choria/ssl/certificate.pem");
}

#[actix::test]
async fn shell_simple_configures_a_machine_with_a_role_and_defers_one_without() {
    let program = sample("shell/simple.sh");
    let configured = reply(&program, &[], recorded("v1-insecure")).await;
    check_configuration(&configured);
    assert_eq!(configured.configuration["collectives"], "mcollective,web");
    let roleless = String::from_utf8(recorded("v1-insecure")).unwrap().replace("role", "rack");
    let run = run_sample(&program, &[], roleless.into_bytes()).await.unwrap();
    assert!(run.reply.defer && run.reply.msg == "the machine has no role yet", "{:?}", run.reply);
    assert_eq!(run.stderr_tail, ["no role fact on web1.example.net"]);
}

#[actix::test]
async fn shell_x509_signs_the_request() {
    if !have(&["openssl"]) {
        return;
    }
    let ca = certificate_authority();
    let reply =
        reply(&sample("shell/x509.sh"), &["--ca", ca.path().to_str().unwrap()], recorded("v1-x509")).await;
    check_configuration(&reply);
    check_certificate(&reply, ca.path());
}

#[actix::test]
async fn python_x509_signs_the_request_and_sends_policies() {
    if !have(&["python3", "openssl"]) {
        return;
    }
    let ca = certificate_authority();
    let program = sample("python/x509.py");
    let arguments = ["--ca", ca.path().to_str().unwrap()];
    let good = reply(&program, &arguments, recorded("v1-x509")).await;
    check_configuration(&good);
    check_certificate(&good, ca.path());
    assert!(good.action_policies["rpcutil.policy"].starts_with("policy default deny\n"));

    let spoiled = changed("v1-x509", |input| input["csr"]["csr"] = "no request".into());
    let error = run_sample(&program, &arguments, spoiled).await.unwrap_err().chain();
    assert!(error.contains("exited with status 1"), "{error}");
}

#[actix::test]
async fn python_decide_defers_stops_and_upgrades() {
    if !have(&["python3"]) {
        return;
    }
    let folder = TempDir::new().unwrap();
    let site = folder.path().join("site.json");
    let program = sample("python/decide.py");
    let decide = async |state: Value, input: Vec<u8>| {
        fs::write(&site, json!({"version": "0.30.2", "servers": state}).to_string()).unwrap();
        reply(&program, &["--site", site.to_str().unwrap()], input).await
    };
    let upgradable = || with_inventory("v2", |inventory| inventory["upgradable"] = true.into());
    let active = json!({IDENTITY: {"state": "active"}});

    let unknown = decide(json!({}), recorded("v2")).await;
    assert!(unknown.defer && unknown.msg == "web1.example.net is not in the inventory system");
    let held = decide(json!({IDENTITY: {"state": "hold", "why": "disk swap"}}), recorded("v2")).await;
    assert!(held.defer && held.msg == "on hold: disk swap");
    let retired = decide(json!({IDENTITY: {"state": "retired"}}), recorded("v2")).await;
    assert!(retired.shutdown && !retired.defer);
    let old = decide(active.clone(), upgradable()).await;
    check_configuration(&old);
    assert_eq!(old.upgrade, "0.30.2");
    let fixed = decide(active, recorded("v2")).await;
    check_configuration(&fixed);
    assert_eq!(fixed.upgrade, "");
}

#[actix::test]
async fn ruby_issuer_orders_a_token_and_both_kinds_of_policies() {
    if !have(&["ruby"]) {
        return;
    }
    let program = sample("ruby/issuer.rb");
    let input = changed("v2", |input| input["jwt"]["extensions"] = json!({"rack": "r7"}));
    let good = reply(&program, &["--org", "choria"], input).await;
    check_configuration(&good);
    let claims = good.server_claims.unwrap();
    assert_eq!(claims.collectives, ["choria", "web"]);
    assert_eq!(claims.ou.as_deref(), Some("choria"));
    assert!(claims.exp.unwrap() > 1_700_000_000, "a date, not a duration");
    let permissions = claims.permissions.unwrap();
    assert!(permissions.submission && !permissions.streams);
    assert_eq!(good.configuration["rack"], "r7");
    assert_eq!(good.configuration["plugin.security.choria.token_file"], "/etc/choria/server.jwt");
    assert!(
        good.action_policies.contains_key("rpcutil.policy") && good.opa_policies.contains_key("rpcutil.rego")
    );

    let error = run_sample(&program, &[], recorded("v1-x509")).await.unwrap_err().chain();
    assert!(error.ends_with("is features.ed25519 on?"), "{error}");
}

#[actix::test]
async fn go_issuer_orders_a_token_defers_and_upgrades() {
    if !have(&["go"]) {
        return;
    }
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("issuer");
    // Neither a network nor version control is needed for it.
    must(
        Command::new("go")
            .args(["build", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(sample("go"))
            .env("GOFLAGS", "-mod=mod")
            .env("GOPROXY", "off"),
    );
    let old = with_inventory("v2", |inventory| inventory["upgradable"] = true.into());
    let good = reply(&program, &["--version", "0.30.2"], old).await;
    check_configuration(&good);
    let claims = good.server_claims.unwrap();
    assert_eq!(claims.collectives, ["choria", "web"]);
    assert!(claims.permissions.unwrap().submission);
    assert_eq!(good.upgrade, "0.30.2");
    assert_eq!(
        reply(&program, &["--version", "0.30.2"], recorded("v2")).await.upgrade,
        "",
        "it cannot be upgraded"
    );

    let building = with_inventory("v2", |inventory| inventory["facts"]["build"] = "running".into());
    let deferred = reply(&program, &[], building).await;
    assert!(deferred.defer && deferred.msg == "the machine is still being built");
}

#[test]
fn the_replies_shown_in_the_guide_are_accepted() {
    let text = fs::read_to_string(repository().join("docs/helpers.md")).unwrap();
    let blocks: Vec<&str> =
        text.split("```json reply\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 6, "{}", blocks.len());
    for block in blocks {
        let reply = quartermaster_proto::helper::decode_reply(block.as_bytes());
        assert!(reply.is_ok(), "{reply:?}\n{block}");
    }
}

#[test]
fn the_input_shown_in_the_guide_has_the_shape_of_a_recorded_one() {
    let text = fs::read_to_string(repository().join("docs/helpers.md")).unwrap();
    let block = text.split("```json input\n").nth(1).unwrap().split("```").next().unwrap();
    let shown: Value = serde_json::from_str(block).unwrap();
    let recorded: Value = serde_json::from_slice(&recorded("v1-x509")).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&shown), keys(&recorded));
    assert_eq!(keys(&shown["csr"]), keys(&recorded["csr"]));
    assert!(shown["inventory"].is_string());
}
