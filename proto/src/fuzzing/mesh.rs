//! Bodies for the node side.

use super::is_printable;
use crate::mesh::{
    accounts::Account,
    ask::{self, Ask, Changed},
    bound::Bound,
    collect::Item,
    esc,
    fill::{Reply, Request},
    key::{self, ConfigKey},
    need::Need,
    plan::{Planned, read_assignment, read_module_file},
    registry::Entry,
    report::Report,
    signature::{self, PublicNkey},
    unesc,
    value::Json,
    vault::{GetReply, GetRequest, PutReply, PutRequest, SecretChanged, SecretName},
};

/// A text and its token are one to one, a key that is read is written the same again.
pub fn mesh_keys(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let token = esc(text);
    assert_eq!(unesc(&token).as_deref(), Some(text).filter(|text| !text.is_empty()));
    if let Some(back) = unesc(text) {
        assert_eq!(esc(&back), text);
    }
    if let Some([node, module]) = key::parts::<2>(text) {
        assert_eq!(key::module_key(&node, &module).as_deref(), Ok(text));
    }
    if let Some(ConfigKey { node, module, name, dotted: false }) = ConfigKey::read(text) {
        assert_eq!(key::config_key(&node, &module, &name).as_deref(), Ok(text));
    }
    match text.parse::<SecretName>() {
        Ok(name) => assert_eq!(name.to_string(), text),
        Err(fault) => is_printable(&fault),
    }
    match Account::parse(text) {
        Ok(account) => assert_eq!(account.name(), text),
        Err(fault) => is_printable(&fault),
    }
    match text.parse::<PublicNkey>() {
        Ok(key) => assert_eq!(key.to_string(), text),
        Err(error) => is_printable(&error),
    }
    if let Err(error) = signature::verify(Some(text), &[], "a", b"") {
        is_printable(&error);
    }
}

/// A plan that is read is written and read to the same; faults and unknown members print quietly.
pub fn mesh_plan(bytes: &[u8]) {
    match read_assignment("web1.forge", bytes) {
        Ok((assignment, unknown)) => {
            assert!(unknown.iter().all(|place| !place.contains(char::is_control)), "{unknown:?}");
            if let Planned::Unreadable(fault) = &assignment.planned {
                is_printable(fault);
                return;
            }
            let again = read_assignment("web1.forge", &assignment.encode());
            assert_eq!(again, Ok((assignment, vec![])));
        }
        Err(fault) => is_printable(&fault),
    }
    if let Err(fault) = read_module_file(bytes) {
        is_printable(&fault);
    }
}

/// Values, entries of owners and items: what is read is written to the same.
pub fn mesh_values(bytes: &[u8]) {
    match Json::from_bucket(bytes) {
        Ok(value) => {
            assert_eq!(Json::from_bucket(value.get().as_bytes()), Ok(value.clone()));
            if let Err(error) = value.text() {
                is_printable(&error);
            }
            let answer = ask::encode_answer(Ok(&value));
            assert!(
                ask::read_answer(&answer).is_ok_and(|read| read == Ok(value)) || answer.len() > 8_000_000
            );
        }
        Err(error) => is_printable(&error),
    }
    match Bound::read(bytes) {
        Ok(bound) => assert_eq!(Bound::read(&bound.encode()), Ok(bound)),
        Err(fault) => is_printable(&fault),
    }
    match Item::read("web1.c.forge", bytes) {
        Ok(item) => assert_eq!(Item::read("web1.c.forge", &item.encode()), Ok(item)),
        Err(fault) => is_printable(&fault),
    }
    match Need::read(bytes) {
        Ok(need) => assert_eq!(Need::read(&need.encode()), Ok(need)),
        Err(fault) => is_printable(&fault),
    }
    for kind in ["config", "secret", "dir"] {
        match Entry::read(kind, bytes) {
            Ok(entry) => assert_eq!(Entry::read(kind, &entry.encode()), Ok(entry)),
            Err(fault) => is_printable(&fault),
        }
    }
    let _ = signature::is_broker_answer(bytes);
}

/// What programs ask each other: a message that is read is written to one that says the same.
pub fn mesh_messages(bytes: &[u8]) {
    match GetRequest::read(bytes) {
        Ok(request) => assert_eq!(GetRequest::read(&request.encode()), Ok(request)),
        Err(fault) => is_printable(&fault),
    }
    match GetReply::read(bytes) {
        Ok(reply) => assert_eq!(GetReply::read(&reply.encode()), Ok(reply)),
        Err(fault) => is_printable(&fault),
    }
    match PutRequest::read(bytes) {
        Ok(request) => assert_eq!(PutRequest::read(&request.encode()), Ok(request)),
        Err(fault) => is_printable(&fault),
    }
    match PutReply::read(bytes) {
        Ok(reply) => assert_eq!(PutReply::read(&reply.encode()), Ok(reply)),
        Err(fault) => is_printable(&fault),
    }
    match SecretChanged::read(bytes) {
        // A moment is written to the millisecond, so only what was written once stays the same.
        Ok(changed) => {
            let Ok(once) = SecretChanged::read(&changed.encode()) else {
                unreachable!("what we write is read")
            };
            assert_eq!(SecretChanged::read(&once.encode()), Ok(once));
        }
        Err(fault) => is_printable(&fault),
    }
    match Ask::read(bytes) {
        Ok(ask) => assert_eq!(Ask::read(&ask.encode()), Ok(ask)),
        Err(error) => is_printable(&error),
    }
    match Changed::read(bytes) {
        Ok(changed) => assert_eq!(Changed::read(&changed.encode()), Ok(changed)),
        Err(fault) => is_printable(&fault),
    }
    match Report::read(bytes) {
        Ok(report) => {
            let Ok(once) = Report::read(&report.encode()) else { unreachable!("what we write is read") };
            assert_eq!(Report::read(&once.encode()), Ok(once));
        }
        Err(fault) => is_printable(&fault),
    }
}

/// Lines of the engine's socket, both ways.
pub fn mesh_fill(bytes: &[u8]) {
    match Request::read(bytes) {
        Ok(request) => {
            let line = request.encode();
            assert_eq!(line.split(|byte| *byte == b'\n').count(), 2, "one line");
            assert_eq!(Request::read(&line), Ok(request));
        }
        Err((_, fault)) => is_printable(&fault),
    }
    match Reply::read(bytes) {
        Ok(reply) => drop(reply.encode()),
        Err(fault) => is_printable(&fault),
    }
}
