//! What the tool runner of a machine asks, and what it is told.

use serde::{Deserialize, Serialize};

use super::{fault::Fault, fields::Fields, kind::Kind, value::Json};
use crate::{
    json::{self, Limits, to_secret_bytes},
    text::escape_bounded,
};

/// Longest reason in an error, in characters.
const MAX_REASON: usize = 512;

/// A question for one value of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The module whose bundle asks.
    pub module: String,
    /// The kind; only `config` is answered.
    pub kind: String,
    /// Which value.
    pub key: String,
}

impl Ask {
    /// The question.
    pub fn encode(&self) -> Vec<u8> {
        to_secret_bytes(self).to_vec()
    }

    /// Reads a question.
    ///
    /// # Errors
    /// The answer to give: `bad-request`.
    pub fn read(body: &[u8]) -> Result<Self, AskError> {
        let ask = Fields::read(body, &Limits::EVENT).and_then(|mut fields| {
            let mut member = |name| {
                let text = fields.needed(name)?;
                if text.is_empty() { Err(fields.fault(name, "is empty")) } else { Ok(text) }
            };
            Ok(Self { module: member("module")?, kind: member("kind")?, key: member("key")? })
        });
        ask.map_err(|fault| AskError::new(AskCode::BadRequest, &fault.to_string()))
    }
}

/// The fixed first word of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskCode {
    /// The question is not `{module, kind, key}`.
    BadRequest,
    /// The module is not assigned to this machine.
    Unassigned,
    /// No such config value is resolved for the module.
    Undeclared,
    /// Secrets are never answered.
    Secret,
    /// A kind that is filled into files but not answered, or that nobody knows.
    Kind,
    /// What would be answered from is not loaded yet.
    NotReady,
}

impl AskCode {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad-request",
            Self::Unassigned => "unassigned",
            Self::Undeclared => "undeclared",
            Self::Secret => "secret",
            Self::Kind => "kind",
            Self::NotReady => "not-ready",
        }
    }
}

/// Why a question is not answered with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", code.as_str())]
pub struct AskError {
    /// The first word.
    pub code: AskCode,
    /// The rest, for people.
    pub reason: String,
}

impl AskError {
    /// An error with this reason, escaped and cut.
    pub fn new(code: AskCode, reason: &str) -> Self {
        Self { code, reason: escape_bounded(reason, MAX_REASON) }
    }
}

/// The answer: `{"value":…}` with the stored JSON as it stands, or `{"error":"…"}`.
pub fn encode_answer(answer: Result<&Json, &AskError>) -> Vec<u8> {
    match answer {
        Ok(value) => to_secret_bytes(&AnswerOut { value: Some(value), error: None }).to_vec(),
        Err(error) => {
            let error = error.to_string();
            to_secret_bytes(&AnswerOut { value: None, error: Some(&error) }).to_vec()
        }
    }
}

#[derive(Serialize)]
struct AnswerOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// Reads an answer, as the tool runner does: the value, or the error's text.
///
/// # Errors
/// Not exactly one of value and error. A value that is `null` is a value.
pub fn read_answer(body: &[u8]) -> Result<Result<Json, String>, Fault> {
    let fields = Fields::read(body, &Limits::FRAME)?;
    let (mut value, mut error) = (None, None);
    for (member, raw) in fields.rest() {
        match member.as_str() {
            "value" => value = Some(Json::from(raw)),
            "error" => error = serde_json::from_str::<String>(raw.get()).ok(),
            _ => {}
        }
    }
    match (value, error) {
        (Some(value), None) => Ok(Ok(value)),
        (None, Some(error)) => Ok(Err(escape_bounded(&error, MAX_REASON))),
        _ => Err(Fault::new("", "is not exactly one of value and error")),
    }
}

/// Which value of a module moved; never the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The kind; only kinds that can be asked are said.
    pub kind: String,
    /// Which; none means every key of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Changed {
    /// A config value moved, or any of them.
    pub fn config(key: Option<&str>) -> Self {
        Self { kind: Kind::Config.as_str().to_owned(), key: key.map(str::to_owned) }
    }

    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        to_secret_bytes(self).to_vec()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// No JSON of this shape.
    pub fn read(body: &[u8]) -> Result<Self, Fault> {
        json::object(body, &Limits::EVENT).map_err(|error| Fault::json("", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_needs_its_three_members() {
        let ask = Ask { module: "forge".to_owned(), kind: "config".to_owned(), key: "http.port".to_owned() };
        assert_eq!(ask.encode(), br#"{"module":"forge","kind":"config","key":"http.port"}"#);
        assert_eq!(Ask::read(&ask.encode()), Ok(ask));
        for (body, reason) in [
            (r#"{"module":"forge","key":"a"}"#, "bad-request: kind: is missing"),
            (r#"{"module":"forge","kind":"config","key":""}"#, "bad-request: key: is empty"),
            (r#"{"module":1,"kind":"config","key":"a"}"#, "bad-request: module: is a number, not a string"),
        ] {
            assert_eq!(Ask::read(body.as_bytes()).map_err(|error| error.to_string()), Err(reason.to_owned()));
        }
        for body in ["", "x", "[]", &format!("\"{}\"", "x".repeat(1024 * 1024))] {
            assert_eq!(Ask::read(body.as_bytes()).map_err(|error| error.code), Err(AskCode::BadRequest));
        }
    }

    #[test]
    fn an_answer_holds_the_stored_json_as_it_stands() {
        for text in ["3000", "9007199254740993", "null", r#"{"b": 1, "a":[]}"#, r#""x""#] {
            let value = Json::read(text).unwrap();
            let body = encode_answer(Ok(&value));
            assert_eq!(String::from_utf8(body.clone()).unwrap(), format!(r#"{{"value":{text}}}"#));
            assert_eq!(read_answer(&body), Ok(Ok(value)));
        }
        let error = AskError::new(AskCode::Undeclared, "forge has no config value `x`");
        let body = encode_answer(Err(&error));
        assert_eq!(body, br#"{"error":"undeclared: forge has no config value `x`"}"#);
        assert_eq!(read_answer(&body), Ok(Err(error.to_string())));
        for body in ["{}", r#"{"value":1,"error":"x"}"#, "1"] {
            assert!(read_answer(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn what_moved_is_said_with_or_without_its_key() {
        assert_eq!(Changed::config(Some("http.port")).encode(), br#"{"kind":"config","key":"http.port"}"#);
        assert_eq!(Changed::config(None).encode(), br#"{"kind":"config"}"#);
        assert_eq!(Changed::read(br#"{"kind":"config","at":1}"#), Ok(Changed::config(None)));
    }
}
