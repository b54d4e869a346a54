//! What a hostile server does to its replies, layer by layer: outputs, reply, frame.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quartermaster_proto::choria::envelope::Reply;
use serde_json::{Map, Value, json};

use super::malformation::Malformation;

/// Close to the largest that fits into a broker's 1 MiB after the three layers of base64 of protocol 2.
const FILLER: usize = 400 * 1024;
const DEPTH: usize = 100_000;

/// Distorts the RPC payload.
pub(super) fn payload(kind: Malformation, payload: Vec<u8>) -> Vec<u8> {
    if kind == Malformation::NotJson {
        return b"this is no JSON".to_vec();
    }
    if kind == Malformation::DeepJson {
        let outputs = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
        return format!(r#"{{"action":"x","statuscode":0,"statusmsg":"OK","data":{outputs}}}"#).into_bytes();
    }
    let Ok(Value::Object(mut members)) = serde_json::from_slice(&payload) else { return payload };
    match kind {
        Malformation::UnknownStatus => {
            members.insert("statuscode".to_owned(), json!(99));
        }
        Malformation::HostileText => {
            let text = format!("no\r\nlevel=fatal msg=\"injected\"\u{1b}[31m\u{0}{}", "x".repeat(64 * 1024));
            members.insert("statuscode".to_owned(), json!(1));
            members.insert("statusmsg".to_owned(), json!(text));
        }
        Malformation::DataNotObject => {
            members.insert("data".to_owned(), json!(["not", "an", "object"]));
        }
        _ => {
            if let Some(Value::Object(outputs)) = members.get_mut("data") {
                distort_outputs(kind, outputs);
            }
        }
    }
    Value::Object(members).to_string().into_bytes()
}

fn distort_outputs(kind: Malformation, outputs: &mut Map<String, Value>) {
    let mut set = |name: &str, value: Value| {
        outputs.insert(name.to_owned(), value);
    };
    match kind {
        Malformation::PublicKeyShort => set("public_key", json!("ab".repeat(31))),
        Malformation::PublicKeyLong => set("public_key", json!("ab".repeat(33))),
        Malformation::PublicKeyNotHex => set("public_key", json!("zz".repeat(32))),
        Malformation::SignatureWrong => set("signature", json!("ab".repeat(64))),
        Malformation::SignatureShort => set("signature", json!("ab".repeat(63))),
        Malformation::EcdhShort => set("ecdh_public", json!("ab".repeat(31))),
        Malformation::EcdhZero => set("ecdh_public", json!("00".repeat(32))),
        Malformation::EcdhNotHex => set("ecdh_public", json!("zz".repeat(32))),
        Malformation::Oversized => set("filler", json!("x".repeat(FILLER))),
        Malformation::MissingVersion => {
            outputs.remove("version");
        }
        Malformation::MissingOutputs => outputs.clear(),
        Malformation::NullOutputs => outputs.values_mut().for_each(|value| *value = Value::Null),
        Malformation::WrongTypes => outputs.values_mut().for_each(|value| *value = other_type(value)),
        _ => {}
    }
}

fn other_type(value: &Value) -> Value {
    match value {
        Value::String(_) => json!(42),
        Value::Number(_) => json!("42"),
        Value::Bool(_) => json!("yes"),
        Value::Array(_) => json!({"0": "first"}),
        Value::Object(_) => json!(["an", "array"]),
        Value::Null => json!({}),
    }
}

/// Distorts what the reply says about itself.
pub(super) fn reply(kind: Malformation, reply: &mut Reply) {
    match kind {
        Malformation::WrongSender => "somebody.else.example.net".clone_into(&mut reply.sender),
        Malformation::WrongAgent => "scout".clone_into(&mut reply.agent),
        Malformation::WrongRequest => reply.request = reply.request.chars().rev().collect(),
        _ => {}
    }
}

/// Distorts the bytes that are published.
pub(super) fn frame(kind: Malformation, frame: Vec<u8>) -> Vec<u8> {
    match kind {
        Malformation::EmptyFrame => Vec::new(),
        Malformation::Truncated => frame.get(..frame.len() / 2).map(<[u8]>::to_vec).unwrap_or_default(),
        Malformation::HeadersNull => edit(frame, |transport| {
            transport.insert("headers".to_owned(), Value::Null);
        }),
        Malformation::HeadersMissing => edit(frame, |transport| {
            transport.remove("headers");
        }),
        Malformation::BadBase64 => edit(frame, |transport| {
            transport.insert("data".to_owned(), json!("*** no base64 ***"));
        }),
        Malformation::BadHash => edit(frame, |transport| {
            let secure =
                transport.get("data").and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
            let secure = edit(secure.unwrap_or_default(), |secure| {
                secure.insert("hash".to_owned(), json!(STANDARD.encode([7_u8; 32])));
            });
            transport.insert("data".to_owned(), json!(STANDARD.encode(secure)));
        }),
        _ => frame,
    }
}

fn edit(bytes: Vec<u8>, change: impl FnOnce(&mut Map<String, Value>)) -> Vec<u8> {
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(mut members)) => {
            change(&mut members);
            Value::Object(members).to_string().into_bytes()
        }
        _ => bytes,
    }
}
