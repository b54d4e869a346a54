//! Requests and replies as the rest of the program sees them, the same for both generations.

use std::fmt;

use zeroize::Zeroizing;

use super::{
    error::{Layer, WireError},
    transport, v1, v2,
};
use crate::{
    choria::{filter::Filter, generation::Generation},
    time::WallClock,
};

/// A request to an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The request's id: 32 characters in protocol 1 ([`v1_id`]), a KSUID in protocol 2.
    pub id: String,
    /// Identity of the sending process.
    pub sender: String,
    /// Who asks: `choria=<certname>` in protocol 1, the token's `callerid` in protocol 2.
    pub caller: String,
    /// The collective, `provisioning` here.
    pub collective: String,
    /// The agent asked.
    pub agent: String,
    /// Seconds for which the request is valid, before and after `time`.
    pub ttl: u32,
    /// When it was made.
    pub time: WallClock,
    /// Which hosts are meant.
    pub filter: Filter,
    /// What the agent receives; may hold secrets. Protocol 1 carries UTF-8 only.
    pub payload: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Request")
            .field("id", &self.id)
            .field("sender", &self.sender)
            .field("caller", &self.caller)
            .field("collective", &self.collective)
            .field("agent", &self.agent)
            .field("ttl", &self.ttl)
            .field("time", &self.time)
            .field("filter", &self.filter)
            .field("payload", &format_args!("{} bytes", self.payload.len()))
            .finish()
    }
}

/// What vouches for a request (choria.md 3.3).
#[derive(Clone, PartialEq, Eq)]
pub enum Proof {
    /// Protocol 1 of an unsigned network: literal markers.
    Insecure,
    /// Protocol 1 of an x509 network.
    V1 {
        /// RSA PKCS#1 v1.5 SHA-256 over the request body.
        signature: Vec<u8>,
        /// The caller's certificate file, verbatim.
        certificate_pem: String,
    },
    /// Protocol 2.
    V2 {
        /// Ed25519 over the request body, 64 bytes when genuine.
        signature: Vec<u8>,
        /// The caller's token.
        caller_jwt: String,
    },
}

impl fmt::Debug for Proof {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.kind())
    }
}

impl Proof {
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Insecure => "no signature",
            Self::V1 { .. } => "an x509 signature",
            Self::V2 { .. } => "a token signature",
        }
    }
}

/// A request as a host finds it.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenRequest {
    /// Generation of all its layers.
    pub generation: Generation,
    /// The request.
    pub request: Request,
    /// Where the reply goes; empty when the sender named nothing. Safe to publish to.
    pub reply_to: String,
    /// Sender named by the transport layer; empty when missing. Free text of a stranger.
    pub transport_sender: String,
    /// The exact bytes that `proof` vouches for.
    pub signed: Zeroizing<Vec<u8>>,
    /// What came with it, not verified here.
    pub proof: Proof,
}

impl fmt::Debug for OpenRequest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OpenRequest")
            .field("generation", &self.generation)
            .field("request", &self.request)
            .field("reply_to", &self.reply_to)
            .field("transport_sender", &self.transport_sender)
            .field("proof", &self.proof)
            .finish_non_exhaustive()
    }
}

/// A reply of an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// Id of the request it answers.
    pub request: String,
    /// Identity of the host that answers.
    pub sender: String,
    /// The agent that was asked.
    pub agent: String,
    /// When it was made.
    pub time: WallClock,
    /// The answer; may hold secrets.
    pub payload: Vec<u8>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Reply")
            .field("request", &self.request)
            .field("sender", &self.sender)
            .field("agent", &self.agent)
            .field("time", &self.time)
            .field("payload", &format_args!("{} bytes", self.payload.len()))
            .finish()
    }
}

/// A reply as the asker finds it. Every text in it is a stranger's until compared with what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenReply {
    /// Generation of all its layers.
    pub generation: Generation,
    /// The reply, its hash verified.
    pub reply: Reply,
    /// Sender named by the transport layer; empty when missing.
    pub transport_sender: String,
}

/// The text of a request, which is what a signature is made over.
///
/// # Errors
/// [`WireError::NotText`] when protocol 1 should carry bytes that are not UTF-8.
pub fn request_body(generation: Generation, request: &Request) -> Result<Zeroizing<Vec<u8>>, WireError> {
    match generation {
        Generation::V1 => v1::request_body(request),
        Generation::V2 => Ok(v2::request_body(request)),
    }
}

/// Wraps a request body and its proof for the wire. `hop` is the entry of the trace: connected server, own identity,
/// connected server.
///
/// # Errors
/// [`WireError::ProofKind`] when the proof belongs to the other generation, or is missing in protocol 2, whose schema has
/// no unsigned form; [`WireError::NotText`] when `body` is not text.
pub fn seal_request(
    generation: Generation,
    body: &[u8],
    proof: &Proof,
    reply_to: &str,
    sender: &str,
    hop: Option<[&str; 3]>,
) -> Result<Vec<u8>, WireError> {
    let secure = match generation {
        Generation::V1 => v1::secure_request(body, proof)?,
        Generation::V2 => v2::secure_request(body, proof)?,
    };
    Ok(transport::seal(generation, &secure, reply_to, sender, hop))
}

/// Takes a request apart as a host does: every layer's schema is enforced (choria.md 3.3, steps 1, 2 and 4), the proof is
/// not verified. A protocol 1 filter without its list of agents is refused, as such a request could never be answered.
///
/// # Errors
/// The first layer and rule that does not hold.
pub fn open_request(bytes: &[u8]) -> Result<OpenRequest, WireError> {
    let transport = transport::open(bytes)?;
    let (signed, proof) = match transport.generation {
        Generation::V1 => v1::open_secure_request(&transport.secure)?,
        Generation::V2 => v2::open_secure_request(&transport.secure)?,
    };
    let request = match transport.generation {
        Generation::V1 => v1::open_request_body(&signed)?,
        Generation::V2 => v2::open_request_body(&signed)?,
    };
    Ok(OpenRequest {
        generation: transport.generation,
        request,
        reply_to: transport.reply_to,
        transport_sender: transport.sender,
        signed,
        proof,
    })
}

/// Wraps a reply for the wire, with its hash and without a signature, as hosts in provisioning mode do.
///
/// # Errors
/// [`WireError::NotText`] when protocol 1 should carry bytes that are not UTF-8.
pub fn seal_reply(
    generation: Generation,
    reply: &Reply,
    hop: Option<[&str; 3]>,
) -> Result<Vec<u8>, WireError> {
    let secure = match generation {
        Generation::V1 => v1::secure_reply(reply)?,
        Generation::V2 => v2::secure_reply(reply),
    };
    Ok(transport::seal(generation, &secure, "", &reply.sender, hop))
}

/// Takes a reply apart and verifies its hash. A signature on it is ignored, as every peer does.
///
/// # Errors
/// The first layer and rule that does not hold.
pub fn open_reply(bytes: &[u8]) -> Result<OpenReply, WireError> {
    let transport = transport::open(bytes)?;
    let reply = match transport.generation {
        Generation::V1 => v1::open_reply(&transport.secure)?,
        Generation::V2 => v2::open_reply(&transport.secure)?,
    };
    Ok(OpenReply { generation: transport.generation, reply, transport_sender: transport.sender })
}

/// A protocol 1 request id: a version 4 UUID of these random bytes, written without dashes (32 characters).
pub fn v1_id(random: [u8; 16]) -> String {
    uuid::Builder::from_random_bytes(random).into_uuid().simple().to_string()
}

pub(super) fn not_empty(field: &'static str, text: &str) -> Result<(), WireError> {
    if text.is_empty() {
        return Err(WireError::Schema { layer: Layer::Message, field, rule: "may not be empty" });
    }
    Ok(())
}
