//! From what a server means to the bytes it publishes: RPC payloads, envelopes, lifecycle events.

use std::time::Duration;

use quartermaster_proto::choria::envelope::{OpenRequest, Reply, Request, seal_reply};
use quartermaster_proto::choria::event::{self, Event, EventFormat, EventKind};
use quartermaster_proto::choria::{Generation, subject};
use quartermaster_proto::time::WallClock;
use serde_json::{Value, json};

use super::hostile;
use super::malformation::Malformation;
use super::server::{Action, Answer, Server};

/// The RPC payload of an answer; none when nothing is answered.
pub(super) fn payload(action: &str, answer: &Answer) -> Option<Vec<u8>> {
    let (code, text, data) = match answer {
        Answer::Done(data) => (0, "OK", data.as_str()),
        Answer::Refused(code, text) => (*code, text.as_str(), "{}"),
        Answer::Nothing => return None,
    };
    let text = format!(
        "{{\"action\":{},\"statuscode\":{code},\"statusmsg\":{},\"data\":{data}}}",
        json!(action),
        json!(text)
    );
    Some(text.into_bytes())
}

/// A different, equally valid payload: what somebody who races the server would answer.
pub(super) fn raced(payload: &[u8]) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(payload).ok()?;
    value.get_mut("data")?.as_object_mut()?.insert("answered_by".to_owned(), json!("another"));
    serde_json::to_vec(&value).ok()
}

/// Seals `payload` as the reply to `open`, distorted when the server is hostile.
pub(super) fn seal(
    server: &Server,
    open: &OpenRequest,
    payload: Vec<u8>,
    hostile: Option<Malformation>,
    now: WallClock,
) -> Vec<u8> {
    let mut generation = open.generation;
    let mut reply = Reply {
        request: open.request.id.clone(),
        sender: server.identity().to_string(),
        agent: open.request.agent.clone(),
        time: now,
        payload,
    };
    if let Some(kind) = hostile {
        reply.payload = hostile::payload(kind, reply.payload);
        hostile::reply(kind, &mut reply);
        if kind == Malformation::OtherGeneration {
            generation = match generation {
                Generation::V1 => Generation::V2,
                Generation::V2 => Generation::V1,
            };
        }
    }
    let hop = &server.profile.hop;
    let sender = reply.sender.clone();
    // A payload that is no text cannot travel in protocol 1; such a reply goes out empty, which is wrong enough.
    let frame = seal_reply(generation, &reply, Some([hop, &sender, hop])).unwrap_or_default();
    match hostile {
        Some(kind) => hostile::frame(kind, frame),
        None => frame,
    }
}

/// A lifecycle event as a Cloud Event, ready to publish.
pub(super) fn event(
    kind: EventKind,
    identity: &str,
    component: &str,
    version: &str,
    new_version: Option<&str>,
    id: [u8; 16],
    now: WallClock,
) -> Action {
    let versioned = matches!(kind, EventKind::Startup | EventKind::Upgraded);
    let event = Event {
        kind,
        id: uuid::Builder::from_random_bytes(id).into_uuid().to_string(),
        identity: identity.to_owned(),
        component: component.to_owned(),
        timestamp: now.seconds(),
        version: versioned.then(|| version.to_owned()),
        new_version: new_version.map(str::to_owned),
    };
    Action::Publish {
        subject: subject::event(kind, component),
        payload: event::encode(&event, EventFormat::CloudEvent),
        delay: Duration::ZERO,
    }
}

/// The time check of a node: strictly within `ttl` of the request's time, both ways (choria.md 3.3).
pub(super) fn in_time(generation: Generation, request: &Request, now: WallClock) -> bool {
    let ttl = i64::from(request.ttl);
    // Protocol 1 carries whole seconds, so it is compared in whole seconds.
    let (now, time) = match generation {
        Generation::V1 => (WallClock::from_seconds(now.seconds()), request.time),
        Generation::V2 => (now, request.time),
    };
    now.plus_seconds(-ttl) < time && time < now.plus_seconds(ttl)
}
