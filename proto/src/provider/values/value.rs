//! One JSON value.

use std::{collections::BTreeMap, fmt};

use zeroize::Zeroizing;

use crate::json::Limits;

use super::{
    number::Number,
    parse::{SyntaxError, parse},
    write::{Part, write_canonical, write_plain},
};

/// The members of an object by name, sorted as they are written.
pub type Members = BTreeMap<String, Value>;

/// One JSON value. Lists, sets and tuples are all lists here, maps and objects all objects, as on the wire; a
/// [`Type`](super::super::Type) says which is meant.
///
/// Values can be secret: their strings are wiped when dropped and `Debug` shows kinds and sizes alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A decimal number.
    Number(Number),
    /// A string, passed on unchanged.
    String(Zeroizing<String>),
    /// An array.
    List(Vec<Value>),
    /// An object, keys sorted.
    Object(Members),
}

impl Value {
    /// An empty object.
    pub const fn empty() -> Self {
        Self::Object(Members::new())
    }

    /// What the value is: `null`, `a bool`, `a number`, `a string`, `a list` or `an object`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Whether this is `null`.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The boolean, if it is one.
    pub const fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(flag) = self { Some(*flag) } else { None }
    }

    /// The number, if it is one.
    pub const fn as_number(&self) -> Option<&Number> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    /// The items, if it is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// The members, if it is an object.
    pub const fn as_object(&self) -> Option<&Members> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// Reads one JSON value and the white space around it. Of a repeated name the last value counts, half a surrogate pair is
    /// read as U+FFFD.
    ///
    /// # Errors
    /// [`SyntaxError`], which repeats nothing of the text.
    pub fn from_json(text: &str, limits: &Limits) -> Result<Self, SyntaxError> {
        parse(text, limits).map(|parsed| parsed.value)
    }

    /// The value as compact JSON as it goes on the wire: keys sorted, numbers as written, characters that some runtimes take
    /// for line ends escaped. The text is not wiped when dropped.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write_plain(&Part::Value(self), &mut out);
        out
    }

    /// [`Value::to_json`] with every number in its normal form: equal values have equal texts, so that sets have an order and
    /// digests are stable.
    pub fn to_canonical(&self) -> Zeroizing<String> {
        let mut out = Zeroizing::new(String::new());
        write_canonical(self, &mut out);
        out
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(Zeroizing::new(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(Zeroizing::new(text))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl From<Members> for Value {
    fn from(members: Members) -> Self {
        Self::Object(members)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::List(items)
    }
}

impl<K: Into<String>> FromIterator<(K, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(members: I) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self::List(items.into_iter().collect())
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(_) => out.write_str("bool"),
            Self::Number(_) => out.write_str("number"),
            Self::String(text) => write!(out, "string of {}", text.len()),
            Self::List(items) => write!(out, "list of {}", items.len()),
            Self::Object(members) => write!(out, "object of {}", members.len()),
        }
    }
}
