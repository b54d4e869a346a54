//! Honest servers.

use std::time::Duration;

use quartermaster_proto::choria::ecdh::KeyPair;
use quartermaster_proto::choria::envelope::{Request, open_reply};
use quartermaster_proto::choria::filter::Filter;
use quartermaster_proto::choria::{Generation, Identity, discovery, event, pem, rpc};
use serde_json::{Value, json};

use super::bench::{Bench, NAME, plain_config};
use crate::emulate::record::Phase;
use crate::emulate::server::{Action, Note};

#[test]
fn a_start_is_announced_as_a_cloud_event_with_a_version() {
    let bench = Bench::v1();
    assert_eq!(bench.published(), ["startup.provision_mode_server"]);
    let Some(Action::Publish { payload, .. }) = bench.actions.last() else { panic!("no event") };
    assert!(payload.starts_with(br#"{"specversion":"1.0","id":""#));
    let event = event::decode(payload).unwrap();
    assert_eq!(event.identity, NAME);
    assert_eq!(event.version.as_deref(), Some("0.29.4"));
}

#[test]
fn discovery_answers_pong_and_only_to_ping() {
    for generation in [Generation::V1, Generation::V2] {
        let mut bench = Bench::new(generation, false, "");
        let mut request = bench.request("discovery", &discovery::ping_payload(generation));
        request.filter = Filter::for_agent("choria_provision");
        let frames = bench.send(&request);
        assert_eq!(open_reply(&frames[0]).unwrap().reply.payload, discovery::PONG);
        request.payload = b"ping".to_vec().into();
        assert_eq!(bench.send(&request).len(), 0);
    }
}

#[test]
fn invalid_requests_are_dropped_without_a_word() {
    type Change = fn(&mut Request);
    let cases: [(&str, Change); 6] = [
        ("another collective", |request| request.collective = "mcollective".to_owned()),
        ("another identity", |request| request.filter.identity = vec!["web2.example.net".to_owned()]),
        ("an agent it does not run", |request| request.filter.agent = vec!["scout".to_owned()]),
        ("an unknown agent", |request| request.agent = "scout".to_owned()),
        ("too old", |request| request.time = request.time.plus_seconds(-60)),
        ("from the future", |request| request.time = request.time.plus_seconds(60)),
    ];
    for (what, change) in cases {
        let mut bench = Bench::v1();
        let payload = rpc::encode_request("rpcutil", "ping", "{}").unwrap();
        let mut request = bench.request("rpcutil", &payload);
        assert_eq!(bench.send(&request).len(), 1);
        change(&mut request);
        assert_eq!(bench.send(&request).len(), 0, "{what}");
        assert!(bench.noted(Note::Dropped), "{what}");
    }
}

#[test]
fn the_other_generation_is_ignored() {
    let mut bench = Bench::new(Generation::V2, false, "");
    bench.generation = Generation::V1;
    assert_eq!(bench.call("rpcutil", "ping", &json!({})), None);
}

#[test]
fn inventory_has_the_nine_keys_in_order() {
    let mut bench = Bench::v1();
    let payload = rpc::encode_request("rpcutil", "inventory", "{}").unwrap();
    let request = bench.request("rpcutil", &payload);
    let frames = bench.send(&request);
    let text = String::from_utf8(open_reply(&frames[0]).unwrap().reply.payload).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"action":"inventory","statuscode":0,"statusmsg":"OK","data":{"agents":["choria_provision","choria_util","#,
            r#""discovery","rpcutil"],"classes":[],"collectives":["provisioning"],"data_plugins":[],"#,
            r#""facts":{"cores":2,"role":"web"},"machines":[],"main_collective":"provisioning","version":"0.29.4","#,
            r#""upgradable":true}}"#
        )
    );
}

#[test]
fn unknown_actions_and_bad_arguments_have_their_codes() {
    let mut bench = Bench::v1();
    assert_eq!(
        bench.call("rpcutil", "explode", &json!({})).unwrap(),
        (2, "Unknown action explode for agent rpcutil".to_owned(), json!({}))
    );
    assert_eq!(
        bench.provision("explode", json!({})).unwrap().1,
        "Unknown action explode for agent choria_provision"
    );
    let (code, text, _) = bench.provision("restart", json!({"splay": 1.5})).unwrap();
    assert_eq!(code, 4);
    assert!(text.starts_with("Could not parse request data for choria_provision#restart: "), "{text}");
    assert_eq!(bench.provision("jwt", json!({"token": 5})).unwrap().0, 4);
}

#[test]
fn an_undecodable_payload_has_code_four() {
    let mut bench = Bench::v1();
    let request = bench.request("rpcutil", b"no json");
    let frames = bench.send(&request);
    let reply: Value = serde_json::from_slice(&open_reply(&frames[0]).unwrap().reply.payload).unwrap();
    assert_eq!(reply["statuscode"], 4);
    assert!(reply["statusmsg"].as_str().unwrap().starts_with("Could not process request: "));
}

#[test]
fn a_wrong_token_is_refused() {
    for action in ["jwt", "gen25519", "gencsr", "configure", "restart", "shutdown", "release_update"] {
        Bench::v1().refused(action, json!({"token": "wrong"}), "Incorrect provision token supplied");
    }
}

#[test]
fn the_lock_keeps_others_out_for_two_minutes_even_with_a_wrong_token() {
    let mut bench = Bench::v1();
    bench.refused("jwt", json!({"token": "wrong"}), "Incorrect provision token supplied");
    bench.caller = "choria=other";
    bench.refused("jwt", json!({}), "Could not obtain provisioning lock");
    assert!(bench.noted(Note::LockRefused));
    bench.now = bench.now.plus_seconds(119);
    bench.refused("configure", json!({}), "Could not obtain provisioning lock");
    bench.now = bench.now.plus_seconds(2);
    bench.done("jwt", json!({}));
}

#[test]
fn the_owner_extends_the_lock_with_each_call() {
    let mut bench = Bench::v1();
    bench.done("jwt", json!({}));
    bench.now = bench.now.plus_seconds(100);
    bench.done("jwt", json!({}));
    bench.now = bench.now.plus_seconds(100);
    bench.caller = "choria=other";
    bench.refused("jwt", json!({}), "Could not obtain provisioning lock");
}

#[test]
fn restart_and_shutdown_need_no_lock() {
    let mut bench = Bench::v1();
    bench.done("jwt", json!({}));
    bench.caller = "choria=other";
    bench.done("shutdown", json!({}));
}

#[test]
fn jwt_gives_the_token_and_a_fresh_key_each_time() {
    let mut bench = Bench::v1();
    let first = bench.done("jwt", json!({}));
    let second = bench.done("jwt", json!({}));
    assert_eq!(first["jwt"], second["jwt"]);
    assert_eq!(first["ecdh_public"].as_str().unwrap().len(), 64);
    assert_ne!(first["ecdh_public"], second["ecdh_public"]);
}

#[test]
fn gen25519_signs_the_nonce_with_a_fresh_key() {
    use ed25519_dalek::{Signature, VerifyingKey};
    let mut bench = Bench::v1();
    let mut keys = Vec::new();
    for nonce in ["aa8e4ffe2376421cb8d843293f6c8197", "another"] {
        let outputs = bench.done("gen25519", json!({ "nonce": nonce }));
        assert_eq!(outputs["directory"], "/etc/choria");
        let key: [u8; 32] = hex::decode(outputs["public_key"].as_str().unwrap()).unwrap().try_into().unwrap();
        let signature: [u8; 64] =
            hex::decode(outputs["signature"].as_str().unwrap()).unwrap().try_into().unwrap();
        VerifyingKey::from_bytes(&key)
            .unwrap()
            .verify_strict(nonce.as_bytes(), &Signature::from_bytes(&signature))
            .unwrap();
        keys.push(key);
    }
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn gencsr_answers_a_request_that_proves_possession() {
    let mut bench = Bench::v1();
    let outputs = bench.done("gencsr", json!({"cn": NAME, "O": "Example", "C": "MT"}));
    assert_eq!(outputs["ssldir"], "/etc/choria/ssl");
    assert!(outputs["public_key"].as_str().unwrap().starts_with("-----BEGIN PUBLIC KEY-----\nMIIBCgKCAQEA"));
    let facts = quartermaster_proto::choria::csr::examine(outputs["csr"].as_str().unwrap()).unwrap();
    quartermaster_proto::choria::csr::judge(&facts, &Identity::parse(NAME).unwrap(), &[]).unwrap();
}

#[test]
fn configure_refuses_what_real_servers_refuse() {
    let cases = [
        (json!({}), "Did not receive any configuration to write, cannot write a empty configuration file"),
        (json!({"config": "{}", "key": "x"}), "EDCH Public Key not supplied while providing a private key"),
        (
            json!({"config": r#"{"port":1}"#}),
            "Could not decode configuration data: json: cannot unmarshal number into Go value of type string",
        ),
        (
            json!({"config": "{}", "key": "x", "ecdh_public": "y", "certificate": "c", "ca": "c", "ssldir": "/d"}),
            "TLS Setup Failed: could not decrypt private key: private key not set",
        ),
        (
            json!({"config": "{}", "action_policies": {"rpcutil.txt": "policy default allow"}}),
            "Could not save Action Policies: invalid policy file name rpcutil.txt",
        ),
        (
            json!({"config": "{}", "opa_policies": {"x.policy": "package x"}}),
            "Could not save Open Policy Agent Policies: invalid policy file name x.policy",
        ),
    ];
    for (data, expected) in cases {
        Bench::v1().refused("configure", data, expected);
    }
}

#[test]
fn a_key_without_certificate_is_ignored() {
    let mut bench = Bench::v1();
    bench.done("configure", json!({"config": plain_config().to_string(), "key": "x", "ecdh_public": "y"}));
}

#[test]
fn configure_announces_before_it_replies_and_counts_lines() {
    let mut bench = Bench::v1();
    let outputs = bench.configure(&plain_config());
    assert_eq!(outputs, json!({"message": "Wrote 4 lines to /etc/choria/server.cfg"}));
    assert_eq!(bench.published(), ["provisioned.provision_mode_server", "reply"]);
    assert!(bench.noted(Note::Configured(false)));
    bench.configure(&plain_config());
    assert!(bench.noted(Note::Configured(true)));
    assert_eq!(bench.server.record().duplicate_configures(), 1);
}

#[test]
fn a_private_key_is_decrypted_with_the_latest_pair() {
    let certified = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let (certificate, clear) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let own = KeyPair::generate([9; 32]);
    let seal = |peer: &Value| {
        let shared = own.shared_secret(peer.as_str().unwrap()).unwrap();
        pem::encrypt_private_key(&clear, &shared, [1; 16]).unwrap()
    };
    let data = |key: String| {
        json!({"config": plain_config().to_string(), "certificate": certificate, "ca": certificate,
               "ssldir": "/etc/choria/ssl", "key": key, "ecdh_public": own.public_hex()})
    };
    let mut bench = Bench::v1();
    let old = bench.done("jwt", json!({}));
    let new = bench.done("jwt", json!({}));
    let (code, text, _) = bench.provision("configure", data(seal(&old["ecdh_public"]))).unwrap();
    assert_eq!(code, 1);
    assert!(text.starts_with("TLS Setup Failed: could not decrypt private key: "), "{text}");
    bench.done("configure", data(seal(&new["ecdh_public"])));
    assert_eq!(bench.server.record().complaints, 0);
}

#[test]
fn restart_needs_a_configuration_that_ends_provisioning() {
    let mut bench = Bench::v1();
    bench.refused(
        "restart",
        json!({"splay": 1}),
        "Configuration /etc/choria/server.cfg could not be parsed, restart cannot continue: \
         open /etc/choria/server.cfg: no such file or directory",
    );
    bench.configure(&json!({"plugin.choria.server.provision": "yes"}));
    bench.refused(
        "restart",
        json!({"splay": 1}),
        "Configuration /etc/choria/server.cfg enables provisioning, restart cannot continue",
    );
}

#[test]
fn splay_one_is_two_seconds_and_none_is_up_to_eleven() {
    let mut bench = Bench::v1();
    bench.configure(&plain_config());
    let outputs = bench.done("restart", json!({"splay": 1}));
    assert_eq!(outputs["message"], "Restarting Choria Server after 2s");
    assert_eq!(bench.delay(), Some(Duration::from_secs(2)));
    assert!(bench.published().contains(&"shutdown.provision_mode_server"));
    let delays: std::collections::BTreeSet<u64> = (0..200)
        .map(|seed| {
            let mut bench = Bench::seeded(seed, Generation::V1, false, "");
            bench.configure(&plain_config());
            bench.done("restart", json!({}));
            bench.delay().unwrap().as_secs()
        })
        .collect();
    assert_eq!(delays, (2..=11).collect());
}

#[test]
fn a_restarting_server_still_answers_discovery_but_no_action() {
    let mut bench = Bench::v1();
    bench.configure(&plain_config());
    bench.done("restart", json!({"splay": 1}));
    assert_eq!(bench.provision("jwt", json!({})), None);
    assert_eq!(bench.call("rpcutil", "ping", &json!({})).unwrap().0, 0);
    let request = bench.request("discovery", &discovery::ping_payload(Generation::V1));
    assert_eq!(bench.send(&request).len(), 1);
}

#[test]
fn a_configured_server_comes_back_as_a_server() {
    let mut bench = Bench::v1();
    bench.configure(&plain_config());
    bench.done("restart", json!({"splay": 1}));
    bench.wake(2);
    assert_eq!(bench.published(), ["startup.server"]);
    assert_eq!(bench.server.record().phase, Phase::Provisioned);
    let serving = bench.actions.iter().find_map(|action| match action {
        Action::Serve(serving) => Some(serving),
        _ => None,
    });
    assert_eq!(serving.unwrap().collectives, ["mcollective", "eu"]);
    assert_eq!(bench.call("rpcutil", "ping", &json!({})), None);
}

#[test]
fn a_configuration_that_does_not_end_provisioning_brings_it_back_as_a_node() {
    let mut bench = Bench::v1();
    bench.configure(&json!({"loglevel": "info"}));
    bench.done("restart", json!({"splay": 1}));
    bench.wake(2);
    assert_eq!(bench.published(), ["startup.provision_mode_server"]);
    assert!(bench.noted(Note::Relapsed));
    bench.done("jwt", json!({}));
}

#[test]
fn an_issuer_server_without_credentials_provisions_again() {
    let mut bench = Bench::new(Generation::V2, false, "");
    bench
        .configure(&json!({"plugin.choria.server.provision": "false", "plugin.security.provider": "choria"}));
    bench.done("restart", json!({"splay": 1}));
    bench.wake(2);
    assert_eq!(bench.published(), ["startup.provision_mode_server"]);
}

#[test]
fn a_server_token_of_somebody_else_is_complained_about() {
    let mut bench = Bench::v1();
    bench.done("gen25519", json!({"nonce": "n"}));
    bench.done("configure", json!({"config": plain_config().to_string(), "server_jwt": "a.b.c"}));
    assert!(bench.noted(Note::Complaint));
    assert!(
        bench.server.record().last_error.as_deref().unwrap().starts_with("the server token does not hold: ")
    );
}

#[test]
fn an_upgrade_restarts_the_server_with_the_new_version() {
    let mut bench = Bench::v1();
    let outputs = bench.done("release_update", json!({"repository": "http://r", "version": "0.30.0"}));
    assert_eq!(outputs["message"], "Restarting Choria Server after 2s");
    assert_eq!(
        bench.published(),
        ["upgraded.provision_mode_server", "shutdown.provision_mode_server", "reply"]
    );
    bench.wake(2);
    assert_eq!(bench.published(), ["startup.provision_mode_server"]);
    assert!(!bench.noted(Note::Relapsed));
    let (_, _, inventory) = bench.call("rpcutil", "inventory", &json!({})).unwrap();
    assert_eq!(inventory["version"], "0.30.0");
}

#[test]
fn an_upgrade_needs_the_claim() {
    let mut bench = Bench::new(Generation::V1, false, "");
    bench.refused(
        "release_update",
        json!({"token": "wrong"}),
        "Version updates is not enabled in the configuration",
    );
}

#[test]
fn shutdown_is_for_good() {
    let mut bench = Bench::v1();
    let outputs = bench.done("shutdown", json!({}));
    assert!(outputs["message"].as_str().unwrap().starts_with("Shutting Choria Server down after "));
    assert!(bench.delay().unwrap() < Duration::from_secs(10));
    bench.wake(9);
    assert_eq!(bench.server.record().phase, Phase::Stopped);
    assert_eq!(bench.call("rpcutil", "ping", &json!({})), None);
}

#[test]
fn reprovision_is_refused_in_provisioning_mode() {
    Bench::v1().refused(
        "reprovision",
        json!({}),
        "Server is already in provisioning mode, cannot enable provisioning mode again",
    );
}
