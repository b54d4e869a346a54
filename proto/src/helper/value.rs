//! Typed access to a reply's values, with errors that name the path.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    json::{self, JsonError},
    text::escape_bounded,
};

/// Why a helper's reply was refused. Nothing a helper wrote appears but key names (escaped, bounded) and short numbers, as
/// replies hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelperReplyError {
    /// The helper wrote nothing but white space.
    #[error("zero bytes received")]
    Empty,
    /// The reply is not UTF-8.
    #[error("the reply is not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// Offset of the first bad byte.
        offset: usize,
    },
    /// The reply nests too deep or holds too many values.
    #[error("the reply is refused unread")]
    Limit(#[source] JsonError),
    /// Something stands before the object.
    #[error(
        "text before the JSON object, at byte {offset}: stdout must hold the reply alone, logs belong on stderr"
    )]
    Leading {
        /// Offset of the text.
        offset: usize,
    },
    /// Something stands after the object.
    #[error(
        "text after the JSON object, at byte {offset}: stdout must hold the reply alone, logs belong on stderr"
    )]
    Trailing {
        /// Offset of the text.
        offset: usize,
    },
    /// The reply is not JSON.
    #[error("the reply is not JSON at byte {offset}: {detail}")]
    Syntax {
        /// Offset of the fault.
        offset: usize,
        /// What is wrong there.
        detail: String,
    },
    /// A value has the wrong type.
    #[error("`{path}` should be {expected} but is {found}")]
    Type {
        /// Where, such as `configuration["plugin.choria.broker_port"]`; `reply` for the whole.
        path: String,
        /// The type it should have.
        expected: &'static str,
        /// The type it has, with a sample where that cannot be secret.
        found: String,
    },
}

/// Longest key name shown in an error, in characters.
const MAX_KEY: usize = 80;

/// One value of the reply and the path to it.
pub(super) struct Value<'a> {
    path: Cow<'static, str>,
    raw: &'a str,
}

/// The values of one object by key; of a repeated key the last stands, as in the peer.
type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

impl<'a> Value<'a> {
    pub fn reply(raw: &'a str) -> Self {
        Self { path: Cow::Borrowed("reply"), raw }
    }

    fn wrong(&self, expected: &'static str) -> HelperReplyError {
        HelperReplyError::Type { path: self.path.to_string(), expected, found: self.found() }
    }

    /// The type found, with the value where it is short and cannot be a secret.
    fn found(&self) -> String {
        let name = json::type_name(self.raw);
        match name {
            "number" | "bool" if !is_sensitive(&self.path) => {
                format!("{name} {}", escape_bounded(self.raw, 24))
            }
            _ => name.to_owned(),
        }
    }

    fn read<T: Deserialize<'a>>(&self, expected: &'static str) -> Result<T, HelperReplyError> {
        serde_json::from_str(self.raw).map_err(|_| self.wrong(expected))
    }

    pub fn is_null(&self) -> bool {
        self.raw == "null"
    }

    pub fn string(&self) -> Result<String, HelperReplyError> {
        self.read("a string")
    }

    pub fn bool(&self) -> Result<bool, HelperReplyError> {
        self.read("a boolean")
    }

    /// A date as whole seconds: a number, or a number inside a string, as the peer's token library takes both.
    pub fn seconds(&self) -> Result<i64, HelperReplyError> {
        const EXPECTED: &str = "a number of seconds since 1970";
        let text: Cow<'_, str> = match json::type_name(self.raw) {
            "number" => self.raw.into(),
            "string" => self.read(EXPECTED)?,
            _ => return Err(self.wrong(EXPECTED)),
        };
        if let Ok(seconds) = text.parse() {
            return Ok(seconds);
        }
        match serde_json::from_str::<f64>(&text) {
            #[expect(clippy::cast_possible_truncation, reason = "a fraction is dropped, the range is tested")]
            Ok(seconds) if seconds.abs() < 1e15 => Ok(seconds as i64),
            _ => Err(self.wrong(EXPECTED)),
        }
    }

    pub fn members(&self) -> Result<Members<'a>, HelperReplyError> {
        const EXPECTED: &str = "an object";
        if json::type_name(self.raw) == "object" { self.read(EXPECTED) } else { Err(self.wrong(EXPECTED)) }
    }

    /// The member under a fixed key, unless absent or null.
    pub fn member(&self, members: &Members<'a>, key: &'static str) -> Option<Value<'a>> {
        let raw = members.get(key)?.get();
        let path = match &*self.path {
            "reply" => Cow::Borrowed(key),
            path => Cow::Owned(format!("{path}.{key}")),
        };
        Some(Value { path, raw }).filter(|value| !value.is_null())
    }

    /// An object whose values are all strings.
    pub fn string_map(&self) -> Result<BTreeMap<String, String>, HelperReplyError> {
        self.members()?
            .into_iter()
            .map(|(key, raw)| {
                let path = Cow::Owned(format!("{}[\"{}\"]", self.path, escape_bounded(&key, MAX_KEY)));
                Ok((key.into_owned(), Value { path, raw: raw.get() }.string()?))
            })
            .collect()
    }

    /// A list whose items are all strings.
    pub fn string_list(&self) -> Result<Vec<String>, HelperReplyError> {
        self.read::<Vec<&'a RawValue>>("a list")?
            .into_iter()
            .enumerate()
            .map(|(index, raw)| {
                Value { path: format!("{}[{index}]", self.path).into(), raw: raw.get() }.string()
            })
            .collect()
    }
}

/// Whether a path's name suggests that its value should not be shown.
fn is_sensitive(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["key", "pass", "secret", "token", "seed", "credential", "pin"].iter().any(|word| path.contains(word))
}
