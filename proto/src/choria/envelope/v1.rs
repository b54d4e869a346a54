//! Protocol 1: secure and message layers (choria.md 3.1).

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::{
    error::{Layer, WireError},
    message::{Proof, Reply, Request, not_empty},
    transport::decode,
};
use crate::{
    choria::{filter::Filter, generation::Generation},
    json::{self, Limits, Object},
    time::WallClock,
};

const SECURE_REQUEST: &str = "choria:secure:request:1";
const REQUEST: &str = "choria:request:1";
const SECURE_REPLY: &str = "choria:secure:reply:1";
const REPLY: &str = "choria:reply:1";
/// Stands where signature and certificate of an unsigned request would be.
const INSECURE: &str = "insecure";
const ID_LENGTH: usize = 32;
const MIN_TTL: u32 = 30;

#[derive(Serialize, Deserialize)]
struct SecureRequest<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow)]
    signature: Cow<'a, str>,
    #[serde(borrow)]
    pubcert: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct SecureReply<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow)]
    hash: Cow<'a, str>,
}

/// A payload and what routes it.
#[derive(Serialize, Deserialize)]
struct Layered<'a, E> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    envelope: E,
}

#[derive(Serialize, Deserialize)]
struct RequestEnvelope<'a> {
    #[serde(borrow)]
    requestid: Cow<'a, str>,
    #[serde(borrow)]
    senderid: Cow<'a, str>,
    #[serde(borrow)]
    callerid: Cow<'a, str>,
    #[serde(borrow)]
    collective: Cow<'a, str>,
    #[serde(borrow)]
    agent: Cow<'a, str>,
    ttl: u32,
    time: i64,
    filter: Object<Cow<'a, Filter>>,
}

#[derive(Serialize, Deserialize)]
struct ReplyEnvelope<'a> {
    #[serde(borrow)]
    requestid: Cow<'a, str>,
    #[serde(borrow)]
    senderid: Cow<'a, str>,
    #[serde(borrow)]
    agent: Cow<'a, str>,
    time: i64,
}

pub(super) fn request_body(request: &Request) -> Result<Zeroizing<Vec<u8>>, WireError> {
    let payload = std::str::from_utf8(&request.payload).map_err(|_| WireError::NotText)?;
    Ok(json::to_secret_bytes(&Layered {
        protocol: REQUEST.into(),
        message: payload.into(),
        envelope: RequestEnvelope {
            requestid: (&request.id).into(),
            senderid: (&request.sender).into(),
            callerid: (&request.caller).into(),
            collective: (&request.collective).into(),
            agent: (&request.agent).into(),
            ttl: request.ttl,
            time: request.time.seconds(),
            filter: Object(Cow::Borrowed(&request.filter)),
        },
    }))
}

pub(super) fn secure_request(body: &[u8], proof: &Proof) -> Result<Zeroizing<Vec<u8>>, WireError> {
    let body = std::str::from_utf8(body).map_err(|_| WireError::NotText)?;
    let (signature, pubcert): (Cow<'_, str>, &str) = match proof {
        Proof::Insecure => (INSECURE.into(), INSECURE),
        Proof::V1 { signature, certificate_pem } => (STANDARD.encode(signature).into(), certificate_pem),
        Proof::V2 { .. } => {
            return Err(WireError::ProofKind { generation: Generation::V1, proof: proof.kind() });
        }
    };
    Ok(json::to_secret_bytes(&SecureRequest {
        protocol: SECURE_REQUEST.into(),
        message: body.into(),
        signature,
        pubcert: pubcert.into(),
    }))
}

pub(super) fn open_secure_request(bytes: &[u8]) -> Result<(Zeroizing<Vec<u8>>, Proof), WireError> {
    let secure: SecureRequest<'_> =
        json::object(bytes, &Limits::FRAME).map_err(WireError::json(Layer::Secure))?;
    if secure.protocol != SECURE_REQUEST {
        return Err(WireError::protocol(Layer::Secure, &secure.protocol));
    }
    for (field, text) in
        [("message", &secure.message), ("signature", &secure.signature), ("pubcert", &secure.pubcert)]
    {
        if text.is_empty() {
            return Err(WireError::Schema { layer: Layer::Secure, field, rule: "may not be empty" });
        }
    }
    let proof = if secure.signature == INSECURE {
        Proof::Insecure
    } else {
        Proof::V1 {
            signature: decode(Layer::Secure, "signature", &secure.signature)?.to_vec(),
            certificate_pem: secure.pubcert.into_owned(),
        }
    };
    Ok((Zeroizing::new(secure.message.into_owned().into_bytes()), proof))
}

pub(super) fn open_request_body(bytes: &[u8]) -> Result<Request, WireError> {
    let message: Layered<'_, Object<RequestEnvelope<'_>>> =
        json::object(bytes, &Limits::FRAME).map_err(WireError::json(Layer::Message))?;
    if message.protocol != REQUEST {
        return Err(WireError::protocol(Layer::Message, &message.protocol));
    }
    let envelope = message.envelope.0;
    not_empty("message", &message.message)?;
    not_empty("callerid", &envelope.callerid)?;
    not_empty("collective", &envelope.collective)?;
    not_empty("agent", &envelope.agent)?;
    if envelope.requestid.chars().count() != ID_LENGTH {
        return Err(WireError::Schema {
            layer: Layer::Message,
            field: "requestid",
            rule: "must have 32 characters",
        });
    }
    if envelope.ttl < MIN_TTL {
        return Err(WireError::Schema { layer: Layer::Message, field: "ttl", rule: "must be at least 30" });
    }
    Ok(Request {
        id: envelope.requestid.into_owned(),
        sender: envelope.senderid.into_owned(),
        caller: envelope.callerid.into_owned(),
        collective: envelope.collective.into_owned(),
        agent: envelope.agent.into_owned(),
        ttl: envelope.ttl,
        time: WallClock::from_seconds(envelope.time),
        filter: envelope.filter.0.into_owned(),
        payload: Zeroizing::new(message.message.into_owned().into_bytes()),
    })
}

pub(super) fn secure_reply(reply: &Reply) -> Result<Zeroizing<Vec<u8>>, WireError> {
    let payload = std::str::from_utf8(&reply.payload).map_err(|_| WireError::NotText)?;
    let message = json::to_secret_text(&Layered {
        protocol: REPLY.into(),
        message: payload.into(),
        envelope: ReplyEnvelope {
            requestid: (&reply.request).into(),
            senderid: (&reply.sender).into(),
            agent: (&reply.agent).into(),
            time: reply.time.seconds(),
        },
    });
    let hash = STANDARD.encode(Sha256::digest(message.as_bytes()));
    Ok(json::to_secret_bytes(&SecureReply {
        protocol: SECURE_REPLY.into(),
        message: message.as_str().into(),
        hash: hash.into(),
    }))
}

pub(super) fn open_reply(bytes: &[u8]) -> Result<Reply, WireError> {
    let secure: SecureReply<'_> =
        json::object(bytes, &Limits::FRAME).map_err(WireError::json(Layer::Secure))?;
    if secure.protocol != SECURE_REPLY {
        return Err(WireError::protocol(Layer::Secure, &secure.protocol));
    }
    if secure.hash != STANDARD.encode(Sha256::digest(secure.message.as_bytes())) {
        return Err(WireError::Hash);
    }
    let message: Layered<'_, Object<ReplyEnvelope<'_>>> =
        json::object(secure.message.as_bytes(), &Limits::FRAME).map_err(WireError::json(Layer::Message))?;
    if message.protocol != REPLY {
        return Err(WireError::protocol(Layer::Message, &message.protocol));
    }
    let envelope = message.envelope.0;
    Ok(Reply {
        request: envelope.requestid.into_owned(),
        sender: envelope.senderid.into_owned(),
        agent: envelope.agent.into_owned(),
        time: WallClock::from_seconds(envelope.time),
        payload: message.message.into_owned().into_bytes(),
    })
}
