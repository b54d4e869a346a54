//! JSON under limits, and the canonical form that helpers receive.
//!
//! Every decoder of this package comes through here, so that size, nesting and counts are bounded before anything is
//! allocated for the content, and so that an error never repeats what a stranger wrote.

use std::{collections::BTreeMap, fmt, io, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::text::escape_bounded;

/// Bounds of one JSON document, tested before it is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest document, in bytes.
    pub max_bytes: usize,
    /// Deepest nesting of objects and lists; a flat object has depth 1.
    pub max_depth: usize,
    /// Most values in the whole document, counted as opening brackets plus commas.
    pub max_items: usize,
}

impl Limits {
    /// The bounds of one message from the broker and of each layer inside it: 8 MiB, 64 deep, 200,000 values.
    pub const FRAME: Self = Self { max_bytes: 8 * 1024 * 1024, max_depth: 64, max_items: 200_000 };
    /// The bounds of a lifecycle event: 64 KiB, 16 deep, 2,000 values.
    pub const EVENT: Self = Self { max_bytes: 64 * 1024, max_depth: 16, max_items: 2_000 };
    /// The bounds of one line of a provider: 16 MiB, 128 deep, 200,000 values.
    pub const PROVIDER: Self = Self { max_bytes: 16 * 1024 * 1024, max_depth: 128, max_items: 200_000 };
    /// The bounds of what a provider's `schema` subcommand prints: 4 MiB, 128 deep, 200,000 values.
    pub const PROVIDER_SCHEMA: Self = Self { max_bytes: 4 * 1024 * 1024, ..Self::PROVIDER };
}

/// Why a JSON document was refused. No text of the document is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The document is longer than allowed.
    #[error("JSON of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// Bytes received.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The document nests deeper than allowed.
    #[error("JSON is nested deeper than {limit} levels")]
    TooDeep {
        /// Levels allowed.
        limit: usize,
    },
    /// The document holds more values than allowed.
    #[error("JSON holds more than {limit} values")]
    TooMany {
        /// Values allowed.
        limit: usize,
    },
    /// The document is not JSON, or not of the expected shape.
    #[error("{detail}")]
    Invalid {
        /// What is wrong and where, without the document's own text.
        detail: String,
    },
}

impl JsonError {
    pub(crate) fn invalid(error: &serde_json::Error) -> Self {
        Self::Invalid { detail: describe(error) }
    }
}

/// Tests `bytes` against `limits` in one pass without allocating. It does not say that the bytes are JSON, only that a
/// parser may safely look at them.
///
/// # Errors
/// [`JsonError::TooLarge`], [`JsonError::TooDeep`] or [`JsonError::TooMany`].
pub fn check(bytes: &[u8], limits: &Limits) -> Result<(), JsonError> {
    if bytes.len() > limits.max_bytes {
        return Err(JsonError::TooLarge { size: bytes.len(), limit: limits.max_bytes });
    }
    let (mut depth, mut items) = (0_usize, 0_usize);
    let mut bytes = bytes.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                while let Some(inner) = bytes.next() {
                    match inner {
                        b'\\' => {
                            bytes.next();
                        }
                        b'"' => break,
                        _ => {}
                    }
                }
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                items += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => items += 1,
            _ => continue,
        }
        if depth > limits.max_depth {
            return Err(JsonError::TooDeep { limit: limits.max_depth });
        }
        if items > limits.max_items {
            return Err(JsonError::TooMany { limit: limits.max_items });
        }
    }
    Ok(())
}

/// `text` as compact JSON with the keys of every object sorted by their bytes and every number and string kept as it was
/// written, digit for digit (facts may hold integers beyond 2^53). Of a repeated key the last value stays, as in the peer.
///
/// # Errors
/// The limits of [`Limits::FRAME`], or [`JsonError::Invalid`] when `text` is not one JSON value.
pub fn sorted(text: &str) -> Result<String, JsonError> {
    check(text.as_bytes(), &Limits::FRAME)?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| JsonError::invalid(&error))?;
    let mut out = String::with_capacity(text.len());
    write_sorted(raw.get(), &mut out)?;
    Ok(out)
}

/// The recursion is bounded by the nesting limit that [`sorted`] tested.
fn write_sorted(text: &str, out: &mut String) -> Result<(), JsonError> {
    let text = text.trim_ascii();
    if text.starts_with('{') {
        let fields: BTreeMap<Key, &RawValue> =
            serde_json::from_str(text).map_err(|error| JsonError::invalid(&error))?;
        for (position, (key, value)) in fields.iter().enumerate() {
            out.push(if position == 0 { '{' } else { ',' });
            out.push_str(&serde_json::to_string(&key.0).map_err(|error| JsonError::invalid(&error))?);
            out.push(':');
            write_sorted(value.get(), out)?;
        }
        out.push_str(if fields.is_empty() { "{}" } else { "}" });
    } else if text.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| JsonError::invalid(&error))?;
        for (position, value) in items.iter().enumerate() {
            out.push(if position == 0 { '[' } else { ',' });
            write_sorted(value.get(), out)?;
        }
        out.push_str(if items.is_empty() { "[]" } else { "]" });
    } else {
        out.push_str(text);
    }
    Ok(())
}

/// An object's key, ordered by its bytes after unescaping.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
struct Key(String);

/// Reads one JSON object of the shape `T` under `limits`; anything but an object is refused, also where `T` could be read
/// from a list.
pub(crate) fn object<'de, T: Deserialize<'de>>(bytes: &'de [u8], limits: &Limits) -> Result<T, JsonError> {
    check(bytes, limits)?;
    serde_json::from_slice::<Object<T>>(bytes)
        .map(|object| object.0)
        .map_err(|error| JsonError::invalid(&error))
}

/// Compact JSON in a buffer that is wiped when dropped. The length is counted first, so that no part of a secret stays
/// behind in a buffer that had to grow.
pub(crate) fn to_secret_bytes<T: Serialize + ?Sized>(value: &T) -> Zeroizing<Vec<u8>> {
    let mut length = Count(0);
    write(&mut length, value);
    let mut out = Zeroizing::new(Vec::with_capacity(length.0));
    write(&mut *out, value);
    out
}

/// [`to_secret_bytes`] as text.
pub(crate) fn to_secret_text<T: Serialize + ?Sized>(value: &T) -> Zeroizing<String> {
    let mut bytes = to_secret_bytes(value);
    Zeroizing::new(String::from_utf8(std::mem::take(&mut *bytes)).unwrap_or_default())
}

#[expect(
    clippy::expect_used,
    reason = "this package's shapes have string keys only, and memory takes every byte"
)]
fn write<T: Serialize + ?Sized>(out: impl io::Write, value: &T) {
    serde_json::to_writer(out, value).expect("a plain shape always becomes JSON");
}

/// A writer that only counts.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A `T` that must be written as an object. Derived shapes alone would also accept a list of their fields.
pub(crate) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyMap<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMap<T> {
            type Value = Object<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(OnlyMap(PhantomData))
    }
}

impl<T: Serialize> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The JSON type of the value that starts with this text: `string`, `number`, `bool`, `null`, `object` or `list`.
pub(crate) fn type_name(text: &str) -> &'static str {
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'"') => "string",
        Some(b'{') => "object",
        Some(b'[') => "list",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "null",
        Some(b'-' | b'0'..=b'9') => "number",
        _ => "nothing",
    }
}

/// What the parser found wrong, without the value it found: the parser's own text quotes strings of the document, which may
/// be secret, endless, or meant for a terminal.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let what = match text.split_once(": ") {
        Some((fault @ ("invalid type" | "invalid value"), rest)) => {
            let kind = rest.split([' ', ',']).next().unwrap_or_default();
            match rest.rsplit_once(", expected ") {
                Some((_, expected)) => format!("{fault} {kind}, expected {expected}"),
                None => format!("{fault} {kind}"),
            }
        }
        _ if text.starts_with("unknown variant") => "unknown variant".to_owned(),
        _ => text.to_owned(),
    };
    format!("{}{place}", escape_bounded(&what, 120))
}

#[cfg(test)]
mod tests;
