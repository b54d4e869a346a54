//! The codecs and signatures on messages recorded from real peers: `cargo bench --bench codec`. Figures for comparing two
//! states of the code on one machine; nothing asserts them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a recording that does not decode is the end of the benchmark"
)]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quartermaster_proto::choria::envelope::{
    OpenReply, OpenRequest, Proof, open_reply, open_request, request_body, seal_request,
};
use quartermaster_proto::choria::sign::{SigningKey, ed25519_verifies, rsa_verifies};
use quartermaster_proto::choria::token::{VerifyKey, parse_provisioning, verify_provisioning};
use quartermaster_proto::choria::{agents, event, pem, rpc};
use quartermaster_proto::json::{self, Limits};
use quartermaster_proto::time::WallClock;
use quartermaster_proto::{choria::agents::JwtReply, helper};
use serde_json::Value;

/// A few minutes after the recordings were made.
const RECORDED: i64 = 1_795_977_000;

/// The networks whose messages are measured.
const NETWORKS: [&str; 3] = ["v1-insecure", "v1-x509", "v2"];

fn vector(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/tests/vectors");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The recorded messages of one network whose subject passes.
fn messages(network: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = vector(&format!("{network}.jsonl"));
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["subject"].as_str().is_some_and(&wanted))
        .map(|line| line["data"].as_str().unwrap().to_owned())
        .collect()
}

fn longest(messages: Vec<String>) -> String {
    messages.into_iter().max_by_key(String::len).unwrap()
}

fn request(network: &str) -> String {
    longest(messages(network, |subject| subject.contains(".node.")))
}

fn reply(network: &str) -> String {
    longest(messages(network, |subject| subject.contains(".reply.")))
}

/// The decoded reply of one action.
fn answer(network: &str, action: &str) -> rpc::RpcReply {
    let replies = messages(network, |subject| subject.contains(".reply."));
    let answers = replies
        .iter()
        .filter_map(|text| rpc::decode_reply(&open_reply(text.as_bytes()).unwrap().reply.payload).ok());
    answers.into_iter().find(|reply| reply.action == action).unwrap()
}

fn envelopes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("envelope");
    for network in NETWORKS {
        let (request, reply) = (request(network), reply(network));
        group.throughput(Throughput::Bytes(request.len() as u64));
        let open = || -> OpenRequest { open_request(black_box(request.as_bytes())).unwrap() };
        group.bench_function(format!("{network}/open request"), |bench| bench.iter(open));
        let opened = open();
        group.bench_function(format!("{network}/seal request"), |bench| {
            bench.iter(|| {
                let body = request_body(opened.generation, black_box(&opened.request)).unwrap();
                seal_request(
                    opened.generation,
                    &body,
                    &opened.proof,
                    &opened.reply_to,
                    &opened.transport_sender,
                    None,
                )
                .unwrap()
            });
        });
        group.throughput(Throughput::Bytes(reply.len() as u64));
        group.bench_function(format!("{network}/open reply"), |bench| {
            bench.iter(|| -> OpenReply { open_reply(black_box(reply.as_bytes())).unwrap() });
        });
    }
    group.finish();
}

fn payloads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("payload");
    let inventory = answer("v2", "inventory");
    let encoded = rpc::encode_reply(&inventory);
    group.bench_function("decode rpc reply", |bench| {
        bench.iter(|| rpc::decode_reply(black_box(&encoded)).unwrap());
    });
    group.bench_function("decode inventory", |bench| {
        bench.iter(|| agents::decode_output::<agents::InventoryReply>(black_box(&inventory)).unwrap());
    });
    let facts = facts();
    group.throughput(Throughput::Bytes(facts.len() as u64));
    group.bench_function("check limits of 100 KiB of facts", |bench| {
        bench.iter(|| json::check(black_box(facts.as_bytes()), &Limits::FRAME).unwrap());
    });
    group.bench_function("sort 100 KiB of facts", |bench| {
        bench.iter(|| json::sorted(black_box(&facts)).unwrap());
    });
    let startup = longest(messages("v2", |subject| subject.starts_with("choria.lifecycle.event.startup.")));
    group.throughput(Throughput::Bytes(startup.len() as u64));
    group.bench_function("decode lifecycle event", |bench| {
        bench.iter(|| event::decode(black_box(startup.as_bytes())).unwrap());
    });
    let config: Vec<_> = (0..40).map(|n| format!("\"plugin.key.{n}\":\"value {n}\"")).collect();
    let helper_reply = format!("{{\"defer\":false,\"configuration\":{{{}}}}}", config.join(","));
    group.throughput(Throughput::Bytes(helper_reply.len() as u64));
    group.bench_function("decode helper reply", |bench| {
        bench.iter(|| helper::decode_reply(black_box(helper_reply.as_bytes())).unwrap());
    });
    group.finish();
}

/// An object of about a hundred kilobytes, nested and unsorted, as facts are.
fn facts() -> String {
    let one = |n: u32| {
        format!("\"fact{}\":{{\"z\":[{n},\"text {n}\",null,true],\"a\":{{\"b\":{n}.25}}}}", n * 7919 % 2000)
    };
    format!("{{{}}}", (0..2000).map(one).collect::<Vec<_>>().join(","))
}

fn signatures(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("signature");
    let opened = open_request(request("v2").as_bytes()).unwrap();
    let body = request_body(opened.generation, &opened.request).unwrap();
    let ed25519 = SigningKey::from_text(&vector("v2.signer.seed")).unwrap();
    let public = ed25519.ed25519_public().unwrap();
    let signature = ed25519.sign(&body).unwrap();
    group.bench_function("ed25519 sign", |bench| bench.iter(|| ed25519.sign(black_box(&body)).unwrap()));
    group.bench_function("ed25519 verify", |bench| {
        bench.iter(|| ed25519_verifies(black_box(&public), &body, &signature));
    });
    assert!(matches!(opened.proof, Proof::V2 { .. }) && ed25519_verifies(&public, &body, &signature));

    let key_text = vector("v1-x509-key.plaintext-key.pem");
    let rsa = SigningKey::from_text(&key_text).unwrap();
    let public = rsa.rsa_public_der().unwrap();
    let signature = rsa.sign(&body).unwrap();
    assert!(rsa_verifies(public, &body, &signature));
    group.bench_function("rsa sign", |bench| bench.iter(|| rsa.sign(black_box(&body)).unwrap()));
    group.bench_function("rsa verify", |bench| {
        bench.iter(|| rsa_verifies(black_box(public), &body, &signature));
    });
    group.bench_function("encrypt private key", |bench| {
        bench.iter(|| pem::encrypt_private_key(black_box(&key_text), &[7; 32], [9; 16]).unwrap());
    });
    group.finish();
}

fn tokens(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("token");
    for (network, key_file) in [("v1-x509", "v1-x509.jwt-signer.pem"), ("v2", "v2.issuer.public")] {
        let JwtReply { jwt, .. } = agents::decode_output(&answer(network, "jwt")).unwrap();
        let key = VerifyKey::from_text(&vector(key_file)).unwrap();
        let now = WallClock::from_seconds(RECORDED);
        verify_provisioning(&jwt, &key, now).unwrap();
        group.bench_function(format!("{network}/verify provisioning"), |bench| {
            bench.iter(|| verify_provisioning(black_box(&jwt), &key, now).unwrap());
        });
        group.bench_function(format!("{network}/read provisioning"), |bench| {
            bench.iter(|| parse_provisioning(black_box(&jwt)).unwrap());
        });
    }
    group.finish();
}

criterion_group!(codec, envelopes, payloads, signatures, tokens);
criterion_main!(codec);
