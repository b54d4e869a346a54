//! Values as they lie in a bucket or a plan, and as the text that goes into a file.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{self, Limits, type_name};

/// One JSON value exactly as it is stored, digit for digit. Not for secrets: those are bytes, and wiped.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

/// Why a value has no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The value is `null`.
    #[error("the value is null")]
    Null,
    /// The bytes are neither JSON nor UTF-8.
    #[error("the value is neither JSON nor UTF-8 text")]
    NotText,
}

impl Json {
    /// Reads the bytes of a bucket: bare JSON, or any other UTF-8 text, which counts as the string of its characters (so does
    /// JSON over the limits of [`Limits::FRAME`]).
    ///
    /// # Errors
    /// [`ValueError::NotText`].
    pub fn from_bucket(bytes: &[u8]) -> Result<Self, ValueError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ValueError::NotText)?;
        Ok(Self::read(text).unwrap_or_else(|| Self::string(text)))
    }

    /// One JSON value; none when the text is no JSON or over the limits.
    pub fn read(text: &str) -> Option<Self> {
        json::check(text.as_bytes(), &Limits::FRAME).ok()?;
        let raw: Box<RawValue> = serde_json::from_str(text).ok()?;
        let is_good = type_name(raw.get()) != "string" || serde_json::from_str::<String>(raw.get()).is_ok();
        is_good.then_some(Self(raw))
    }

    /// A string.
    pub fn string(text: &str) -> Self {
        let raw = serde_json::value::to_raw_value(text);
        Self(raw.unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// The stored JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The raw value, for what is written into a message.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The text that goes into a file: a string's characters, of anything else the stored JSON text.
    ///
    /// # Errors
    /// [`ValueError::Null`].
    pub fn text(&self) -> Result<Cow<'_, str>, ValueError> {
        match type_name(self.get()) {
            "null" => Err(ValueError::Null),
            "string" => serde_json::from_str(self.get()).map(Cow::Owned).map_err(|_| ValueError::NotText),
            _ => Ok(Cow::Borrowed(self.get())),
        }
    }

    /// True for a string.
    pub fn is_string(&self) -> bool {
        type_name(self.get()) == "string"
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Json({})", self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stored: &[u8], text: Result<&str, ValueError>) {
        let value = Json::from_bucket(stored);
        let found = value.as_ref().map_err(|error| *error).and_then(Json::text);
        assert_eq!(found.as_deref().map_err(|error| *error), text, "{}", String::from_utf8_lossy(stored));
    }

    #[test]
    fn a_string_is_its_characters() {
        check(br#""forge""#, Ok("forge"));
        check(br#""a\n\"b\u00e9""#, Ok("a\n\"bé"));
        check(br#""""#, Ok(""));
    }

    #[test]
    fn everything_else_is_the_stored_text() {
        for text in ["3000", "9007199254740993", "1e400", "-0.10", "true", "[1, 2]", r#"{"b": 1,"a":[]}"#] {
            check(text.as_bytes(), Ok(text));
        }
        check(b" 3000\n", Ok("3000"));
    }

    #[test]
    fn null_has_no_text_and_is_not_empty() {
        check(b"null", Err(ValueError::Null));
    }

    #[test]
    fn what_is_no_json_counts_as_a_string() {
        for text in ["forge", "a\"b", "01", "", "\"", "\"\\ud800\"", "{\"a\":}", "3000 3000"] {
            check(text.as_bytes(), Ok(text));
        }
        let deep = "[".repeat(100_000);
        check(deep.as_bytes(), Ok(&deep));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        check(b"\xff\xfe", Err(ValueError::NotText));
    }
}
