//! What a helper writes: one JSON object with up to twelve known keys.

use std::{collections::BTreeMap, fmt};

use secrecy::SecretString;
use serde_json::{Deserializer, value::RawValue};

use super::{
    claims::ServerClaimsOrder,
    value::{HelperReplyError, Source, Value},
};
use crate::{
    json::{self, JsonError, Limits},
    provider,
};

/// The bounds of a reply. Its length is bounded by whoever read it from the helper.
const LIMITS: Limits = Limits { max_bytes: usize::MAX, max_depth: 64, max_items: 200_000 };

/// A helper's decision about one host. Everything is optional; what is absent or null is false or empty.
#[derive(Clone, Default)]
pub struct HelperReply {
    /// Leave the host for a later cycle.
    pub defer: bool,
    /// Stop the host for good.
    pub shutdown: bool,
    /// Why, for the log; the helper's own text.
    pub msg: String,
    /// A private key for the host, PEM.
    pub key: Option<SecretString>,
    /// The host's certificate, PEM.
    pub certificate: String,
    /// CA certificates, PEM.
    pub ca: String,
    /// Directory on the host for its TLS files.
    pub ssldir: String,
    /// Wishes for the server token.
    pub server_claims: Option<ServerClaimsOrder>,
    /// The host's configuration; values may be secret.
    pub configuration: BTreeMap<String, String>,
    /// Action policies by file name.
    pub action_policies: BTreeMap<String, String>,
    /// Open Policy Agent policies by file name.
    pub opa_policies: BTreeMap<String, String>,
    /// The version the host should run; empty for no change.
    pub upgrade: String,
}

impl fmt::Debug for HelperReply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HelperReply")
            .field("defer", &self.defer)
            .field("shutdown", &self.shutdown)
            .field("has_key", &self.key.is_some())
            .field("has_certificate", &!self.certificate.is_empty())
            .field("ssldir", &self.ssldir)
            .field("server_claims", &self.server_claims)
            .field("configuration", &self.configuration.keys())
            .field("action_policies", &self.action_policies.keys())
            .field("opa_policies", &self.opa_policies.keys())
            .field("upgrade", &self.upgrade)
            .finish_non_exhaustive()
    }
}

/// Reads a helper's whole stdout. Unknown keys are ignored, `null` is as good as absent; white space may surround the one
/// object, nothing else may.
///
/// # Errors
/// [`HelperReplyError`], naming offset or key path.
pub fn decode_reply(bytes: &[u8]) -> Result<HelperReply, HelperReplyError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| HelperReplyError::NotUtf8 { offset: error.valid_up_to() })?;
    reply(&Value::reply(Source::Text(only_object(text)?)))
}

/// The reply of a helper that is a provider: the outputs of its action `provision`, by the same rules.
///
/// # Errors
/// [`HelperReplyError::Type`], naming the key path.
pub fn reply_of_outputs(outputs: &provider::Value) -> Result<HelperReply, HelperReplyError> {
    reply(&Value::reply(Source::Read(outputs)))
}

fn reply(value: &Value<'_>) -> Result<HelperReply, HelperReplyError> {
    let members = value.members()?;
    let member = |key| value.member(&members, key);
    let flag = |key| member(key).map_or(Ok(false), |value| value.bool());
    let text = |key| member(key).map_or(Ok(String::new()), |value| value.string());
    let map = |key| member(key).map_or(Ok(BTreeMap::new()), |value| value.string_map());
    Ok(HelperReply {
        defer: flag("defer")?,
        shutdown: flag("shutdown")?,
        msg: text("msg")?,
        key: Some(text("key")?).filter(|key| !key.is_empty()).map(SecretString::from),
        certificate: text("certificate")?,
        ca: text("ca")?,
        ssldir: text("ssldir")?,
        server_claims: member("server_claims").map(|value| ServerClaimsOrder::read(&value)).transpose()?,
        configuration: map("configuration")?,
        action_policies: map("action_policies")?,
        opa_policies: map("opa_policies")?,
        upgrade: text("upgrade")?,
    })
}

/// The text of the one object that `text` must be.
fn only_object(text: &str) -> Result<&str, HelperReplyError> {
    let body = text.trim_ascii_start();
    let start = text.len() - body.len();
    if body.is_empty() {
        return Err(HelperReplyError::Empty);
    }
    json::check(text.as_bytes(), &LIMITS).map_err(HelperReplyError::Limit)?;
    let mut values = Deserializer::from_str(body).into_iter::<&RawValue>();
    let first = values.next();
    let rest = body.get(values.byte_offset()..).unwrap_or_default();
    match first {
        Some(Ok(value)) if value.get().starts_with('{') => {
            let after = rest.trim_ascii_start();
            if after.is_empty() {
                Ok(value.get())
            } else {
                Err(HelperReplyError::Trailing { offset: text.len() - after.len() })
            }
        }
        // A list, string, number or word: alone it is a reply of the wrong type, before other text a banner.
        Some(Ok(value)) if rest.trim_ascii().is_empty() => Err(HelperReplyError::Type {
            path: "reply".to_owned(),
            expected: "an object",
            found: json::type_name(value.get()).to_owned(),
        }),
        Some(Err(error)) if body.starts_with('{') => Err(HelperReplyError::Syntax {
            offset: start + offset_of(body, error.line(), error.column()),
            detail: syntax(&error),
        }),
        _ => Err(HelperReplyError::Leading { offset: start }),
    }
}

/// What is wrong, without the parser's own line and column: the offset says it for the whole output.
fn syntax(error: &serde_json::Error) -> String {
    let detail = JsonError::invalid(error).to_string();
    detail.rsplit_once(" at line ").map_or(detail.clone(), |(what, _)| what.to_owned())
}

/// The byte offset of a parser's line (from 1) and column (from 1, 0 at a line's start).
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column).saturating_sub(1).min(text.len())
}

#[cfg(test)]
mod tests;
