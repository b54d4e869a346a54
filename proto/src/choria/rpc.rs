//! Requests to and replies of agents, inside an envelope's payload (choria.md 3.6).

use std::{borrow::Cow, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::{
    json::{self, JsonError, Limits},
    text::escape_bounded,
};

/// The text with which a host refuses an action while another provisioner holds its lock (choria.md 4.3).
pub const LOCK_REFUSAL: &str = "Could not obtain provisioning lock";

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatusCode {
    /// 0: done.
    Ok,
    /// 1: the action refused or failed, or the caller may not ask for it.
    Aborted,
    /// 2: the agent has no such action.
    UnknownAction,
    /// 3: an argument is missing.
    MissingData,
    /// 4: payload or arguments could not be decoded.
    InvalidData,
    /// 5: anything else.
    UnknownError,
}

impl StatusCode {
    /// The number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Aborted => 1,
            Self::UnknownAction => 2,
            Self::MissingData => 3,
            Self::InvalidData => 4,
            Self::UnknownError => 5,
        }
    }

    /// The code of a number on the wire; `None` beyond 5.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Ok,
            1 => Self::Aborted,
            2 => Self::UnknownAction,
            3 => Self::MissingData,
            4 => Self::InvalidData,
            5 => Self::UnknownError,
            _ => return None,
        })
    }
}

/// Why a payload or an action's output was refused. Foreign text in it is escaped and bounded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// The payload is not JSON of its shape, or over a limit.
    #[error("cannot read the payload")]
    Json(#[source] JsonError),
    /// The host answered with a status other than 0.
    #[error("refused with status {}: {message}", code.number())]
    Refused {
        /// The status.
        code: StatusCode,
        /// The host's own words, escaped, at most 200 characters.
        message: String,
    },
    /// The status is no known number.
    #[error("unknown status {number}")]
    Status {
        /// The number received.
        number: u8,
    },
    /// An output or input is missing or of the wrong type.
    #[error("`{key}` should be {expected} but is {found}")]
    Output {
        /// Its name.
        key: &'static str,
        /// The type it should have.
        expected: &'static str,
        /// The type it has, `missing` when absent.
        found: &'static str,
    },
}

impl RpcError {
    /// Whether the host said that another provisioner holds its lock: it is busy, nothing is wrong with it.
    pub fn is_lock_refusal(&self) -> bool {
        matches!(self, Self::Refused { code: StatusCode::Aborted, message } if message == LOCK_REFUSAL)
    }

    pub(super) fn invalid(error: &serde_json::Error) -> Self {
        Self::Json(JsonError::invalid(error))
    }
}

/// A request to an action.
#[derive(Clone)]
pub struct RpcRequest {
    /// The agent.
    pub agent: String,
    /// The action.
    pub action: String,
    /// The arguments as JSON text, `{}` when absent; may hold secrets.
    pub data: Box<RawValue>,
}

impl fmt::Debug for RpcRequest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RpcRequest")
            .field("agent", &self.agent)
            .field("action", &self.action)
            .field("data", &format_args!("{} bytes", self.data.get().len()))
            .finish()
    }
}

/// An action's reply.
#[derive(Clone)]
pub struct RpcReply {
    /// The action that was asked for.
    pub action: String,
    /// How it ended.
    pub statuscode: StatusCode,
    /// `OK`, or what went wrong; a stranger's text.
    pub statusmsg: String,
    /// The outputs as JSON text, `{}` when absent or null; may hold secrets.
    pub data: Box<RawValue>,
}

impl fmt::Debug for RpcReply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RpcReply")
            .field("action", &self.action)
            .field("statuscode", &self.statuscode)
            .field("statusmsg", &escape_bounded(&self.statusmsg, 200))
            .field("data", &format_args!("{} bytes", self.data.get().len()))
            .finish()
    }
}

#[derive(Serialize, Deserialize)]
struct WireRequest<'a> {
    #[serde(borrow)]
    agent: Cow<'a, str>,
    #[serde(borrow)]
    action: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
struct WireReply<'a> {
    #[serde(borrow)]
    action: Cow<'a, str>,
    statuscode: u8,
    #[serde(borrow)]
    statusmsg: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// The payload of a request: `data` is the JSON text of the arguments, taken as it stands.
///
/// # Errors
/// [`RpcError::Json`] when `data` is not one JSON value.
pub fn encode_request(agent: &str, action: &str, data: &str) -> Result<Zeroizing<Vec<u8>>, RpcError> {
    let data: &RawValue = serde_json::from_str(data).map_err(|error| RpcError::invalid(&error))?;
    Ok(json::to_secret_bytes(&WireRequest { agent: agent.into(), action: action.into(), data: Some(data) }))
}

/// Reads the payload of a request as a host does: as base64 of JSON, else as JSON.
///
/// # Errors
/// [`RpcError::Json`] when neither is a request under the limits of a frame.
pub fn decode_request(payload: &[u8]) -> Result<RpcRequest, RpcError> {
    let decoded = STANDARD.decode(payload).map(Zeroizing::new);
    let bytes = decoded.as_ref().map_or(payload, |bytes| bytes);
    let wire: WireRequest<'_> = json::object(bytes, &Limits::FRAME).map_err(RpcError::Json)?;
    Ok(RpcRequest {
        agent: wire.agent.into_owned(),
        action: wire.action.into_owned(),
        data: wire.data.map_or_else(empty_object, RawValue::to_owned),
    })
}

/// The payload of a reply.
pub fn encode_reply(reply: &RpcReply) -> Vec<u8> {
    let wire = WireReply {
        action: (&reply.action).into(),
        statuscode: reply.statuscode.number(),
        statusmsg: (&reply.statusmsg).into(),
        data: Some(&reply.data),
    };
    std::mem::take(&mut *json::to_secret_bytes(&wire))
}

/// Reads the payload of a reply. Whether the action went well is not looked at; see [`super::agents::decode_output`].
///
/// # Errors
/// [`RpcError::Json`] when it is no reply under the limits of a frame, [`RpcError::Status`] for an unknown status.
pub fn decode_reply(payload: &[u8]) -> Result<RpcReply, RpcError> {
    let wire: WireReply<'_> = json::object(payload, &Limits::FRAME).map_err(RpcError::Json)?;
    Ok(RpcReply {
        action: wire.action.into_owned(),
        statuscode: StatusCode::from_number(wire.statuscode)
            .ok_or(RpcError::Status { number: wire.statuscode })?,
        statusmsg: wire.statusmsg.into_owned(),
        data: wire.data.map_or_else(empty_object, RawValue::to_owned),
    })
}

pub(super) fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
