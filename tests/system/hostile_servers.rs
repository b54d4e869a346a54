//! Each hostile server fails alone: for its own reason, told once and counted, while its neighbours are provisioned.

use quartermaster::emulate::NetworkFiles;

use super::hostile_field::{Fate, Field, Kind, Row, node};
use super::support::{eventually, replace};
use Fate::{Busy, CameBack, Decided, Misreported, Provisioned, Quiet, Refused};

/// Every way of answering wrongly, without certificate requests.
const ROWS: &[Row] = &[
    // It does not answer, or not properly.
    ("silence", Quiet),
    ("silence/inventory", Refused("inventory", "failed after 5 tries: no reply within")),
    ("facts:2MiB", Refused("inventory", "failed after 5 tries: no reply within")),
    ("facts:300KiB", Provisioned),
    ("duplicate", Provisioned),
    ("late:1500ms", Provisioned),
    ("late:5s/inventory", Refused("inventory", "failed after 5 tries: no reply within")),
    ("two_replies", Refused("conflict", "two different replies to one request")),
    ("lock:10m", Busy),
    ("wrong_token", Refused("jwt", "failed after 1 tries: it refused: Incorrect provision token")),
    ("clock:-3600", Quiet),
    // The envelope is wrong.
    ("headers_null", Refused("jwt", "cannot read the transport layer: ")),
    ("headers_missing", Refused("jwt", "cannot read the transport layer: ")),
    ("bad_hash", Refused("jwt", "hash of the reply does not fit")),
    ("wrong_sender", Refused("jwt", "its sender is `somebody.else.example.net`")),
    ("wrong_request", Refused("jwt", "it names another request")),
    ("wrong_agent", Refused("jwt", "it comes from agent `scout`")),
    ("other_generation", Refused("jwt", "other protocol generation")),
    ("truncated", Refused("jwt", "cannot read the transport layer: ")),
    ("bad_base64", Refused("jwt", "not base64")),
    ("empty_frame", Refused("jwt", "cannot read the transport layer: ")),
    ("not_json", Refused("jwt", "unusable answer: cannot read the payload: ")),
    ("deep_json", Refused("jwt", "unusable answer: cannot read the payload: ")),
    // The outputs are wrong.
    ("wrong_types/jwt", Refused("jwt", "unusable answer: `jwt` should be")),
    ("null_outputs/jwt", Refused("jwt", "unusable answer: `jwt` should be string but is null")),
    ("data_not_object/jwt", Refused("jwt", "unusable answer: `data` should be")),
    ("wrong_types/gen25519", Refused("gen25519", "unusable answer: `public_key` should be")),
    ("missing_outputs/gen25519", Refused("key_proof", "")),
    ("wrong_types/inventory", Refused("inventory", "unusable answer: `version` should be")),
    ("missing_version", Refused("inventory", "unusable answer: `version` should be")),
    ("unknown_status", Refused("jwt", "unknown status 99")),
    ("hostile_text", Refused("jwt", "failed after 3 tries: it refused: no")),
    // The key is wrong.
    ("public_key_short", Refused("key_proof", "is not 64 hexadecimal digits (62 characters)")),
    ("public_key_long", Refused("key_proof", "is not 64 hexadecimal digits (66 characters)")),
    ("public_key_not_hex", Refused("key_proof", "is not 64 hexadecimal digits")),
    ("signature_wrong", Refused("key_proof", "signature does not verify")),
    ("signature_short", Refused("key_proof", "is not 128 hexadecimal digits (126 characters)")),
    // The token is wrong.
    ("jwt_alg_none", Refused("token", "signed with `none` but the configured key takes")),
    ("jwt_hs256", Refused("token", "signed with `HS256` but the configured key takes")),
    ("jwt_rs256", Refused("token", "signed with `RS256` but the configured key takes")),
    ("jwt_expired", Refused("token", "token is expired")),
    ("jwt_not_yet_valid", Refused("token", "token is not yet valid")),
    ("jwt_wrong_purpose", Refused("token", "token purpose is `choria_server`")),
    ("jwt_other_key", Refused("token", "signature does not verify")),
    ("jwt_garbage", Refused("token", "token is malformed")),
    ("jwt_empty", Refused("token", "it sent none")),
    // Nothing is sealed for a server whose helper returned no private key.
    ("ecdh_zero", Provisioned),
    ("ecdh_short", Provisioned),
    // It goes wrong late.
    ("abort_configure:1", Provisioned),
    ("abort_configure:9", Decided("configure", "failed after 5 tries: it refused:")),
    ("lose_reply:1/jwt", Provisioned),
    ("missing_outputs/configure", Misreported("configure", "unusable answer: `message` should be")),
    ("wrong_types/configure", Misreported("configure", "unusable answer: `message` should be")),
    ("relapse:9", CameBack),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_plain_network_each_hostile_server_fails_alone() {
    let rows = ROWS;
    let Some(field) = Field::start(Kind::Plain, rows, &[], |_| {}).await else { return };
    field.check(rows, Provisioned).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_issuer_network_over_tls_each_hostile_server_fails_alone() {
    let rows = ROWS;
    let Some(field) = Field::start(Kind::Issuer, rows, &[], |_| {}).await else { return };
    field.check(rows, Provisioned).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_attempt_is_told_and_counted_once_with_its_number() {
    let rows = &[("jwt_hs256", Refused("token", ""))];
    let often = |files: &NetworkFiles| replace(&files.config, "  first: 10m", "  first: 1s\n  cap: 1s");
    let Some(mut field) = Field::start(Kind::Plain, rows, &[], often).await else { return };
    field.daemon.listens().await;
    let attempts = |field: &Field| -> Vec<u64> {
        let lines = field.daemon.lines();
        let of_it = lines.iter().filter(|line| line["cause"] == "token" && line["host"] == node(1));
        of_it.map(|line| line["attempt"].as_u64().unwrap()).collect()
    };
    eventually("it is tried again and again", || attempts(&field).len() >= 4).await;
    let counted = || field.daemon.metric("quartermaster_cycle_ends_total", "cause")["token"];
    let (before, seen, after) = (counted(), attempts(&field), counted());
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    assert!((before..=after).contains(&(seen.len() as u64)), "{before} {} {after}", seen.len());
    assert_eq!(field.fleet.server(&node(1)).unwrap().record.configures, 0);
}
