//! Protocol 2: secure and message layers (choria.md 3.2).

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::{
    error::{Layer, WireError},
    message::{Proof, Reply, Request, not_empty},
    transport::{decode, encode},
};
use crate::{
    choria::{filter::Filter, generation::Generation},
    json::{self, Limits, Object},
    time::WallClock,
};

const SECURE_REQUEST: &str = "io.choria.protocol.v2.secure_request";
const REQUEST: &str = "io.choria.protocol.v2.request";
const SECURE_REPLY: &str = "io.choria.protocol.v2.secure_reply";
const REPLY: &str = "io.choria.protocol.v2.reply";

#[derive(Serialize, Deserialize)]
struct SecureRequest<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    request: Cow<'a, str>,
    #[serde(borrow)]
    signature: Cow<'a, str>,
    #[serde(borrow)]
    caller: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct SecureReply<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    reply: Cow<'a, str>,
    #[serde(borrow)]
    hash: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct RequestMessage<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    sender: Cow<'a, str>,
    #[serde(borrow)]
    caller: Cow<'a, str>,
    #[serde(borrow)]
    collective: Cow<'a, str>,
    #[serde(borrow)]
    agent: Cow<'a, str>,
    ttl: u32,
    time: i64,
    #[serde(default = "no_filter")]
    filter: Object<Cow<'a, Filter>>,
}

#[derive(Serialize, Deserialize)]
struct ReplyMessage<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow)]
    request: Cow<'a, str>,
    #[serde(borrow)]
    sender: Cow<'a, str>,
    #[serde(borrow)]
    agent: Cow<'a, str>,
    time: i64,
}

/// The peer always sends a filter, yet the schema lets it be absent.
fn no_filter<'a>() -> Object<Cow<'a, Filter>> {
    Object(Cow::Owned(Filter::default()))
}

pub(super) fn request_body(request: &Request) -> Zeroizing<Vec<u8>> {
    let payload = encode(&request.payload);
    json::to_secret_bytes(&RequestMessage {
        protocol: REQUEST.into(),
        message: payload.as_str().into(),
        id: (&request.id).into(),
        sender: (&request.sender).into(),
        caller: (&request.caller).into(),
        collective: (&request.collective).into(),
        agent: (&request.agent).into(),
        ttl: request.ttl,
        time: request.time.nanos(),
        filter: Object(Cow::Borrowed(&request.filter)),
    })
}

pub(super) fn secure_request(body: &[u8], proof: &Proof) -> Result<Zeroizing<Vec<u8>>, WireError> {
    let Proof::V2 { signature, caller_jwt } = proof else {
        return Err(WireError::ProofKind { generation: Generation::V2, proof: proof.kind() });
    };
    let body = encode(body);
    Ok(json::to_secret_bytes(&SecureRequest {
        protocol: SECURE_REQUEST.into(),
        request: body.as_str().into(),
        signature: STANDARD.encode(signature).into(),
        caller: caller_jwt.into(),
    }))
}

pub(super) fn open_secure_request(bytes: &[u8]) -> Result<(Zeroizing<Vec<u8>>, Proof), WireError> {
    let secure: SecureRequest<'_> =
        json::object(bytes, &Limits::FRAME).map_err(WireError::json(Layer::Secure))?;
    if secure.protocol != SECURE_REQUEST {
        return Err(WireError::protocol(Layer::Secure, &secure.protocol));
    }
    for (field, text) in
        [("request", &secure.request), ("signature", &secure.signature), ("caller", &secure.caller)]
    {
        if text.is_empty() {
            return Err(WireError::Schema { layer: Layer::Secure, field, rule: "may not be empty" });
        }
    }
    let signature = decode(Layer::Secure, "signature", &secure.signature)?.to_vec();
    let body = decode(Layer::Secure, "request", &secure.request)?;
    Ok((body, Proof::V2 { signature, caller_jwt: secure.caller.into_owned() }))
}

pub(super) fn open_request_body(bytes: &[u8]) -> Result<Request, WireError> {
    let message: RequestMessage<'_> =
        json::object(bytes, &Limits::FRAME).map_err(WireError::json(Layer::Message))?;
    if message.protocol != REQUEST {
        return Err(WireError::protocol(Layer::Message, &message.protocol));
    }
    not_empty("id", &message.id)?;
    not_empty("caller", &message.caller)?;
    not_empty("collective", &message.collective)?;
    not_empty("agent", &message.agent)?;
    if message.ttl < 1 {
        return Err(WireError::Schema { layer: Layer::Message, field: "ttl", rule: "must be at least 1" });
    }
    if message.time < 1 {
        return Err(WireError::Schema { layer: Layer::Message, field: "time", rule: "must be at least 1" });
    }
    Ok(Request {
        payload: decode(Layer::Message, "message", &message.message)?,
        id: message.id.into_owned(),
        sender: message.sender.into_owned(),
        caller: message.caller.into_owned(),
        collective: message.collective.into_owned(),
        agent: message.agent.into_owned(),
        ttl: message.ttl,
        time: WallClock::from_nanos(message.time),
        filter: message.filter.0.into_owned(),
    })
}

pub(super) fn secure_reply(reply: &Reply) -> Zeroizing<Vec<u8>> {
    let payload = encode(&reply.payload);
    let message = json::to_secret_bytes(&ReplyMessage {
        protocol: REPLY.into(),
        message: payload.as_str().into(),
        request: (&reply.request).into(),
        sender: (&reply.sender).into(),
        agent: (&reply.agent).into(),
        time: reply.time.nanos(),
    });
    let body = encode(&message);
    json::to_secret_bytes(&SecureReply {
        protocol: SECURE_REPLY.into(),
        reply: body.as_str().into(),
        hash: STANDARD.encode(Sha256::digest(&*message)).into(),
    })
}

pub(super) fn open_reply(bytes: &[u8]) -> Result<Reply, WireError> {
    let secure: SecureReply<'_> =
        json::object(bytes, &Limits::FRAME).map_err(WireError::json(Layer::Secure))?;
    if secure.protocol != SECURE_REPLY {
        return Err(WireError::protocol(Layer::Secure, &secure.protocol));
    }
    let body = decode(Layer::Secure, "reply", &secure.reply)?;
    if secure.hash != STANDARD.encode(Sha256::digest(&*body)) {
        return Err(WireError::Hash);
    }
    let message: ReplyMessage<'_> =
        json::object(&body, &Limits::FRAME).map_err(WireError::json(Layer::Message))?;
    if message.protocol != REPLY {
        return Err(WireError::protocol(Layer::Message, &message.protocol));
    }
    let mut payload = decode(Layer::Message, "message", &message.message)?;
    Ok(Reply {
        payload: std::mem::take(&mut *payload),
        request: message.request.into_owned(),
        sender: message.sender.into_owned(),
        agent: message.agent.into_owned(),
        time: WallClock::from_nanos(message.time),
    })
}
