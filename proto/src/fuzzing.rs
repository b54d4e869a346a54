//! The bodies of the fuzz targets. Ordinary tests run them over a seed corpus (tests/fuzz_bodies.rs), cargo-fuzz runs them over
//! everything else (fuzz/). Each takes bytes of a stranger and asserts a law about what comes out; a panic is the finding.
#![expect(clippy::missing_panics_doc, reason = "a panic is what these are for, as said above")]

use crate::{
    choria::{
        agents::{
            self, ConfigureInput, CsrInput, CsrReply, Gen25519Input, Gen25519Reply, InventoryReply, JwtReply,
            MessageReply, RestartInput,
        },
        csr, discovery,
        envelope::{self, OpenReply},
        event::{self, EventFormat},
        identity::Identity,
        ksuid::Ksuid,
        pem, rpc, subject, token, version,
    },
    helper,
    json::{self, Limits},
    text::{MAX_ERROR_TEXT, escape_bounded},
    time::WallClock,
};

mod mesh;
mod provider;

pub use mesh::{mesh_fill, mesh_keys, mesh_messages, mesh_plan, mesh_values};
pub use provider::{
    provider_lines, provider_log, provider_reply, provider_request, provider_schema, provider_type,
    provider_value,
};

/// One body: a name, and what it does with the bytes.
pub type Body = (&'static str, fn(&[u8]));

/// Every body, by the name of its target.
pub const BODIES: [Body; 23] = [
    ("open_request", open_request),
    ("open_reply", open_reply),
    ("rpc_payload", rpc_payload),
    ("lifecycle_event", lifecycle_event),
    ("helper_reply", helper_reply),
    ("json_sorted", json_sorted),
    ("names", names),
    ("texts", texts),
    ("tokens", tokens),
    ("signing_requests", signing_requests),
    ("pem_blocks", pem_blocks),
    ("provider_reply", provider_reply),
    ("provider_request", provider_request),
    ("provider_schema", provider_schema),
    ("provider_type", provider_type),
    ("provider_value", provider_value),
    ("provider_lines", provider_lines),
    ("provider_log", provider_log),
    ("mesh_keys", mesh_keys),
    ("mesh_plan", mesh_plan),
    ("mesh_values", mesh_values),
    ("mesh_messages", mesh_messages),
    ("mesh_fill", mesh_fill),
];

/// An error and its causes are short and print on one line, whatever was received.
fn is_printable(error: &(dyn std::error::Error + 'static)) {
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        assert!(text.chars().count() <= MAX_ERROR_TEXT, "an endless error: {text}");
        assert!(!text.contains(char::is_control), "an error that moves the cursor: {text:?}");
        next = error.source();
    }
}

/// A request that opens is rebuilt and opens to the same again.
pub fn open_request(bytes: &[u8]) {
    let open = match envelope::open_request(bytes) {
        Ok(open) => open,
        Err(error) => return is_printable(&error),
    };
    assert!(open.reply_to.is_empty() || subject::is_publishable(&open.reply_to));
    let _ = discovery::is_ping(&open.request.payload);
    let _ = open.request.filter.matches(&["discovery"], "n1.example.net");
    rpc_payload(&open.request.payload);
    let Ok(body) = envelope::request_body(open.generation, &open.request) else {
        unreachable!("what was text stays text");
    };
    let sent = envelope::seal_request(
        open.generation,
        &body,
        &open.proof,
        &open.reply_to,
        &open.transport_sender,
        Some(["a", "b", "c"]),
    );
    let again = sent.as_deref().map(envelope::open_request);
    let Ok(Ok(again)) = again else { unreachable!("a rebuilt request opens") };
    assert_eq!(open.request, again.request);
    assert_eq!(
        (open.proof, open.reply_to, open.transport_sender),
        (again.proof, again.reply_to, again.transport_sender)
    );
}

/// A reply that opens is rebuilt and opens to the same again.
pub fn open_reply(bytes: &[u8]) {
    let open = match envelope::open_reply(bytes) {
        Ok(open) => open,
        Err(error) => return is_printable(&error),
    };
    rpc_payload(&open.reply.payload);
    let sent = envelope::seal_reply(open.generation, &open.reply, None);
    let again = sent.as_deref().map(envelope::open_reply);
    let Ok(Ok(again)) = again else { unreachable!("a rebuilt reply opens") };
    let sender = open.reply.sender.clone();
    assert_eq!(again, OpenReply { transport_sender: sender, ..open });
}

/// A payload of an agent, taken as a request and as a reply, decoded into every typed shape.
pub fn rpc_payload(bytes: &[u8]) {
    match rpc::decode_request(bytes) {
        Ok(request) => {
            let _ = agents::decode_input::<ConfigureInput<'_>>(&request.data);
            let _ = agents::decode_input::<CsrInput<'_>>(&request.data);
            let _ = agents::decode_input::<Gen25519Input<'_>>(&request.data);
            let _ = agents::decode_input::<RestartInput<'_>>(&request.data).map(|input| input.to_json());
            let Ok(again) = rpc::encode_request(&request.agent, &request.action, request.data.get()) else {
                unreachable!("data that was read is JSON");
            };
            let again = rpc::decode_request(&again);
            assert!(again.is_ok_and(|again| again.agent == request.agent && again.data.get() == request.data.get()));
        }
        Err(error) => is_printable(&error),
    }
    match rpc::decode_reply(bytes) {
        Ok(reply) => {
            let faults = [
                agents::decode_output::<JwtReply>(&reply).err(),
                agents::decode_output::<Gen25519Reply>(&reply).err(),
                agents::decode_output::<CsrReply>(&reply).err(),
                agents::decode_output::<InventoryReply>(&reply).err(),
                agents::decode_output::<MessageReply>(&reply).err(),
            ];
            faults.iter().flatten().for_each(|fault| is_printable(fault));
            let again = rpc::decode_reply(&rpc::encode_reply(&reply));
            assert!(again.is_ok_and(
                |again| again.statusmsg == reply.statusmsg && again.data.get() == reply.data.get()
            ));
        }
        Err(error) => is_printable(&error),
    }
}

/// An event that decodes is the same after either encoding.
pub fn lifecycle_event(bytes: &[u8]) {
    match event::decode(bytes) {
        Ok(event) => {
            for format in [EventFormat::CloudEvent, EventFormat::Choria] {
                let written = event::encode(&event, format);
                // Writing identity and id twice may take an event near the limit over it.
                if written.len() <= Limits::EVENT.max_bytes {
                    assert_eq!(event::decode(&written).as_ref(), Ok(&event));
                }
            }
            if let Err(error) = Identity::parse(&event.identity) {
                is_printable(&error);
            }
        }
        Err(error) => is_printable(&error),
    }
}

/// A helper's output is a reply or a printable error, and neither shows in debug output beyond key names.
pub fn helper_reply(bytes: &[u8]) {
    match helper::decode_reply(bytes) {
        Ok(reply) => drop(format!("{reply:?}")),
        Err(error) => is_printable(&error),
    }
}

/// Sorting twice changes nothing more, and what is sorted means the same.
pub fn json_sorted(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match json::sorted(text) {
        Ok(once) => {
            assert_eq!(json::sorted(&once).as_ref(), Ok(&once));
            assert_eq!(json::check(once.as_bytes(), &Limits::FRAME), Ok(()));
            let parse = serde_json::from_str::<serde_json::Value>;
            let (before, after) = (parse(text), parse(&once));
            if let (Ok(before), Ok(after)) = (before, after) {
                assert_eq!(before, after);
            }
        }
        Err(error) => is_printable(&error),
    }
}

/// Identities, identifiers and versions.
pub fn names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Identity::parse(text) {
        Ok(identity) => {
            assert_eq!(identity.as_str(), text);
            assert!(subject::is_publishable(&subject::node("provisioning", &identity)));
            assert_eq!(escape_bounded(text, 255), text);
        }
        Err(error) => is_printable(&error),
    }
    if let Ok(ksuid) = text.parse::<Ksuid>() {
        assert_eq!(ksuid.to_string(), text);
    }
    let (left, right) = text.split_once('\n').unwrap_or((text, "1.0~rc1-2"));
    assert_eq!(version::compare(left, right), version::compare(right, left).reverse());
    assert!(version::compare(left, left).is_eq());
}

/// Escaped text holds its bound and moves no cursor.
pub fn texts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for max in [0, 1, 7, 300] {
        let safe = escape_bounded(&text, max);
        assert!(safe.chars().count() <= max && !safe.contains(char::is_control), "{safe:?}");
        assert_eq!(escape_bounded(&safe, max), safe, "escaping twice changes nothing");
    }
}

/// A token's claims are typed or refused, and nothing verifies without its signature.
pub fn tokens(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (key, now) = (token::VerifyKey::Ed25519([7; 32]), WallClock::from_seconds(1_795_976_700));
    match token::verify_provisioning(text, &key, now) {
        Ok(_) => unreachable!("nobody holds the private half of that key"),
        Err(error) => is_printable(&error),
    }
    match token::parse_provisioning(text) {
        Ok(claims) => match claims.helper_json() {
            Ok(json) => assert!(
                serde_json::from_str::<serde_json::Value>(json.get()).is_ok_and(|json| json.is_object())
            ),
            Err(error) => is_printable(&error),
        },
        Err(error) => is_printable(&error),
    }
    if let Err(error) = token::parse_server(text) {
        is_printable(&error);
    }
    if let Err(error) = token::parse_client(text) {
        is_printable(&error);
    }
    if let Err(error) = token::VerifyKey::from_text(text) {
        is_printable(&error);
    }
}

/// A signing request is read in full or refused, and so judged.
pub fn signing_requests(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match csr::examine(text) {
        Ok(facts) => {
            if let Ok(identity) = Identity::parse("web1.example.net")
                && let Err(error) = csr::judge(&facts, &identity, &[])
            {
                is_printable(&error);
            }
        }
        Err(error) => is_printable(&error),
    }
}

/// A block is found or refused; an encrypted key comes back as it was.
pub fn pem_blocks(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        match pem::first_block(text) {
            Ok(block) => assert!(!format!("{block:?}").contains(char::is_control)),
            Err(error) => is_printable(&error),
        }
        if let Err(error) = pem::decrypt_der(text, &[7; 32]) {
            is_printable(&error);
        }
    }
    let sealed = pem::encrypt_der(bytes, &[7; 32], [9; 16]);
    assert!(
        pem::decrypt_der(&sealed, &[7; 32]).is_ok_and(|der| *der == bytes)
            || sealed.len() > pem::MAX_PEM_TEXT
    );
}
