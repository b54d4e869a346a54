//! The arguments of a call, with the types a real agent insists on.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

const MAPS: [&str; 2] = ["action_policies", "opa_policies"];

/// Decoded arguments. A missing one is the empty value of its type, as in Go.
#[derive(Debug)]
pub(super) struct Arguments {
    values: Map<String, Value>,
}

impl Arguments {
    /// Reads the `data` of a call, or gives the text a real agent refuses it with (status 4).
    pub(super) fn decode(action: &str, data: &RawValue) -> Result<Self, String> {
        let refuse =
            |what: String| format!("Could not parse request data for choria_provision#{action}: {what}");
        let values: Map<String, Value> = match serde_json::from_str(data.get()) {
            Ok(Value::Object(values)) => values,
            Ok(other) => {
                return Err(refuse(format!("json: cannot unmarshal {} into Go value", go_kind(&other))));
            }
            Err(error) => return Err(refuse(error.to_string())),
        };
        for (name, value) in &values {
            let fits = if value.is_null() {
                true
            } else if MAPS.contains(&name.as_str()) {
                value
                    .as_object()
                    .is_some_and(|map| map.values().all(|text| text.is_string() || text.is_null()))
            } else if name == "splay" {
                value.is_i64() || value.is_u64()
            } else {
                value.is_string() || !KNOWN.contains(&name.as_str())
            };
            if !fits {
                return Err(refuse(format!("json: cannot unmarshal {} into field {name}", go_kind(value))));
            }
        }
        Ok(Self { values })
    }

    /// A text argument.
    pub(super) fn text(&self, name: &str) -> &str {
        self.values.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A whole number.
    pub(super) fn integer(&self, name: &str) -> i64 {
        self.values.get(name).and_then(Value::as_i64).unwrap_or_default()
    }

    /// A map of texts.
    pub(super) fn texts(&self, name: &str) -> Vec<(&str, &str)> {
        let Some(map) = self.values.get(name).and_then(Value::as_object) else { return Vec::new() };
        map.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect()
    }
}

const KNOWN: [&str; 16] = [
    "token",
    "nonce",
    "cn",
    "C",
    "L",
    "O",
    "OU",
    "ST",
    "config",
    "certificate",
    "ca",
    "ssldir",
    "key",
    "ecdh_public",
    "server_jwt",
    "version",
];

/// The kind of a JSON value in Go's words.
pub(super) fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
