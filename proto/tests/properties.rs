//! Laws that hold for every message: what is written is read back, and no byte of a stranger brings a decoder down.
#![cfg(test)]

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use quartermaster_proto::{
    choria::{
        Generation,
        agents::{CsrReply, JwtReply, decode_output},
        envelope::{
            OpenReply, Proof, Reply, Request, open_reply, open_request, request_body, seal_reply,
            seal_request, v1_id,
        },
        event::{self, Event, EventFormat, EventKind},
        filter::{CompoundFilter, FactFilter, Filter},
        ksuid::Ksuid,
        rpc::{self, RpcReply, StatusCode},
        version,
    },
    fuzzing::{self, BODIES},
    json,
    text::escape_bounded,
    time::WallClock,
};
use serde_json::{Value, value::RawValue};
use support::{RECORDINGS, recording, replies};
use zeroize::Zeroizing;

fn generations() -> impl Strategy<Value = Generation> {
    prop_oneof![Just(Generation::V1), Just(Generation::V2)]
}

/// Any text, also with quotes, escapes, line separators and characters beyond the first plane.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![".{0,20}", "[\\x00-\\x1f\"\\\\/\u{2028}\u{feff}😀é]{0,10}"]
}

fn names() -> impl Strategy<Value = String> {
    texts().prop_filter("not empty", |text| !text.is_empty())
}

fn lists() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(texts(), 0..3)
}

prop_compose! {
    fn filters()(
        fact in prop::collection::vec((texts(), texts(), texts()), 0..3),
        cf_class in lists(), agent in lists(), identity in lists(),
        compound in prop::collection::vec(lists(), 0..2),
    ) -> Filter {
        let fact = fact.into_iter().map(|(fact, operator, value)| FactFilter { fact, operator, value }).collect();
        let compound = compound
            .into_iter()
            .map(|list| list.into_iter().map(|expr| CompoundFilter { expr }).collect())
            .collect();
        Filter { fact, cf_class, agent, identity, compound }
    }
}

prop_compose! {
    fn requests()(
        generation in generations(), random: [u8; 16], sender in texts(), caller in names(), collective in names(),
        agent in names(), ttl in 30_u32.., seconds in 1_i64..9_000_000_000, nanos in 0_i64..1_000_000_000,
        filter in filters(), text in names(), bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) -> (Generation, Request) {
        let (id, time, payload) = match generation {
            Generation::V1 => (v1_id(random), WallClock::from_seconds(seconds), text.into_bytes()),
            Generation::V2 => (
                Ksuid::new(seconds, random).to_string(),
                WallClock::from_nanos(seconds * 1_000_000_000 + nanos),
                bytes,
            ),
        };
        let payload = Zeroizing::new(payload);
        (generation, Request { id, sender, caller, collective, agent, ttl, time, filter, payload })
    }
}

fn proof(generation: Generation, secured: bool, signature: Vec<u8>, text: String) -> Proof {
    match (generation, secured) {
        (Generation::V1, false) => Proof::Insecure,
        (Generation::V1, true) => Proof::V1 { signature, certificate_pem: text },
        (Generation::V2, _) => Proof::V2 { signature, caller_jwt: text },
    }
}

prop_compose! {
    fn events()(
        kind in prop::sample::select(EventKind::ALL.to_vec()), id in texts(), identity in texts(), component in texts(),
        timestamp: i64, version in prop::option::of(texts()), new_version in prop::option::of(texts()),
    ) -> Event {
        Event { kind, id, identity, component, timestamp, version, new_version }
    }
}

/// JSON values of moderate size, as text.
fn documents() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(texts(), inner, 0..5)
                .prop_map(|map| Value::from_iter(map.into_iter().collect::<Vec<_>>())),
        ]
    })
}

/// The document with its keys in order, written by the library a piece at a time: its objects keep either order, depending
/// on its features.
fn by_key(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(by_key).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().collect();
            let text =
                |(key, value): (&String, &Value)| format!("{}:{}", Value::from(key.as_str()), by_key(value));
            format!("{{{}}}", members.into_iter().map(text).collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}

proptest! {
    // A failing case is printed whole; there is no file to commit.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_come_back_as_they_were_sent(
        (generation, request) in requests(), secured: bool, signature in prop::collection::vec(any::<u8>(), 1..80),
        text in names(), transport_sender in texts(),
    ) {
        let proof = proof(generation, secured, signature, text);
        let body = request_body(generation, &request).unwrap();
        let sent = seal_request(generation, &body, &proof, "a.reply.b", &transport_sender, Some(["u", "i", "u"]));
        let open = open_request(&sent.unwrap()).unwrap();
        prop_assert_eq!(open.generation, generation);
        prop_assert_eq!(&open.signed, &body);
        prop_assert_eq!(open.request, request);
        prop_assert_eq!(open.proof, proof);
        prop_assert_eq!((open.reply_to.as_str(), open.transport_sender), ("a.reply.b", transport_sender));
    }

    #[test]
    fn replies_come_back_as_they_were_sent((generation, request) in requests()) {
        let reply = Reply {
            request: request.id,
            sender: request.sender,
            agent: request.agent,
            time: request.time,
            payload: request.payload.to_vec(),
        };
        let sent = seal_reply(generation, &reply, None).unwrap();
        let transport_sender = reply.sender.clone();
        prop_assert_eq!(open_reply(&sent).unwrap(), OpenReply { generation, reply, transport_sender });
    }

    #[test]
    fn payloads_come_back_as_they_were_sent(
        agent in texts(), action in texts(), statusmsg in texts(), code in 0_u8..6, data in documents(),
    ) {
        let text = data.to_string();
        let payload = rpc::encode_request(&agent, &action, &text).unwrap();
        let asked = rpc::decode_request(&payload).unwrap();
        let expected = if data.is_null() { "{}" } else { &text };
        prop_assert_eq!((&asked.agent, &asked.action, asked.data.get()), (&agent, &action, expected));

        let statuscode = StatusCode::from_number(code).unwrap();
        prop_assert_eq!(statuscode.number(), code);
        let data = RawValue::from_string(text.clone()).unwrap();
        let sent = rpc::encode_reply(&RpcReply { action: action.clone(), statuscode, statusmsg: statusmsg.clone(), data });
        let answer = rpc::decode_reply(&sent).unwrap();
        prop_assert_eq!((answer.action, answer.statuscode, answer.statusmsg), (action, statuscode, statusmsg));
        prop_assert_eq!(answer.data.get(), expected);
    }

    #[test]
    fn events_come_back_in_both_encodings(event in events()) {
        for format in [EventFormat::CloudEvent, EventFormat::Choria] {
            prop_assert_eq!(event::decode(&event::encode(&event, format)), Ok(event.clone()));
        }
    }

    #[test]
    fn sorting_keeps_the_meaning(document in documents()) {
        let sorted = json::sorted(&serde_json::to_string_pretty(&document).unwrap()).unwrap();
        prop_assert_eq!(sorted, by_key(&document));
    }

    #[test]
    fn identifiers_sort_by_time(seconds in 1_400_000_001_i64..5_600_000_000, low: [u8; 16], high: [u8; 16]) {
        let (earlier, later) = (Ksuid::new(seconds - 1, low), Ksuid::new(seconds, high));
        prop_assert!(earlier < later && earlier.to_string() < later.to_string());
        prop_assert_eq!(later.to_string().parse(), Ok(later));
        prop_assert_eq!(later.seconds(), seconds);
    }

    #[test]
    fn versions_are_ordered_one_way(left in "[0-9a-z.~:_-]{0,12}", middle in "[0-9a-z.~:_-]{0,12}", right in "[0-9a-z.~:_-]{0,12}") {
        prop_assert_eq!(version::compare(&left, &middle), version::compare(&middle, &left).reverse());
        if version::compare(&left, &middle).is_le() && version::compare(&middle, &right).is_le() {
            prop_assert!(version::compare(&left, &right).is_le());
        }
    }

    #[test]
    fn escaped_text_is_bounded_and_still(text in "\\PC{0,40}|[\\x00-\\x1f\u{202e}\u{2028}x]{0,40}", max in 0_usize..60) {
        let safe = escape_bounded(&text, max);
        prop_assert!(safe.chars().count() <= max);
        let moves = |character: char| character.is_control() || matches!(character, '\u{202e}' | '\u{2028}');
        prop_assert!(!safe.contains(moves));
    }

    #[test]
    fn arbitrary_bytes_bring_nothing_down(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for (_, body) in BODIES {
            body(&bytes);
        }
    }

    #[test]
    fn arbitrary_json_brings_nothing_down(document in documents()) {
        for (_, body) in BODIES {
            body(document.to_string().as_bytes());
        }
    }

    #[test]
    fn mutated_recordings_bring_nothing_down(
        name in prop::sample::select(RECORDINGS.to_vec()), pick: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..6),
    ) {
        let lines = recording(name);
        let mut data = pick.get(&lines).data.clone().into_bytes();
        for (place, byte, how) in changes {
            let place = place.index(data.len());
            match how {
                0 => data[place] = byte,
                1 => data.insert(place, byte),
                _ => drop(data.remove(place)),
            }
        }
        fuzzing::open_request(&data);
        fuzzing::open_reply(&data);
        fuzzing::lifecycle_event(&data);
    }

    #[test]
    fn mutated_tokens_and_signing_requests_bring_nothing_down(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5), in_base64: bool,
    ) {
        let answers = || replies("v1-x509").into_iter().filter_map(|open| rpc::decode_reply(&open.reply.payload).ok());
        let jwt = answers().find_map(|answer| decode_output::<JwtReply>(&answer).ok().filter(|out| !out.jwt.is_empty()));
        let csr = answers().find_map(|answer| decode_output::<CsrReply>(&answer).ok());
        let (mut jwt, csr) = (jwt.unwrap().jwt.into_bytes(), csr.unwrap().csr);
        let mut der = pem::parse(csr.as_bytes()).unwrap().into_contents();
        for (place, byte) in &places {
            let (in_jwt, in_der) = (place.index(jwt.len()), place.index(der.len()));
            // Letters keep it base64, so that the change reaches the claims.
            jwt[in_jwt] = if in_base64 { b'A' + byte % 26 } else { *byte };
            der[in_der] = *byte;
        }
        fuzzing::tokens(&jwt);
        fuzzing::pem_blocks(&der);
        fuzzing::signing_requests(pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", der)).as_bytes());
    }

    #[test]
    fn mutations_inside_good_layers_bring_nothing_down(
        (generation, request) in requests(), place: prop::sample::Index, byte: u8,
    ) {
        let mut body = request_body(generation, &request).unwrap();
        let place = place.index(body.len());
        body[place] = byte;
        let proof = proof(generation, true, vec![1], "x".to_owned());
        if let Ok(sent) = seal_request(generation, &body, &proof, "", "", None) {
            fuzzing::open_request(&sent);
        }
        fuzzing::rpc_payload(&body);
        fuzzing::helper_reply(&body);
        fuzzing::json_sorted(&body);
    }
}
