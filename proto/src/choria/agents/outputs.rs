//! Outputs: what a host answers. Presence and type of each are checked before use, and the peer's defaults stand in for
//! what may be absent (choria.md 4.3).

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    choria::rpc::{RpcError, RpcReply, StatusCode},
    json::{self, Limits},
    text::escape_bounded,
};

/// The outputs of `choria_provision#jwt`.
#[derive(Clone, PartialEq, Eq)]
pub struct JwtReply {
    /// The host's provisioning.jwt as it is on its disk; empty when absent.
    pub jwt: String,
    /// The public half of the host's new X25519 pair, 64 hex characters when genuine; empty when absent.
    pub ecdh_public: String,
}

impl fmt::Debug for JwtReply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token holds the shared provisioning token in clear.
        out.debug_struct("JwtReply").field("ecdh_public", &self.ecdh_public).finish_non_exhaustive()
    }
}

/// The outputs of `choria_provision#gen25519`, also a part of the helper's input. Each is empty when absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gen25519Reply {
    /// The host's new Ed25519 public key, 64 hex characters when genuine.
    pub public_key: String,
    /// Directory in which the host keeps the seed.
    pub directory: String,
    /// The nonce signed with the new key, 128 hex characters when genuine.
    pub signature: String,
}

/// The outputs of `choria_provision#gencsr`, also a part of the helper's input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsrReply {
    /// The signing request, PEM.
    pub csr: String,
    /// Its public key, PEM labelled `PUBLIC KEY` around a PKCS#1 key.
    pub public_key: String,
    /// Directory in which the host keeps its TLS files.
    pub ssldir: String,
}

/// The outputs of `rpcutil#inventory`.
#[derive(Debug, Clone)]
pub struct InventoryReply {
    /// The host's version of Choria.
    pub version: String,
    /// Whether the host takes `release_update`; false when absent.
    pub upgradable: bool,
    /// All outputs as the host wrote them.
    pub raw: Box<RawValue>,
}

/// The output of `configure`, `restart`, `shutdown` and `release_update`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageReply {
    /// What the host did, in its words.
    pub message: String,
}

/// The values of one JSON object by key; of a repeated key the last stands.
pub struct Fields<'a> {
    raw: &'a RawValue,
    values: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> Fields<'a> {
    fn read(raw: &'a RawValue) -> Result<Self, RpcError> {
        if !raw.get().starts_with('{') {
            let found = json::type_name(raw.get());
            return Err(RpcError::Output { key: "data", expected: "object", found });
        }
        json::check(raw.get().as_bytes(), &Limits::FRAME).map_err(RpcError::Json)?;
        let values = serde_json::from_str(raw.get()).map_err(|error| RpcError::invalid(&error))?;
        Ok(Self { raw, values })
    }

    /// The string under `key`.
    ///
    /// # Errors
    /// [`RpcError::Output`] when it is missing or no string.
    pub fn string(&self, key: &'static str) -> Result<String, RpcError> {
        self.value(key, "string")
    }

    /// The string under `key`, empty when missing.
    ///
    /// # Errors
    /// [`RpcError::Output`] when it is no string.
    pub fn string_or_empty(&self, key: &'static str) -> Result<String, RpcError> {
        if self.values.contains_key(key) { self.string(key) } else { Ok(String::new()) }
    }

    /// The boolean under `key`, false when missing.
    ///
    /// # Errors
    /// [`RpcError::Output`] when it is no boolean.
    pub fn bool_or_false(&self, key: &'static str) -> Result<bool, RpcError> {
        if self.values.contains_key(key) { self.value(key, "bool") } else { Ok(false) }
    }

    /// The whole object as it was written.
    pub fn raw(&self) -> &'a RawValue {
        self.raw
    }

    fn value<T: Deserialize<'a>>(&self, key: &'static str, expected: &'static str) -> Result<T, RpcError> {
        let Some(raw) = self.values.get(key) else {
            return Err(RpcError::Output { key, expected, found: "missing" });
        };
        let found = json::type_name(raw.get());
        if found != expected {
            return Err(RpcError::Output { key, expected, found });
        }
        serde_json::from_str(raw.get()).map_err(|_| RpcError::Output { key, expected, found: "not readable" })
    }
}

/// The outputs of one action.
pub trait Output: Sized {
    /// Takes the outputs out of the reply's data.
    ///
    /// # Errors
    /// [`RpcError::Output`] naming the first that is missing or of the wrong type.
    fn from_fields(fields: &Fields<'_>) -> Result<Self, RpcError>;
}

impl Output for JwtReply {
    fn from_fields(fields: &Fields<'_>) -> Result<Self, RpcError> {
        Ok(Self { jwt: fields.string_or_empty("jwt")?, ecdh_public: fields.string_or_empty("ecdh_public")? })
    }
}

impl Output for Gen25519Reply {
    fn from_fields(fields: &Fields<'_>) -> Result<Self, RpcError> {
        Ok(Self {
            public_key: fields.string_or_empty("public_key")?,
            directory: fields.string_or_empty("directory")?,
            signature: fields.string_or_empty("signature")?,
        })
    }
}

impl Output for CsrReply {
    fn from_fields(fields: &Fields<'_>) -> Result<Self, RpcError> {
        Ok(Self {
            csr: fields.string("csr")?,
            public_key: fields.string("public_key")?,
            ssldir: fields.string("ssldir")?,
        })
    }
}

impl Output for InventoryReply {
    fn from_fields(fields: &Fields<'_>) -> Result<Self, RpcError> {
        Ok(Self {
            version: fields.string("version")?,
            upgradable: fields.bool_or_false("upgradable")?,
            raw: fields.raw().to_owned(),
        })
    }
}

impl Output for MessageReply {
    fn from_fields(fields: &Fields<'_>) -> Result<Self, RpcError> {
        Ok(Self { message: fields.string("message")? })
    }
}

/// The outputs of a successful action.
///
/// # Errors
/// [`RpcError::Refused`] for any status but 0, else what [`Output::from_fields`] finds.
pub fn decode_output<T: Output>(reply: &RpcReply) -> Result<T, RpcError> {
    if reply.statuscode != StatusCode::Ok {
        let message = escape_bounded(&reply.statusmsg, 200);
        return Err(RpcError::Refused { code: reply.statuscode, message });
    }
    T::from_fields(&Fields::read(&reply.data)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(statuscode: StatusCode, statusmsg: &str, data: &str) -> RpcReply {
        RpcReply {
            action: "x".to_owned(),
            statuscode,
            statusmsg: statusmsg.to_owned(),
            data: RawValue::from_string(data.to_owned()).unwrap(),
        }
    }

    fn good<T: Output>(data: &str) -> T {
        decode_output(&reply(StatusCode::Ok, "OK", data)).unwrap()
    }

    fn bad<T: Output + fmt::Debug>(data: &str, expected: &str) {
        let error = decode_output::<T>(&reply(StatusCode::Ok, "OK", data)).expect_err(data);
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn defaults_stand_in_for_what_may_be_absent() {
        assert_eq!(good::<JwtReply>("{}"), JwtReply { jwt: String::new(), ecdh_public: String::new() });
        assert_eq!(good::<JwtReply>(r#"{"jwt":"a"}"#).jwt, "a");
        assert_eq!(
            good::<Gen25519Reply>(r#"{"directory":"/etc"}"#),
            Gen25519Reply {
                public_key: String::new(),
                directory: "/etc".to_owned(),
                signature: String::new()
            }
        );
        assert!(!good::<InventoryReply>(r#"{"version":"1"}"#).upgradable);
    }

    #[test]
    fn what_has_no_default_must_be_there() {
        bad::<MessageReply>("{}", "`message` should be string but is missing");
        bad::<InventoryReply>("{}", "`version` should be string but is missing");
        bad::<CsrReply>(r#"{"csr":"","public_key":""}"#, "`ssldir` should be string but is missing");
    }

    #[test]
    fn wrong_types_are_named() {
        bad::<MessageReply>(r#"{"message":7}"#, "`message` should be string but is number");
        bad::<MessageReply>(r#"{"message":null}"#, "`message` should be string but is null");
        bad::<JwtReply>(r#"{"jwt":["a"]}"#, "`jwt` should be string but is list");
        bad::<Gen25519Reply>(r#"{"public_key":{}}"#, "`public_key` should be string but is object");
        bad::<InventoryReply>(
            r#"{"version":"1","upgradable":"yes"}"#,
            "`upgradable` should be bool but is string",
        );
        bad::<MessageReply>("[]", "`data` should be object but is list");
        bad::<MessageReply>("\"\"", "`data` should be object but is string");
        bad::<MessageReply>(r#"{"message":"\ud800"}"#, "`message` should be string but is not readable");
    }

    #[test]
    fn a_refusal_carries_the_words_of_the_host_without_control_characters() {
        let error =
            decode_output::<MessageReply>(&reply(StatusCode::Aborted, "no\n\u{1b}[2J", "{}")).unwrap_err();
        assert_eq!(error.to_string(), "refused with status 1: no\\n\\u{1b}[2J");
        let long = decode_output::<MessageReply>(&reply(StatusCode::InvalidData, &"x".repeat(9999), "{}"))
            .unwrap_err();
        assert!(long.to_string().chars().count() < 300);
    }

    #[test]
    fn the_lock_refusal_is_told_apart() {
        let busy = |code, text| {
            decode_output::<MessageReply>(&reply(code, text, "{}")).unwrap_err().is_lock_refusal()
        };
        assert!(busy(StatusCode::Aborted, "Could not obtain provisioning lock"));
        assert!(!busy(StatusCode::Aborted, "Incorrect provision token supplied"));
        assert!(!busy(StatusCode::InvalidData, "Could not obtain provisioning lock"));
    }

    #[test]
    fn an_inventory_keeps_its_text() {
        let text = r#"{"version":"0.29.4","facts":{"n":18446744073709551616}}"#;
        assert_eq!(good::<InventoryReply>(text).raw.get(), text);
    }

    #[test]
    fn a_token_does_not_show_in_debug_output() {
        assert!(!format!("{:?}", good::<JwtReply>(r#"{"jwt":"s3cret"}"#)).contains("s3cret"));
    }
}
