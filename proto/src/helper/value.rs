//! Typed access to a reply's values, with errors that name the path.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    json::{self, JsonError},
    provider::Value as Read,
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
    source: Source<'a>,
}

/// Where a value stands: in the helper's text, or among the outputs of a provider, which have been read already.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Text(&'a str),
    Read(&'a Read),
}

/// The values of one object by key; of a repeated key the last stands, as in the peer.
type Members<'a> = BTreeMap<Cow<'a, str>, Source<'a>>;

impl<'a> Source<'a> {
    fn type_name(self) -> &'static str {
        match self {
            Self::Text(raw) => json::type_name(raw),
            Self::Read(Read::Null) => "null",
            Self::Read(Read::Bool(_)) => "bool",
            Self::Read(Read::Number(_)) => "number",
            Self::Read(Read::String(_)) => "string",
            Self::Read(Read::List(_)) => "list",
            Self::Read(Read::Object(_)) => "object",
        }
    }

    fn string(self) -> Option<String> {
        match self {
            Self::Text(raw) => read(raw),
            Self::Read(value) => value.as_str().map(str::to_owned),
        }
    }

    fn bool(self) -> Option<bool> {
        match self {
            Self::Text(raw) => read(raw),
            Self::Read(value) => value.as_bool(),
        }
    }

    fn members(self) -> Option<Members<'a>> {
        match self {
            Self::Text(raw) if json::type_name(raw) == "object" => {
                let members = read::<BTreeMap<Cow<'a, str>, &'a RawValue>>(raw)?;
                Some(members.into_iter().map(|(key, raw)| (key, Self::Text(raw.get()))).collect())
            }
            Self::Text(_) => None,
            Self::Read(value) => {
                let members = value.as_object()?.iter();
                Some(members.map(|(key, value)| (Cow::Borrowed(key.as_str()), Self::Read(value))).collect())
            }
        }
    }

    fn items(self) -> Option<Vec<Self>> {
        match self {
            Self::Text(raw) => {
                Some(read::<Vec<&'a RawValue>>(raw)?.into_iter().map(|raw| Self::Text(raw.get())).collect())
            }
            Self::Read(value) => Some(value.as_list()?.iter().map(Self::Read).collect()),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(raw: &'a str) -> Option<T> {
    serde_json::from_str(raw).ok()
}

impl<'a> Value<'a> {
    pub const fn reply(source: Source<'a>) -> Self {
        Self { path: Cow::Borrowed("reply"), source }
    }

    fn wrong(&self, expected: &'static str) -> HelperReplyError {
        HelperReplyError::Type { path: self.path.to_string(), expected, found: self.found() }
    }

    /// The type found, with the value where it is short and cannot be a secret.
    fn found(&self) -> String {
        let name = self.source.type_name();
        let value = match self.source {
            Source::Text(raw) => Cow::Borrowed(raw),
            Source::Read(value @ (Read::Number(_) | Read::Bool(_))) => Cow::Owned(value.to_json()),
            Source::Read(_) => Cow::Borrowed(""),
        };
        match name {
            "number" | "bool" if !is_sensitive(&self.path) => {
                format!("{name} {}", escape_bounded(&value, 24))
            }
            _ => name.to_owned(),
        }
    }

    pub fn is_null(&self) -> bool {
        self.source.type_name() == "null"
    }

    pub fn string(&self) -> Result<String, HelperReplyError> {
        self.source.string().ok_or_else(|| self.wrong("a string"))
    }

    pub fn bool(&self) -> Result<bool, HelperReplyError> {
        self.source.bool().ok_or_else(|| self.wrong("a boolean"))
    }

    /// A date as whole seconds: a number, or a number inside a string, as the peer's token library takes both.
    pub fn seconds(&self) -> Result<i64, HelperReplyError> {
        const EXPECTED: &str = "a number of seconds since 1970";
        let text: Option<Cow<'_, str>> = match self.source {
            Source::Text(raw) if json::type_name(raw) == "number" => Some(raw.into()),
            Source::Read(Read::Number(number)) => Some(number.as_str().into()),
            source => source.string().map(Cow::Owned),
        };
        let text = text.ok_or_else(|| self.wrong(EXPECTED))?;
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
        self.source.members().ok_or_else(|| self.wrong("an object"))
    }

    /// The member under a fixed key, unless absent or null.
    pub fn member(&self, members: &Members<'a>, key: &'static str) -> Option<Value<'a>> {
        let source = *members.get(key)?;
        let path = match &*self.path {
            "reply" => Cow::Borrowed(key),
            path => Cow::Owned(format!("{path}.{key}")),
        };
        Some(Value { path, source }).filter(|value| !value.is_null())
    }

    /// An object whose values are all strings.
    pub fn string_map(&self) -> Result<BTreeMap<String, String>, HelperReplyError> {
        let each = |(key, source): (Cow<'a, str>, Source<'a>)| {
            if let Some(text) = source.string() {
                Ok((key.into_owned(), text))
            } else {
                let path = Cow::Owned(format!("{}[\"{}\"]", self.path, escape_bounded(&key, MAX_KEY)));
                Err(Value { path, source }.wrong("a string"))
            }
        };
        self.members()?.into_iter().map(each).collect()
    }

    /// A list whose items are all strings.
    pub fn string_list(&self) -> Result<Vec<String>, HelperReplyError> {
        let items = self.source.items().ok_or_else(|| self.wrong("a list"))?;
        let each =
            |(index, source)| Value { path: format!("{}[{index}]", self.path).into(), source }.string();
        items.into_iter().enumerate().map(each).collect()
    }
}

/// Whether a path's name suggests that its value should not be shown.
fn is_sensitive(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["key", "pass", "secret", "token", "seed", "credential", "pin"].iter().any(|word| path.contains(word))
}
