use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quartermaster_actors::control::{ControlHandle, RunState};
use quartermaster_actors::fleet::{FleetHandle, FleetSnapshot};
use quartermaster_actors::journal::JournalHandle;
use quartermaster_actors::link::{LinkSnapshot, LinkState};
use quartermaster_actors::service::{Lane, Reply, Request};
use quartermaster_actors::supervise::{Overseer, OverseerSettings, Slot};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::operate::{About, Audit, ClusterView, Operator, OperatorParts};

fn link() -> LinkSnapshot {
    LinkSnapshot {
        state: LinkState::Connecting { rounds: 0, last_error: String::new(), refused: false },
        since: std::time::Duration::ZERO,
        connects: 0,
        refused_logins: 0,
        pending: 0,
        requests: 0,
        replies: 0,
        late: 0,
        rejected: 0,
        conflicts: 0,
        dropped: 0,
    }
}

/// A desk whose operator stands before actors that are down.
fn desk() -> Desk {
    let overseer = Overseer::launch(OverseerSettings::default(), Vec::new(), Arc::new(|_| {}));
    let desk = Desk::new("prov1.example.net");
    desk.open(Operator::new(OperatorParts {
        about: About { instance: "prov1.example.net".to_owned(), site: "lab".to_owned(), cluster: "off" },
        config: json!({"workers": 2}),
        control: ControlHandle::new(Slot::new("control", 1), watch::channel(RunState::working()).1),
        fleet: FleetHandle::new(Slot::new("fleet", 1), watch::channel(FleetSnapshot::default()).1),
        journal: JournalHandle::in_memory(),
        look: Arc::new(|| Ok(())),
        link: Arc::new(link),
        cluster: Arc::new(ClusterView::default),
        overseer,
        audit: Audit::new(None, None),
        started: Instant::now(),
    }));
    desk
}

async fn ask(desk: &Desk, endpoint: &'static str, payload: &str, most: usize) -> Result<Value, ErrorBody> {
    let request = Request { endpoint, payload: Bytes::from(payload.to_owned()), most };
    match (desk.handler())(request).await {
        Reply::Answer(body) => Ok(serde_json::from_slice(&body).unwrap()),
        Reply::Fault { status, text, body } => {
            let reply: ErrorReply = serde_json::from_slice(&body).unwrap();
            assert_eq!(reply.instance, "prov1.example.net");
            assert_eq!(
                (reply.error.status, format!("{}: {}", reply.error.code, reply.error.message)),
                (status, text)
            );
            Err(reply.error)
        }
    }
}

/// The fault that this request is answered with: where it is, and words of it.
async fn check(endpoint: &'static str, payload: &str, at: &str, words: &str) {
    let error = ask(&desk(), endpoint, payload, 1 << 20).await.unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.status, error.at.as_deref()),
        ("bad_input", 400, Some(at)),
        "{error:?}"
    );
    assert!(error.message.contains(words), "{error:?}");
}

/// Endpoint, request, the place of its fault, and words of what is said about it.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, &str, &str)] = &[
    ("pause", "who=ann", "", "no JSON object"),
    ("pause", "[1]", "", "is a list"),
    ("pause", "{\"who\":", "", "EOF"),
    ("pause", "", "/who", "missing"),
    ("drain", "{\"who\":\"ann\"}", "/why", "missing"),
    ("flip", "{\"who\":\"ann\",\"why\":\" \"}", "/why", "must be said"),
    ("resume", "{\"who\":1,\"why\":\"x\"}", "/who", "is a number"),
    ("pause", "{\"who\":\"a\",\"why\":\"b\",\"whi\":\"c\"}", "/whi", "did you mean `why`"),
    ("status", "{\"a/b\":1}", "/a~1b", "this request has none"),
    ("retry", "{\"who\":\"a\",\"why\":\"b\"}", "/name", "missing"),
    ("host", "{\"name\":\"a b\"}", "/name", "0x20"),
    ("hosts", "{\"state\":\"waitin\"}", "/state", "waiting"),
    ("hosts", "{\"most\":0}", "/most", "from 1 to 1000"),
    ("hosts", "{\"most\":1001}", "/most", "from 1 to 1000"),
    ("hosts", "{\"most\":1.5}", "/most", "whole number"),
    ("hosts", "{\"after\":\"*\"}", "/after", ""),
];

#[actix::test]
async fn what_is_wrong_with_a_request_is_said_with_its_place() {
    for (endpoint, payload, at, words) in REFUSED {
        check(endpoint, payload, at, words).await;
    }
    check("pause", &"x".repeat(70_000), "", "65536").await;
}

#[actix::test]
async fn an_answer_larger_than_the_broker_takes_is_a_fault_that_says_so() {
    let error = ask(&desk(), "status", "", 10).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.status), ("too_large", 413));
}

#[actix::test]
async fn actors_that_are_down_are_unavailable_and_the_rest_is_answered() {
    let desk = desk();
    // Somebody who is just being replaced is waited for.
    tokio::time::pause();
    for endpoint in ["pause", "resume", "flip", "drain"] {
        let error = ask(&desk, endpoint, "{\"who\":\"ann\",\"why\":\"x\"}", 1 << 20).await.unwrap_err();
        assert_eq!((error.code.as_str(), error.status), ("unavailable", 503), "{endpoint}");
    }
    assert_eq!(ask(&desk, "hosts", "{}", 1 << 20).await.unwrap_err().code, "unavailable");
    let ping = ask(&desk, "ping", " ", 1 << 20).await.unwrap();
    assert_eq!(ping["role"], "leading");
    assert_eq!(ask(&desk, "config", "{}", 1 << 20).await.unwrap()["config"]["workers"], 2);
}

#[actix::test]
async fn before_it_is_open_a_desk_is_busy() {
    assert_eq!(ask(&Desk::new("prov1.example.net"), "ping", "", 1 << 20).await.unwrap_err().code, "busy");
}

#[test]
fn every_endpoint_is_published_with_schemas_that_are_complete_in_themselves() {
    let endpoints = endpoints("qm", "prov1.example.net");
    assert_eq!(endpoints.len(), VERBS.len());
    for endpoint in endpoints {
        let name = endpoint.name;
        assert_eq!(endpoint.metadata["instance_subject"], format!("qm.{name}.prov1.example.net"));
        for key in ["request_schema", "response_schema", "error_schema"] {
            let schema: Value = serde_json::from_str(&endpoint.metadata[key]).unwrap();
            // What is made of two types is all of both.
            let parts = schema["allOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
            assert!(parts.iter().any(|part| part["type"] == "object"), "{name} {key}");
            for reference in references(&schema) {
                let defined = reference.strip_prefix('#').and_then(|path| schema.pointer(path));
                assert!(defined.is_some(), "{name} {key}: {reference}");
            }
        }
        let changes = !["ping", "status", "hosts", "host", "config"].contains(&name);
        assert_eq!(endpoint.lane == Lane::Command, changes, "{name}");
    }
}

fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(object) => object
            .iter()
            .flat_map(|(key, value)| match value {
                Value::String(text) if key == "$ref" => vec![text.clone()],
                other => references(other),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
