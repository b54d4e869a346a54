//! The emulated server against recorded real ones: the same requests get replies of the same keys, types and texts.

use std::path::Path;
use std::sync::Arc;

use quartermaster_proto::choria::envelope::{open_reply, open_request};
use quartermaster_proto::choria::{Generation, Identity};
use serde_json::Value;

use super::fleet::FleetSettings;
use super::network::Network;
use super::server::{Action, Server};

/// JSON text with every value but `message` and literals replaced by its type: keys and their order stay.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut rest = text;
    let mut key = "";
    while let Some(next) = rest.chars().next() {
        if next == '"' {
            let mut end = 1;
            while rest.as_bytes()[end] != b'"' {
                end += if rest.as_bytes()[end] == b'\\' { 2 } else { 1 };
            }
            let token = &rest[..=end];
            rest = &rest[end + 1..];
            if rest.starts_with(':') {
                key = token;
                shape.push_str(token);
            } else if matches!(
                key,
                "\"action\""
                    | "\"statusmsg\""
                    | "\"message\""
                    | "\"agents\""
                    | "\"ssldir\""
                    | "\"directory\""
            ) {
                shape.push_str(token);
            } else {
                shape.push('s');
            }
        } else if next.is_ascii_digit() {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            shape.push('n');
            rest = &rest[end..];
        } else {
            shape.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    shape
}

fn check(file: &str, generation: Generation, upgradable: bool, facts: &str, expected: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/tests/vectors").join(file);
    let network = Network::generate(1, "s3cret", generation, upgradable).unwrap();
    let mut settings = FleetSettings::new(network, "nats://127.0.0.1:4222", 1);
    settings.facts = facts.to_owned();
    let mut server =
        Server::new(Identity::parse("web1.example.net").unwrap(), Arc::new(settings.profile()), Vec::new());
    let mut ours = Vec::new();
    let mut seen = Vec::new();
    let mut started = false;
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (subject, data) = (line["subject"].as_str().unwrap(), line["data"].as_str().unwrap());
        if subject.starts_with("choria.lifecycle.") {
            let component = subject.rsplit('.').next().unwrap();
            if component != "provision_mode_server" {
                continue;
            }
            if !started {
                started = true;
                let time =
                    serde_json::from_str::<Value>(data).unwrap()["data"]["timestamp"].as_i64().unwrap();
                ours.extend(server.start(quartermaster_proto::time::WallClock::from_seconds(time)));
            }
            let event = ours.iter().position(
                |action| matches!(action, Action::Publish { subject: found, .. } if found == subject),
            );
            let Action::Publish { payload, .. } = ours.remove(event.expect(subject)) else { unreachable!() };
            assert_eq!(shape(&String::from_utf8(payload).unwrap()), shape(data), "{subject}");
        } else if subject.starts_with("provisioning.reply.") {
            let theirs = open_reply(data.as_bytes()).unwrap().reply;
            let reply = ours.iter().position(
                |action| matches!(action, Action::Publish { subject: found, .. } if found == subject),
            );
            let Action::Publish { payload, .. } = ours.remove(reply.expect(subject)) else { unreachable!() };
            let hop = |frame: &[u8]| {
                let transport: Value = serde_json::from_slice(frame).unwrap();
                transport["headers"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
            };
            assert_eq!(hop(&payload), hop(data.as_bytes()));
            let own = open_reply(&payload).unwrap().reply;
            assert_eq!(
                (&own.request, &own.sender, &own.agent),
                (&theirs.request, &theirs.sender, &theirs.agent)
            );
            let (own, theirs) =
                (String::from_utf8(own.payload).unwrap(), String::from_utf8(theirs.payload).unwrap());
            assert_eq!(shape(&own), shape(&theirs));
            seen.push(theirs.split('"').nth(3).unwrap_or("discovery").to_owned());
        } else if let Ok(open) = open_request(data.as_bytes()) {
            ours.extend(server.receive(&open, open.request.time));
        }
    }
    assert_eq!(seen, expected);
}

#[test]
fn protocol_1_without_signatures() {
    check(
        "v1-insecure.jsonl",
        Generation::V1,
        true,
        r#"{"cores":2,"role":"web"}"#,
        &["discovery", "jwt", "gen25519", "inventory", "configure", "restart"],
    );
}

#[test]
fn protocol_1_with_certificates() {
    check(
        "v1-x509.jsonl",
        Generation::V1,
        false,
        r#"{"role":"web"}"#,
        &["discovery", "jwt", "inventory", "gencsr", "configure", "restart"],
    );
}

#[test]
fn protocol_2() {
    check(
        "v2.jsonl",
        Generation::V2,
        false,
        r#"{"cores":2,"role":"web"}"#,
        &["discovery", "jwt", "gen25519", "inventory", "configure", "restart"],
    );
}
