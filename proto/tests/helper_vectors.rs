//! What a helper would receive from us is what the peer's helper received in the recorded runs.
#![cfg(test)]

mod support;

use quartermaster_proto::{
    choria::{
        Identity,
        agents::{CsrReply, Gen25519Reply, InventoryReply, JwtReply, decode_output},
        rpc::{RpcReply, decode_reply},
    },
    helper::HelperInput,
    json,
};
use serde_json::{Value, value::RawValue};
use support::{replies, vector};

fn answer(name: &str, action: &str) -> Option<RpcReply> {
    replies(name)
        .into_iter()
        .filter_map(|open| decode_reply(&open.reply.payload).ok())
        .find(|answer| answer.action == action)
}

/// The claims inside a token, as they are written there.
fn claims(jwt: &str) -> Box<RawValue> {
    let payload = jwt.split('.').nth(1).unwrap();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, payload).unwrap();
    RawValue::from_string(String::from_utf8(bytes).unwrap()).unwrap()
}

/// The input built from the recorded replies of the host.
fn built(name: &str) -> String {
    let jwt: JwtReply = decode_output(&answer(name, "jwt").unwrap()).unwrap();
    let inventory: InventoryReply = decode_output(&answer(name, "inventory").unwrap()).unwrap();
    let input = HelperInput {
        identity: Identity::parse("web1.example.net").unwrap(),
        csr: answer(name, "gencsr").map(|answer| decode_output::<CsrReply>(&answer).unwrap()),
        ed25519_pubkey: answer(name, "gen25519")
            .map(|answer| decode_output::<Gen25519Reply>(&answer).unwrap()),
        inventory: json::sorted(inventory.raw.get()).unwrap(),
        jwt: Some(claims(&jwt.jwt)),
    };
    String::from_utf8(input.to_json()).unwrap()
}

#[test]
fn raw_recordings_are_met_byte_for_byte() {
    for name in ["v1-insecure", "v2"] {
        assert_eq!(built(name), vector(&format!("{name}.helper-input.json")), "{name}");
    }
}

#[test]
fn recordings_are_met_field_for_field() {
    for name in ["v1-insecure", "v1-x509", "v2"] {
        let recorded: Value = serde_json::from_str(&vector(&format!("{name}.helper-input.json"))).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&built(name)).unwrap(), recorded, "{name}");
    }
}

#[test]
fn the_order_of_keys_is_the_recorded_one() {
    let keys = |text: &str| -> Vec<usize> {
        ["\"identity\"", "\"csr\"", "\"ed25519_pubkey\"", "\"inventory\"", "\"jwt\""]
            .iter()
            .map(|key| text.find(key).unwrap())
            .collect()
    };
    assert!(keys(&built("v1-x509")).is_sorted());
    assert!(keys(&vector("v1-x509.helper-input.json")).is_sorted());
}

#[test]
fn what_was_not_fetched_is_null() {
    let input = HelperInput {
        identity: Identity::parse("n1").unwrap(),
        csr: None,
        ed25519_pubkey: None,
        inventory: "{}".to_owned(),
        jwt: None,
    };
    assert_eq!(
        String::from_utf8(input.to_json()).unwrap(),
        r#"{"identity":"n1","csr":null,"ed25519_pubkey":null,"inventory":"{}","jwt":null}"#
    );
    assert!(!format!("{input:?}").contains("inventory"));
}

#[test]
fn large_numbers_of_facts_reach_the_helper_digit_for_digit() {
    let input = HelperInput {
        identity: Identity::parse("n1").unwrap(),
        csr: None,
        ed25519_pubkey: None,
        inventory: json::sorted(r#"{"facts":{"mem":18446744073709551617,"f":1.50}}"#).unwrap(),
        jwt: None,
    };
    let text = String::from_utf8(input.to_json()).unwrap();
    assert!(text.contains(r#"{\"facts\":{\"f\":1.50,\"mem\":18446744073709551617}}"#), "{text}");
}
