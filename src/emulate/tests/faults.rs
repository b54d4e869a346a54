//! Servers with faults.

use std::time::Duration;

use quartermaster_proto::choria::envelope::open_reply;
use quartermaster_proto::choria::{Generation, discovery, rpc};
use serde_json::json;

use super::bench::{Bench, NAME, NOW, plain_config};
use crate::emulate::malformation;
use crate::emulate::record::Phase;
use crate::emulate::server::{Action, Note};

#[test]
fn silence_answers_discovery_alone() {
    let mut bench = Bench::faulty("silence=all");
    assert_eq!(bench.provision("jwt", json!({})), None);
    let request = bench.request("discovery", &discovery::ping_payload(Generation::V1));
    assert_eq!(bench.send(&request).len(), 1);
}

#[test]
fn two_replies_differ_and_duplicates_do_not() {
    for (fault, same) in [("two_replies=all", false), ("duplicate=all", true)] {
        let mut bench = Bench::faulty(fault);
        let payload = rpc::encode_request("choria_provision", "jwt", r#"{"token":"s3cret"}"#).unwrap();
        let request = bench.request("choria_provision", &payload);
        let frames = bench.send(&request);
        assert_eq!(frames.len(), 2, "{fault}");
        let payloads: Vec<_> = frames.iter().map(|frame| open_reply(frame).unwrap().reply.payload).collect();
        assert_eq!(payloads[0] == payloads[1], same, "{fault}");
    }
}

#[test]
fn an_aborted_configure_works_the_next_time() {
    let mut bench = Bench::faulty("abort_configure=all");
    let data = json!({"config": plain_config().to_string()});
    bench.refused(
        "configure",
        data,
        "Could not write config: write /etc/choria/server.cfg: no space left on device",
    );
    bench.configure(&plain_config());
}

#[test]
fn a_lost_reply_is_work_done() {
    let mut bench = Bench::faulty("lose_reply/configure=all");
    assert_eq!(bench.provision("configure", json!({"config": plain_config().to_string()})), None);
    assert_eq!(bench.server.record().configures, 1);
    bench.configure(&plain_config());
}

#[test]
fn a_relapse_comes_back_once() {
    let mut bench = Bench::faulty("relapse=all");
    for phase in [Phase::Provisioning, Phase::Provisioned] {
        bench.configure(&plain_config());
        assert!(bench.noted(Note::Configured(false)));
        bench.done("restart", json!({"splay": 1}));
        bench.wake(2);
        assert_eq!(bench.server.record().phase, phase);
    }
    assert_eq!(bench.server.record().duplicate_configures(), 0);
}

#[test]
fn a_lock_held_by_a_stranger_ends() {
    let mut bench = Bench::faulty("lock:2m=all");
    bench.refused("jwt", json!({}), "Could not obtain provisioning lock");
    bench.now = bench.now.plus_seconds(121);
    bench.done("jwt", json!({}));
}

#[test]
fn every_malformation_changes_a_reply() {
    for (name, kind) in malformation::TABLE {
        let action = kind.action().unwrap_or("jwt");
        let agent = if action == "inventory" { "rpcutil" } else { "choria_provision" };
        let data = json!({"token": "s3cret", "nonce": "n", "cn": NAME}).to_string();
        let payload = rpc::encode_request(agent, action, &data).unwrap();
        let mut honest = Bench::v1();
        let mut hostile = Bench::faulty(&format!("{name}=all"));
        let good = {
            let request = honest.request(agent, &payload);
            honest.send(&request)
        };
        let bad = {
            let request = hostile.request(agent, &payload);
            hostile.send(&request)
        };
        assert_eq!((good.len(), bad.len()), (1, 1), "{name}");
        // Certificate requests differ anyhow, by their key: what counts is that the reply is not the honest one.
        assert_ne!(good, bad, "{name}");
        assert_eq!(honest.server.record().replies, 1);
    }
}

/// Sends one request to a server with that malformation and gives the frame that comes back.
fn malformed(name: &str) -> Vec<u8> {
    let mut bench = Bench::faulty(&format!("{name}=all"));
    let payload = rpc::encode_request("choria_provision", "jwt", r#"{"token":"s3cret"}"#).unwrap();
    let request = bench.request("choria_provision", &payload);
    bench.send(&request).remove(0)
}

#[test]
fn broken_frames_do_not_open() {
    for name in ["headers_null", "headers_missing", "bad_hash", "truncated", "bad_base64", "empty_frame"] {
        assert!(open_reply(&malformed(name)).is_err(), "{name}");
    }
    let transport = |name| serde_json::from_slice::<serde_json::Value>(&malformed(name)).unwrap();
    assert_eq!(transport("headers_null").get("headers"), Some(&serde_json::Value::Null));
    assert_eq!(transport("headers_missing").get("headers"), None);
}

#[test]
fn false_replies_open_and_lie() {
    let open = |name| open_reply(&malformed(name)).unwrap();
    assert_eq!(open("wrong_sender").reply.sender, "somebody.else.example.net");
    assert_eq!(open("wrong_agent").reply.agent, "scout");
    assert_ne!(open("wrong_request").reply.request, open("wrong_sender").reply.request);
    assert_eq!(open("other_generation").generation, Generation::V2);
}

#[test]
fn broken_payloads_do_not_decode() {
    for name in ["not_json", "deep_json", "unknown_status"] {
        assert!(rpc::decode_reply(&open_reply(&malformed(name)).unwrap().reply.payload).is_err(), "{name}");
    }
}

#[test]
fn a_server_that_vanishes_for_a_time_comes_back_once_as_its_disk_says() {
    let mut bench = Bench::faulty("vanish:5s/configure=all");
    bench.done("jwt", json!({}));
    let data = json!({"config": plain_config().to_string()});
    assert_eq!(bench.provision("configure", data), None);
    assert_eq!((bench.server.record().phase, bench.delay()), (Phase::Off, Some(Duration::from_secs(5))));
    assert_eq!(bench.provision("jwt", json!({})), None, "nobody is there");
    bench.wake(4);
    assert_eq!(bench.server.record().phase, Phase::Off, "a delay of its former life");
    bench.wake(1);
    assert_eq!(bench.server.record().phase, Phase::Provisioning);
    assert_eq!(bench.published(), ["startup.provision_mode_server"]);
    bench.configure(&plain_config());
    assert_eq!((bench.server.record().power_cuts, bench.server.record().configures), (1, 1));
}

#[test]
fn one_that_announces_itself_and_is_gone_for_a_time_announces_itself_again() {
    let mut bench = Bench::faulty("vanish:5s=all");
    assert_eq!(bench.server.record().phase, Phase::Off);
    bench.wake(5);
    assert_eq!(bench.published(), ["startup.provision_mode_server"]);
    bench.done("jwt", json!({}));
}

#[test]
fn a_power_cut_keeps_the_disk_and_forgets_the_lock() {
    let mut bench = Bench::v1();
    bench.configure(&plain_config());
    let cut = bench.server.cut_power(Some(Duration::from_secs(3)), bench.now);
    assert!(cut.contains(&Action::Note(Note::PowerCut)) && cut.contains(&Action::Leave));
    assert!(bench.server.cut_power(Some(Duration::from_secs(3)), bench.now).is_empty(), "it has none");
    bench.wake(3);
    assert_eq!(bench.server.record().phase, Phase::Provisioned, "it was configured, so it serves");
    assert_eq!(bench.server.record().restarts, 0);

    let mut bench = Bench::v1();
    bench.done("jwt", json!({}));
    bench.caller = "choria=stranger";
    bench.refused("jwt", json!({}), "Could not obtain provisioning lock");
    bench.server.cut_power(Some(Duration::from_secs(3)), bench.now);
    bench.wake(3);
    bench.done("jwt", json!({}));
}

#[test]
fn a_power_cut_for_good_is_the_end() {
    for off_before in [false, true] {
        let mut bench = Bench::v1();
        if off_before {
            bench.server.cut_power(Some(Duration::from_secs(3)), bench.now);
        }
        bench.server.cut_power(None, bench.now);
        bench.wake(1000);
        assert_eq!(bench.server.record().phase, Phase::Vanished);
    }
}

#[test]
fn the_record_tells_lost_replies_from_those_that_went_out() {
    let ids = |bench: &Bench| -> Vec<bool> {
        bench.server.record().configured.iter().map(|one| one.reply_lost).collect()
    };
    let mut lossy = Bench::faulty("lose_reply:2/configure=all");
    let data = json!({"config": plain_config().to_string()});
    assert_eq!(lossy.provision("configure", data.clone()), None);
    assert!(lossy.noted(Note::ReplyLost));
    assert_eq!(lossy.provision("configure", data), None);
    lossy.configure(&plain_config());
    assert_eq!((ids(&lossy), lossy.server.record().lost_replies), (vec![true, true, false], 2));
    assert_eq!(lossy.server.record().repetitions().count(), 0, "each followed a lost reply");

    let mut again = Bench::v1();
    again.configure(&plain_config());
    again.configure(&plain_config());
    let record = again.server.record();
    let (earlier, later) = record.repetitions().next().unwrap();
    assert_ne!(earlier.request, later.request);
    assert_eq!(record.duplicate_configures(), 1);

    let mut relapsing = Bench::faulty("relapse=all");
    for _ in 0..2 {
        relapsing.configure(&plain_config());
        relapsing.done("restart", json!({"splay": 1}));
        relapsing.wake(2);
    }
    assert_eq!(relapsing.server.record().repetitions().count(), 0, "it had fallen back");
}

#[test]
fn a_clock_that_is_off_shows_in_events_and_in_what_counts_as_in_time() {
    let bench = Bench::faulty("clock:-30s=all");
    let Some(Action::Publish { payload, .. }) = bench.actions.last() else { panic!("no event") };
    assert_eq!(quartermaster_proto::choria::event::decode(payload).unwrap().timestamp, NOW - 30);
    for (offset, answers) in [("30", true), ("-30", true), ("59", true), ("60", false), ("-60", false)] {
        let mut bench = Bench::faulty(&format!("clock:{offset}=all"));
        assert_eq!(bench.call("rpcutil", "ping", &json!({})).is_some(), answers, "{offset} s off");
    }
}
