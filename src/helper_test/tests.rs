//! Decisions, validation and redaction, as data; the verb itself is tested with processes in `tests/helper`.

use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::helper::decode_reply;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::certificate::{Misfits, examine};
use super::outcome::{Decision, Outcome, Server, Site, outcome, unknown_keys};
use super::redact::{REDACTED, redact};
use super::sample;
use crate::config::{Features, UpgradesConfig};

const NAME: &str = "web1.example.net";
const NOW: i64 = 1_800_000_000;

const PLAIN: Features = Features { pki: false, jwt: false, ed25519: false, upgrades: false };
const ISSUER: Features = Features { jwt: true, ed25519: true, ..PLAIN };
const UPGRADES: Features = Features { upgrades: true, ..PLAIN };

fn decide(reply: &Value, features: Features, repository: &str) -> Outcome {
    let upgrades = UpgradesConfig { repository: repository.to_owned(), optional: false };
    decide_at(reply, features, &upgrades)
}

fn decide_at(reply: &Value, features: Features, upgrades: &UpgradesConfig) -> Outcome {
    let identity = Identity::parse(NAME).unwrap();
    let input = sample::input(&identity, features, "t0ken", NOW).unwrap();
    let server: Server = serde_json::from_slice(&input.to_json()).unwrap();
    let reply = decode_reply(reply.to_string().as_bytes()).unwrap();
    outcome(&reply, &server, &Site { features, upgrades, token: "t0ken", now: NOW })
}

#[track_caller]
fn check(reply: &Value, features: Features, decision: Decision, requests: &[&str], faults: &[&str]) {
    let outcome = decide(reply, features, "http://releases");
    assert_eq!(outcome.decision, decision, "{outcome:?}");
    let sent: Vec<&str> = outcome.requests.iter().map(|request| request.to.as_str()).collect();
    assert_eq!(sent, requests);
    let found: Vec<&String> = outcome.errors.iter().chain(&outcome.warnings).collect();
    assert_eq!(found.len(), faults.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(faults) {
        assert!(found.contains(expected), "{found}");
    }
}

fn good() -> Value {
    json!({"configuration": {"plugin.choria.server.provision": "false"}})
}

fn with(key: &str, value: &Value) -> Value {
    let mut reply = good();
    reply[key] = value.clone();
    reply
}

const CONFIGURE: [&str; 2] = ["choria_provision#configure", "choria_provision#restart"];

#[test]
fn a_configuration_alone_is_sent_and_the_server_restarted() {
    check(&good(), PLAIN, Decision::Configure, &CONFIGURE, &[]);
}

#[test]
fn configure_has_all_ten_arguments_and_restart_its_splay() {
    let outcome = decide(&with("opa_policies", &json!({"a.rego": "x"})), PLAIN, "");
    assert_eq!(
        outcome.requests[0].arguments,
        json!({
            "action_policies": {}, "ca": "", "certificate": "", "config": "{\"plugin.choria.server.provision\":\"false\"}",
            "ecdh_public": "", "key": "", "opa_policies": {"a.rego": "x"}, "server_jwt": "", "ssldir": "", "token": "t0ken",
        })
    );
    assert_eq!(outcome.requests[1].arguments, json!({"splay": 1, "token": "t0ken"}));
}

#[test]
fn defer_sends_nothing() {
    check(&json!({"defer": true, "msg": "later"}), PLAIN, Decision::Defer, &[], &[]);
    check(&json!({"defer": true}), PLAIN, Decision::Defer, &[], &["will not say why"]);
    check(
        &json!({"defer": true, "msg": "x", "shutdown": true}),
        PLAIN,
        Decision::Defer,
        &[],
        &["`defer` counts"],
    );
}

#[test]
fn shutdown_is_one_request() {
    check(&json!({"shutdown": true}), PLAIN, Decision::Shutdown, &["choria_provision#shutdown"], &[]);
}

#[test]
fn an_empty_configuration_fails_the_server() {
    check(&json!({}), PLAIN, Decision::Fail, &CONFIGURE, &["`configuration` is empty"]);
}

#[test]
fn a_server_that_would_be_provisioned_for_ever_is_pointed_out() {
    let on = json!({"configuration": {"plugin.choria.server.provision": "true"}});
    check(&on, PLAIN, Decision::Configure, &CONFIGURE, &["is not false"]);
    check(&json!({"configuration": {"a": "b"}}), PLAIN, Decision::Configure, &CONFIGURE, &["lacks"]);
}

#[test]
fn another_identity_is_a_warning_and_in_an_issuer_network_an_error() {
    let other = json!({"configuration": {"identity": "web2", "plugin.choria.server.provision": "no"}});
    check(&other, PLAIN, Decision::Configure, &CONFIGURE, &["was found as"]);
    check(&other, ISSUER, Decision::Fail, &CONFIGURE, &["its token would not match"]);
}

#[test]
fn an_issuer_network_signs_a_token_as_ordered() {
    let claims =
        json!({"collectives": ["choria", "web"], "permissions": {"streams": true}, "exp": NOW + 86_400});
    let outcome = decide(&with("server_claims", &claims), ISSUER, "");
    assert_eq!(outcome.requests[0].arguments["server_jwt"], "(the server's token, signed)");
    let token = outcome.server_token.unwrap();
    assert_eq!(token["collectives"], json!(["choria", "web"]));
    assert_eq!(token["permissions"], json!({"streams": true}));
    assert_eq!(token["exp"], NOW + 86_400);
    assert_eq!(token["ou"], "choria");
}

#[test]
fn a_duration_in_place_of_a_date_is_pointed_out() {
    let reply = with("server_claims", &json!({"exp": 157_680_000}));
    check(&reply, ISSUER, Decision::Configure, &CONFIGURE, &["a date in the past"]);
}

#[test]
fn what_no_feature_asks_for_is_ignored_aloud() {
    check(
        &with("server_claims", &json!({})),
        PLAIN,
        Decision::Configure,
        &CONFIGURE,
        &["features.ed25519 is off"],
    );
    check(
        &with("upgrade", &json!("1.0.0")),
        PLAIN,
        Decision::Configure,
        &CONFIGURE,
        &["features.upgrades is off"],
    );
}

#[test]
fn a_key_needs_a_server_that_can_be_sent_one() {
    let reply = with("key", &json!(KeyPair::generate().unwrap().serialize_pem()));
    check(&reply, PLAIN, Decision::Fail, &CONFIGURE, &["features.jwt is off"]);
    let outcome = decide(&reply, Features { jwt: true, ..PLAIN }, "");
    assert_eq!(outcome.decision, Decision::Configure);
    assert_eq!(outcome.requests[0].arguments["key"], "(the private key, encrypted for this server)");
}

#[test]
fn a_key_that_is_none_is_refused() {
    let reply = with("key", &json!("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"));
    let outcome = decide(&reply, Features { jwt: true, ..PLAIN }, "");
    assert_eq!(outcome.decision, Decision::Fail);
    assert!(outcome.errors[0].starts_with("`key` cannot be encrypted for the server: "), "{outcome:?}");
}

#[test]
fn another_version_is_installed_first_and_the_same_one_is_not() {
    let update = ["choria_provision#release_update"];
    check(&with("upgrade", &json!("0.30.2")), UPGRADES, Decision::Upgrade, &update, &[]);
    check(&with("upgrade", &json!("0.29.4")), UPGRADES, Decision::Configure, &CONFIGURE, &[]);
}

#[test]
fn an_impossible_upgrade_fails_unless_it_is_optional() {
    let reply = with("upgrade", &json!("0.30.2"));
    let outcome = decide(&reply, UPGRADES, "");
    assert_eq!(outcome.decision, Decision::Fail);
    assert_eq!(outcome.errors, ["upgrade to 0.30.2: upgrades_repository is not configured"]);
    let optional = UpgradesConfig { repository: String::new(), optional: true };
    let outcome = decide_at(&reply, UPGRADES, &optional);
    assert_eq!((outcome.decision, outcome.warnings.len()), (Decision::Configure, 1));
}

#[test]
fn slips_in_keys_are_named() {
    let found = unknown_keys(br#"{"configuraton":{},"note":1,"defer":false}"#);
    assert_eq!(
        found,
        [
            "unknown key `configuraton` is ignored; was `configuration` meant?",
            "unknown key `note` is ignored"
        ]
    );
}

/// A CA and a certificate for `key` with this common name, valid around `NOW`.
fn certificate(name: &str, key: &KeyPair) -> (String, String) {
    let around = |params: &mut CertificateParams| {
        params.not_before = time::OffsetDateTime::from_unix_timestamp(NOW - 100).unwrap();
        params.not_after = time::OffsetDateTime::from_unix_timestamp(NOW + 100).unwrap();
    };
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(DnType::CommonName, "Test CA");
    around(&mut ca);
    let ca_key = KeyPair::generate().unwrap();
    let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
    let mut leaf = CertificateParams::default();
    leaf.distinguished_name = rcgen::DistinguishedName::new();
    leaf.distinguished_name.push(DnType::CommonName, name);
    around(&mut leaf);
    let issuer = Issuer::new(ca, ca_key);
    (leaf.signed_by(key, &issuer).unwrap().pem(), ca_pem)
}

fn request(key: &KeyPair) -> String {
    CertificateParams::default().serialize_request(key).unwrap().pem().unwrap()
}

#[test]
fn a_certificate_that_fits_is_not_commented() {
    let key = KeyPair::generate().unwrap();
    let (leaf, ca) = certificate(NAME, &key);
    assert_eq!(examine(&leaf, &ca, Some(&request(&key)), NAME, NOW), Misfits::default());
}

#[test]
fn a_certificate_that_does_not_fit_says_why() {
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let (leaf, ca) = certificate(NAME, &key);
    let (_, other_ca) = certificate(NAME, &key);
    let errors =
        |leaf: &str, ca: &str, csr: &KeyPair, now| examine(leaf, ca, Some(&request(csr)), NAME, now).errors;
    assert_eq!(errors("nonsense", &ca, &key, NOW), ["`certificate` is not a PEM certificate"]);
    assert_eq!(
        errors(&leaf, &ca, &other, NOW),
        ["`certificate` is for another key than the certificate request"]
    );
    assert!(errors(&leaf, &ca, &key, NOW + 1_000)[0].starts_with("`certificate` is valid from "));
    assert!(errors(&leaf, "", &key, NOW)[0].starts_with("`ca` holds no PEM certificate"));
    let warnings = examine(&leaf, &other_ca, None, "db1", NOW).warnings;
    assert_eq!(
        warnings,
        [
            "`certificate` is for CN=web1.example.net, not for db1",
            "`certificate` was signed by none of the certificates in `ca`"
        ]
    );
}

#[test]
fn secrets_are_taken_out_wherever_they_stand() {
    let mut shown = json!({
        "jwt": {"cht": "t0ken", "chpwd": "pw", "chu": "nats://x"},
        "key": "-----BEGIN PRIVATE KEY-----",
        "configuration": {"plugin.nats.pass": "pw", "plugin.nats.password": "pw", "x.token_file": "/etc/t", "x.secret": "s", "x.credentials": "/etc/c"},
        "config": "{\"x.password\":\"pw\",\"y\":\"1\"}",
        "policies": ["-----BEGIN RSA PRIVATE KEY-----\nMII"],
        "token": "", "server_jwt": "(the server's token, signed)",
    });
    redact(&mut shown);
    assert_eq!(shown["jwt"], json!({"cht": REDACTED, "chpwd": REDACTED, "chu": "nats://x"}));
    assert_eq!(shown["key"], REDACTED);
    assert_eq!(shown["configuration"]["plugin.nats.password"], REDACTED);
    assert_eq!(shown["configuration"]["plugin.nats.pass"], REDACTED);
    assert_eq!(shown["configuration"]["x.token_file"], "/etc/t");
    assert_eq!(shown["configuration"]["x.secret"], REDACTED);
    assert_eq!(shown["configuration"]["x.credentials"], "/etc/c");
    assert_eq!(shown["config"], format!("{{\"x.password\":\"{REDACTED}\",\"y\":\"1\"}}"));
    assert_eq!(shown["policies"][0], REDACTED);
    assert_eq!(shown["token"], "");
    assert_eq!(shown["server_jwt"], "(the server's token, signed)");
}

#[test]
fn the_sample_has_exactly_what_the_features_bring() {
    let identity = Identity::parse(NAME).unwrap();
    let make = |features| sample::input(&identity, features, "t0ken", NOW).unwrap();
    let plain = make(PLAIN);
    assert!(plain.csr.is_none() && plain.ed25519_pubkey.is_none() && plain.jwt.is_none());
    let x509 = make(Features { pki: true, jwt: true, ..PLAIN });
    let csr = x509.csr.unwrap();
    let facts = quartermaster_proto::choria::csr::examine(&csr.csr).unwrap();
    quartermaster_proto::choria::csr::judge(&facts, &identity, &[]).unwrap();
    assert!(csr.public_key.starts_with("-----BEGIN PUBLIC KEY-----\nMIIBCg"));
    assert!(x509.jwt.unwrap().get().starts_with("{\"cht\":\"t0ken\",\"chs\":false,\"chu\":"));
    assert!(
        make(ISSUER)
            .ed25519_pubkey
            .is_some_and(|key| key.public_key.len() == 64 && key.signature.len() == 128)
    );
    assert!(plain.inventory.contains("9223372036854775807"));
}
