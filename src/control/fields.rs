//! Reading requests: one JSON object whose every field is known, and a fault that says where it is.

use serde_json::{Map, Value};

use crate::operate::OperateError;

/// The largest request that is read, bytes.
const MAX_REQUEST: usize = 64 * 1024;

/// The fields of a request that nobody has asked for yet.
pub(super) struct Fields {
    left: Map<String, Value>,
    known: Vec<&'static str>,
}

fn bad<T>(at: impl Into<String>, what: impl Into<String>) -> Result<T, OperateError> {
    Err(OperateError::BadInput { at: at.into(), what: what.into() })
}

impl Fields {
    /// The fields of this message; an empty one has none.
    pub(super) fn read(payload: &[u8]) -> Result<Self, OperateError> {
        if payload.len() > MAX_REQUEST {
            return bad("", format!("the request has {} bytes, {MAX_REQUEST} are the most", payload.len()));
        }
        let known = Vec::new();
        if payload.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self { left: Map::new(), known });
        }
        match serde_json::from_slice::<Value>(payload) {
            Ok(Value::Object(left)) => Ok(Self { left, known }),
            Ok(other) => bad("", format!("the request must be a JSON object but is {}", kind(&other))),
            Err(error) => bad("", format!("the request is no JSON object: {error}")),
        }
    }

    /// A text, if it is there and not `null`.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, OperateError> {
        self.known.push(name);
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => bad(format!("/{name}"), format!("it must be a text but is {}", kind(&other))),
        }
    }

    /// A text that must be there.
    pub(super) fn needed(&mut self, name: &'static str) -> Result<String, OperateError> {
        match self.text(name)? {
            Some(text) => Ok(text),
            None => bad(
                format!("/{name}"),
                "it is missing: write for example {\"who\": \"ann\", \"why\": \"a move\"}, \
                and \"name\" where a host is meant",
            ),
        }
    }

    /// A whole number from one to `most`, if it is there and not `null`.
    pub(super) fn count(&mut self, name: &'static str, most: usize) -> Result<Option<usize>, OperateError> {
        self.known.push(name);
        let value = match self.left.remove(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        match number.filter(|number| (1..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => bad(format!("/{name}"), format!("it must be a whole number from 1 to {most}")),
        }
    }

    /// Whatever was not asked for is unknown.
    pub(super) fn finish(self) -> Result<(), OperateError> {
        let Some(name) = self.left.keys().next() else { return Ok(()) };
        let near = self
            .known
            .iter()
            .map(|known| (strsim::jaro_winkler(known, name), known))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        let what = match near {
            Some((_, known)) => format!("there is no such field: did you mean `{known}`?"),
            None if self.known.is_empty() => "there is no such field: this request has none".to_owned(),
            None => format!("there is no such field: there are {}", self.known.join(", ")),
        };
        let name: String = name.chars().take(100).collect();
        bad(format!("/{}", name.replace('~', "~0").replace('/', "~1")), what)
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
