//! What a cycle asks for, in order, and how it ends. A transcript lists what the plan asked for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::world::{NONCE, Says, World, all, cause, error, pki, plain, world};
use crate::host::messages::Ending;
use crate::host::plan::Plan;
use crate::host::steps::{Features, STEPS, Step};
use crate::host::terms::{At, Effect, HelperFailure, Input, PlanSettings, SiteSteps};

#[test]
fn the_whole_cycle_of_an_issuer_network_runs_in_order() {
    let story = world(all()).play();
    assert_eq!(story.ending, Ending::Provisioned);
    assert_eq!(
        story.asked,
        [
            "choria_provision#jwt",
            "verify",
            "choria_provision#gen25519",
            "rpcutil#inventory",
            "helper",
            "issue for web1.example.net in mcollective",
            "choria_provision#configure",
            "choria_provision#restart",
        ]
    );
}

#[test]
fn the_cycle_of_a_pki_network_fetches_a_csr_and_seals_the_key() {
    let story = world(pki())
        .helper(r#"{"key":"-----BEGIN RSA PRIVATE KEY-----","certificate":"c","ca":"a","configuration":{"a":"b"}}"#)
        .play();
    assert_eq!(story.ending, Ending::Provisioned);
    assert_eq!(
        story.asked,
        [
            "choria_provision#jwt",
            "verify",
            "rpcutil#inventory",
            "choria_provision#gencsr",
            "helper",
            "seal for c25f",
            "choria_provision#configure",
            "choria_provision#restart",
        ]
    );
    let sent = &story.data[&Step::Configure];
    assert_eq!(sent["key"], "sealed");
    assert_eq!(sent["ecdh_public"], "ours");
    assert_eq!(sent["ssldir"], "/etc/choria/ssl");
}

#[test]
fn without_features_only_inventory_helper_configure_and_restart_remain() {
    let story = world(plain()).play();
    assert_eq!(
        story.asked,
        ["rpcutil#inventory", "helper", "choria_provision#configure", "choria_provision#restart"]
    );
}

#[test]
fn configure_always_carries_all_ten_keys_and_the_config_as_text() {
    let story = world(plain()).play();
    let sent = story.data[&Step::Configure].as_object().unwrap();
    let keys: Vec<_> = sent.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "action_policies",
            "ca",
            "certificate",
            "config",
            "ecdh_public",
            "key",
            "opa_policies",
            "server_jwt",
            "ssldir",
            "token"
        ]
    );
    let config: Value = serde_json::from_str(sent["config"].as_str().unwrap()).unwrap();
    assert_eq!(config["plugin.choria.server.provision"], "false");
    assert_eq!(sent["token"], "s3cret");
}

#[test]
fn restart_asks_for_a_splay_of_one_second() {
    assert_eq!(world(plain()).play().data[&Step::Restart], json!({"splay": 1, "token": "s3cret"}));
}

#[test]
fn the_helper_gets_exactly_the_peers_five_keys() {
    let story = world(all()).play();
    let input = story.data[&Step::Helper].as_object().unwrap();
    let mut keys: Vec<_> = input.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["csr", "ed25519_pubkey", "identity", "inventory", "jwt"]);
    assert!(input["csr"].is_null() && input["jwt"].is_object() && input["inventory"].is_string());
}

#[test]
fn large_integers_of_facts_reach_the_helper_digit_for_digit() {
    let text =
        r#"{"facts":{"serial":123456789012345678901234567890,"f":1.10},"version":"0.1","upgradable":false}"#;
    let raw: Box<serde_json::value::RawValue> = serde_json::from_str(text).unwrap();
    let reply = format!(r#"{{"action":"inventory","statuscode":0,"statusmsg":"OK","data":{raw}}}"#);
    let settings = PlanSettings {
        steps: SiteSteps::default(),
        features: plain(),
        token: SecretString::from("s3cret"),
        deny: vec![],
        upgrades_repository: None,
        upgrades_optional: false,
    };
    let identity = Identity::parse("web1.example.net").unwrap();
    let mut plan = Plan::new(Arc::new(settings), identity, NONCE.to_owned(), None);
    let at =
        At { now: Instant::now(), luck: 0.5, paused: false, barred: false, conflict: false, late_keys: 0 };
    plan.handle(Input::Begin, at);
    let Effect::RunHelper { input } = plan.handle(Input::Replied(Ok(reply.into())), at) else {
        panic!("no helper")
    };
    let input = String::from_utf8(input).unwrap();
    assert!(input.contains("123456789012345678901234567890") && input.contains("1.10"), "{input}");
}

#[test]
fn every_step_that_fails_for_good_is_the_cause_and_is_tried_as_often_as_the_peer_does() {
    for (step, tries) in
        [(Step::Jwt, 3), (Step::Gen25519, 5), (Step::Inventory, 5), (Step::Configure, 5), (Step::Restart, 3)]
    {
        let story = world(all()).on(step, vec![Says::Nothing; 9]).play();
        assert_eq!(cause(&story), step.name());
        let (agent, action) = step.spec().unwrap().call.unwrap();
        let asked = story.asked.iter().filter(|asked| **asked == format!("{agent}#{action}")).count();
        assert_eq!(asked, tries, "{step:?}");
        assert!(error(&story).contains("no reply within 22s"), "{}", error(&story));
    }
    let story = world(pki()).on(Step::Gencsr, vec![Says::Nothing; 9]).play();
    assert_eq!(story.asked.iter().filter(|asked| *asked == "choria_provision#gencsr").count(), 1);
    let story =
        world(plain()).helper(r#"{"shutdown":true}"#).on(Step::Shutdown, vec![Says::Nothing; 9]).play();
    assert_eq!(story.asked.iter().filter(|asked| *asked == "choria_provision#shutdown").count(), 3);
    assert_eq!(story.ending, Ending::ShutDown { msg: String::new() });
    let refused = vec![Says::Refuses("something broke"); 9];
    let story = world(plain()).helper(r#"{"shutdown":true}"#).on(Step::Shutdown, refused).play();
    assert_eq!(cause(&story), "shutdown");
}

#[test]
fn every_step_that_fails_once_is_made_good_by_its_second_try() {
    for step in [Step::Jwt, Step::Gen25519, Step::Inventory, Step::Configure, Step::Restart] {
        for says in [Says::Nothing, Says::Garbage, Says::Refuses("something broke")] {
            let story = world(all()).on(step, vec![says]).play();
            assert_eq!(story.ending, Ending::Provisioned, "{step:?}");
            assert_eq!(story.waits, [Duration::from_millis(750)], "{step:?}");
        }
    }
}

#[test]
fn a_payload_over_the_brokers_limit_is_not_tried_again() {
    let story = world(plain()).on(Step::Configure, [Says::TooLarge]).play();
    assert_eq!(cause(&story), "configure");
    assert!(error(&story).contains("after 1 tries: 2 MiB over the limit"), "{}", error(&story));
}

#[test]
fn a_wrong_token_is_sent_once_only() {
    let story = world(all()).on(Step::Jwt, [Says::Refuses("Incorrect provision token supplied")]).play();
    assert_eq!(cause(&story), "jwt");
    assert_eq!(story.asked, ["choria_provision#jwt"]);
}

#[test]
fn a_held_lock_means_busy_before_a_helper_has_run() {
    let story = world(all()).on(Step::Jwt, [Says::Refuses("Could not obtain provisioning lock")]).play();
    assert_eq!(story.ending, Ending::Busy { kept: None });
    assert!(!story.asked.contains(&"helper".to_owned()));
}

#[test]
fn a_lock_met_at_configure_keeps_the_decision_so_that_no_helper_run_is_wasted_twice() {
    let story =
        world(plain()).on(Step::Configure, [Says::Refuses("Could not obtain provisioning lock")]).play();
    let Ending::Busy { kept: Some(kept) } = story.ending else { panic!("{:?}", story.ending) };
    let mut next = world(plain());
    next.kept = Some(kept);
    let story = next.play();
    assert_eq!(story.asked, ["rpcutil#inventory", "choria_provision#configure", "choria_provision#restart"]);
}

#[test]
fn a_decision_about_a_key_dies_with_the_key() {
    let story =
        world(pki()).on(Step::Configure, [Says::Refuses("Could not obtain provisioning lock")]).play();
    assert_eq!(story.ending, Ending::Busy { kept: None });
}

#[test]
fn a_host_that_is_an_ordinary_server_already_is_left_alone() {
    let text = "Cannot reconfigure a server that is not in provisioning mode";
    assert_eq!(world(all()).on(Step::Jwt, [Says::Refuses(text)]).play().ending, Ending::AlreadyServing);
}

#[test]
fn defer_comes_first_and_carries_its_words_without_control_characters() {
    let story = world(plain()).helper(r#"{"defer":true,"shutdown":true,"msg":"not\nyet"}"#).play();
    let Ending::Deferred { msg } = &story.ending else { panic!("{:?}", story.ending) };
    assert!(msg.starts_with("not") && !msg.contains('\n'), "{msg}");
}

#[test]
fn shutdown_stops_the_host_and_nothing_else() {
    let story = world(all()).helper(r#"{"shutdown":true,"msg":"not\nours"}"#).play();
    assert_eq!(story.ending, Ending::ShutDown { msg: "not\\nours".into() });
    assert_eq!(story.asked.last().unwrap(), "choria_provision#shutdown");
    assert!(!story.asked.iter().any(|asked| asked.contains("configure") || asked.contains("issue")));
}

#[test]
fn an_empty_configuration_is_an_error() {
    assert_eq!(cause(&world(plain()).helper("{}").play()), "empty_configuration");
}

#[test]
fn a_failed_helper_fails_the_cycle_and_a_paused_one_does_not() {
    let mut failing = world(plain());
    failing.helper = Err(HelperFailure { reason: "exit 1".into(), paused: false });
    assert_eq!(cause(&failing.play()), "helper");
    let mut paused = world(plain());
    paused.helper = Err(HelperFailure { reason: "paused".into(), paused: true });
    assert_eq!(paused.play().ending, Ending::Interrupted);
}

#[test]
fn a_bad_provisioning_token_ends_the_cycle_before_anything_else_is_asked() {
    let mut world = world(all());
    world.token_ok = false;
    let story = world.play();
    assert_eq!(cause(&story), "token");
    assert_eq!(story.asked, ["choria_provision#jwt", "verify"]);
}

#[test]
fn a_key_that_cannot_be_proven_ends_the_cycle() {
    let good = World::usual(Step::Gen25519);
    let short = json!({"public_key": "abcd", "directory": "/", "signature": good["signature"]});
    let other = json!({"public_key": "00".repeat(32), "directory": "/", "signature": good["signature"]});
    for bad in [short, other] {
        assert_eq!(cause(&world(all()).on(Step::Gen25519, [Says::Data(bad)]).play()), "key_proof");
    }
}

#[test]
fn a_csr_for_somebody_else_or_none_at_all_never_reaches_the_helper() {
    for csr in ["", "not pem"] {
        let reply = json!({"csr": csr, "public_key": "", "ssldir": "/ssl"});
        let story = world(pki()).on(Step::Gencsr, [Says::Data(reply)]).play();
        assert_eq!(cause(&story), "csr");
        assert!(!story.asked.contains(&"helper".to_owned()));
    }
}

#[test]
fn wrong_types_and_missing_outputs_fail_with_their_key() {
    for (step, data, key) in [
        (Step::Jwt, json!({"jwt": 5}), "jwt"),
        (Step::Gen25519, json!({"public_key": ["x"]}), "public_key"),
        (Step::Inventory, json!({"version": {}, "facts": {}}), "version"),
        (Step::Configure, json!({}), "message"),
        (Step::Restart, json!({"message": 1}), "message"),
    ] {
        let story = world(all()).on(step, vec![Says::Data(data); 9]).play();
        assert_eq!(cause(&story), step.name());
        assert!(error(&story).contains(&format!("`{key}`")), "{}", error(&story));
    }
}

#[test]
fn a_pause_ends_the_cycle_at_every_step_but_never_between_configure_and_restart() {
    for step in [Step::Jwt, Step::Gen25519, Step::Inventory, Step::Helper, Step::ServerToken] {
        let story = World { pause_at: Some(step), ..world(all()) }.play();
        assert_eq!(story.ending, Ending::Interrupted, "{step:?}");
        assert!(!story.asked.contains(&"choria_provision#configure".to_owned()), "{step:?}");
    }
    for step in [Step::Configure, Step::Restart] {
        let story = World { pause_at: Some(step), ..world(all()) }.play();
        assert_eq!(story.ending, Ending::Provisioned, "{step:?}");
    }
}

#[test]
fn a_cycle_whose_right_has_lapsed_sends_nothing_more_not_even_the_restart() {
    for step in [Step::Jwt, Step::Gen25519, Step::Inventory, Step::Helper, Step::ServerToken] {
        let story = World { bar_at: Some(step), ..world(all()) }.play();
        assert_eq!(story.ending, Ending::Interrupted, "{step:?}");
    }
    let story = World { bar_at: Some(Step::Configure), ..world(all()) }.play();
    assert_eq!(cause(&story), "restart", "the host is known to need a look");
    assert!(!story.asked.contains(&"choria_provision#restart".to_owned()));
}

#[test]
fn a_lost_configure_reply_is_followed_up_even_while_paused() {
    let mut world = world(plain()).on(Step::Configure, [Says::Nothing]);
    world.pause_at = Some(Step::Configure);
    let story = world.play();
    assert_eq!(story.ending, Ending::Provisioned);
    assert_eq!(story.asked.iter().filter(|asked| asked.contains("configure")).count(), 2);
}

#[test]
fn conflicting_replies_end_the_cycle_before_configure() {
    for step in [Step::Jwt, Step::Inventory, Step::Helper, Step::ServerToken] {
        let story = World { conflict_at: Some(step), ..world(all()) }.play();
        assert_eq!(cause(&story), "conflict", "{step:?}");
        assert!(!story.asked.contains(&"choria_provision#configure".to_owned()));
    }
}

#[test]
fn a_private_key_needs_the_hosts_ecdh_key() {
    let story = world(plain()).helper(r#"{"key":"pem","configuration":{"a":"b"}}"#).play();
    assert_eq!(cause(&story), "seal_key");
    assert!(error(&story).contains("feature `jwt`"), "{}", error(&story));
}

#[test]
fn the_newest_ecdh_key_is_the_one_a_private_key_is_sealed_for() {
    let newer = "88a9a0ed27dc93c29466ea2bef99e078342b27e7a1d789fc35a9131f86c3a022";
    let again = json!({"jwt": World::usual(Step::Jwt)["jwt"], "ecdh_public": newer});
    let story = world(Features { jwt: true, ..plain() })
        .on(Step::Jwt, [Says::Nothing, Says::Data(again)])
        .helper(r#"{"key":"pem","configuration":{"a":"b"}}"#)
        .play();
    assert!(story.asked.contains(&"seal for 88a9".to_owned()), "{:?}", story.asked);
}

fn upgrade(version: &str) -> World {
    world(all()).helper(&format!(r#"{{"upgrade":"{version}","configuration":{{"a":"b"}}}}"#))
}

#[test]
fn a_different_version_is_installed_instead_of_configuring() {
    for version in ["99.0.0", "0.0.1"] {
        let story = upgrade(version).play();
        assert_eq!(story.ending, Ending::Updating, "{version}");
        assert_eq!(story.asked.last().unwrap(), "choria_provision#release_update");
        assert_eq!(story.data[&Step::Update]["version"], *version);
        assert_eq!(story.data[&Step::Update]["repository"], "http://updates.example.net");
    }
}

#[test]
fn an_equal_version_by_rpm_rules_is_not_installed_again() {
    // The recorded host runs 0.29.4.
    for version in ["0.29.4", "0.29_4", "0.029.4"] {
        assert_eq!(upgrade(version).play().ending, Ending::Provisioned, "{version}");
    }
}

/// The reason a failed update must name, and the world in which it fails.
type UpdateCase = (&'static str, Box<dyn Fn() -> World>);

#[test]
fn impossible_and_failed_updates_end_the_cycle_or_are_passed_over_when_optional() {
    let not_upgradable = || Says::Data(json!({"version": "0.1.0", "upgradable": false, "facts": {}}));
    let no_version = || Says::Data(json!({"version": "", "upgradable": true, "facts": {}}));
    let cases: [UpdateCase; 4] = [
        ("upgrades_repository is not configured", Box::new(|| World { repository: None, ..upgrade("9") })),
        ("names no version", Box::new(move || upgrade("9").on(Step::Inventory, [no_version()]))),
        ("does not support upgrades", Box::new(move || upgrade("9").on(Step::Inventory, [not_upgradable()]))),
        ("no reply within", Box::new(|| upgrade("9").on(Step::Update, vec![Says::Nothing; 9]))),
    ];
    for (reason, make) in cases {
        let story = make().play();
        assert_eq!(cause(&story), "update");
        assert!(error(&story).contains(reason), "{}", error(&story));
        let story = World { optional: true, ..make() }.play();
        assert_eq!(story.ending, Ending::Provisioned, "{reason}");
    }
}

#[test]
fn without_the_feature_an_upgrade_is_not_even_looked_at() {
    let story = World { features: plain(), ..upgrade("9") }.play();
    assert_eq!(story.ending, Ending::Provisioned);
}

#[test]
fn the_table_lists_every_step_once_and_in_order() {
    for (index, spec) in STEPS.iter().enumerate() {
        assert_eq!(STEPS.iter().position(|other| other.step == spec.step), Some(index));
        assert!(spec.tries >= 1);
    }
}
