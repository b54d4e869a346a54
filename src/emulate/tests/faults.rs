//! Servers with faults.

use quartermaster_proto::choria::envelope::open_reply;
use quartermaster_proto::choria::{Generation, discovery, rpc};
use serde_json::json;

use super::bench::{Bench, NAME, plain_config};
use crate::emulate::malformation;
use crate::emulate::record::Phase;
use crate::emulate::server::Note;

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
