//! The outermost layer: routing headers around base64 of the secure layer (choria.md 3.1, 3.2).

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::error::{Layer, WireError};
use crate::{
    choria::{generation::Generation, subject},
    json::{self, Limits},
};

const V1: &str = "choria:transport:1";
const V2: &str = "io.choria.protocol.v2.transport";

/// The connected server, the own identity, the connected server again: one entry of `seen-by` or `trace`.
type Hop<'a> = [&'a str; 3];

#[derive(Deserialize)]
struct Received<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    data: Cow<'a, str>,
    #[serde(borrow)]
    headers: &'a RawValue,
}

#[derive(Serialize)]
struct Sent<'a, H> {
    protocol: &'static str,
    data: &'a str,
    headers: H,
}

#[derive(Serialize, Deserialize)]
struct HeadersV1<'a> {
    #[serde(rename = "reply-to", default, borrow, skip_serializing_if = "str::is_empty")]
    reply_to: Cow<'a, str>,
    #[serde(rename = "mc_sender", default, borrow, skip_serializing_if = "str::is_empty")]
    sender: Cow<'a, str>,
    #[serde(rename = "seen-by", skip_deserializing, skip_serializing_if = "Option::is_none")]
    hops: Option<[Hop<'a>; 1]>,
}

#[derive(Serialize, Deserialize)]
struct HeadersV2<'a> {
    #[serde(rename = "reply", default, borrow, skip_serializing_if = "str::is_empty")]
    reply_to: Cow<'a, str>,
    #[serde(default, borrow, skip_serializing_if = "str::is_empty")]
    sender: Cow<'a, str>,
    #[serde(rename = "trace", skip_deserializing, skip_serializing_if = "Option::is_none")]
    hops: Option<[Hop<'a>; 1]>,
}

/// A transport layer taken off.
pub(super) struct Opened {
    pub generation: Generation,
    pub reply_to: String,
    pub sender: String,
    /// The bytes of the secure layer.
    pub secure: Zeroizing<Vec<u8>>,
}

pub(super) fn open(bytes: &[u8]) -> Result<Opened, WireError> {
    let received: Received<'_> =
        json::object(bytes, &Limits::FRAME).map_err(WireError::json(Layer::Transport))?;
    let headers = received.headers.get().as_bytes();
    let (generation, reply_to, sender) = match &*received.protocol {
        V1 => {
            let headers: HeadersV1<'_> =
                json::object(headers, &Limits::FRAME).map_err(WireError::json(Layer::Transport))?;
            (Generation::V1, headers.reply_to.into_owned(), headers.sender.into_owned())
        }
        V2 => {
            let headers: HeadersV2<'_> =
                json::object(headers, &Limits::FRAME).map_err(WireError::json(Layer::Transport))?;
            (Generation::V2, headers.reply_to.into_owned(), headers.sender.into_owned())
        }
        other => return Err(WireError::protocol(Layer::Transport, other)),
    };
    if !reply_to.is_empty() && !subject::is_publishable(&reply_to) {
        return Err(WireError::Schema {
            layer: Layer::Transport,
            field: "reply",
            rule: "is not a plain subject",
        });
    }
    let secure = decode(Layer::Transport, "data", &received.data)?;
    Ok(Opened { generation, reply_to, sender, secure })
}

pub(super) fn seal(
    generation: Generation,
    secure: &[u8],
    reply_to: &str,
    sender: &str,
    hop: Option<Hop<'_>>,
) -> Vec<u8> {
    let data = encode(secure);
    let (reply_to, sender, hops) = (Cow::Borrowed(reply_to), Cow::Borrowed(sender), hop.map(|hop| [hop]));
    let mut bytes = match generation {
        Generation::V1 => json::to_secret_bytes(&Sent {
            protocol: V1,
            data: &data,
            headers: HeadersV1 { reply_to, sender, hops },
        }),
        Generation::V2 => json::to_secret_bytes(&Sent {
            protocol: V2,
            data: &data,
            headers: HeadersV2 { reply_to, sender, hops },
        }),
    };
    std::mem::take(&mut *bytes)
}

/// base64 of bytes that may be secret.
pub(super) fn encode(bytes: &[u8]) -> Zeroizing<String> {
    Zeroizing::new(STANDARD.encode(bytes))
}

/// The bytes of a base64 field that may be secret.
pub(super) fn decode(layer: Layer, field: &'static str, text: &str) -> Result<Zeroizing<Vec<u8>>, WireError> {
    STANDARD.decode(text).map(Zeroizing::new).map_err(|_| WireError::Base64 { layer, field })
}
