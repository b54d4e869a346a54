//! JSON text to values. The text was bounded before (by [`json::check`]), so recursion is too.
//!
//! A parser of our own, as none that is at hand keeps the digits of numbers, says where the same name stands twice, and takes
//! half a surrogate pair for the replacement character as the peer's does.

use std::{collections::btree_map::Entry, str::Chars};

use crate::{
    json::{self, JsonError, Limits},
    text::escape_bounded,
};

use super::{
    number::{Number, NumberError},
    value::{Members, Value},
};

/// Why a text is no JSON value. Nothing of the text is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// The text is too long, too deep, or holds too many values.
    #[error(transparent)]
    Limit(#[from] JsonError),
    /// The text breaks the grammar.
    #[error("{what} at byte {offset}")]
    Grammar {
        /// Where, counted from the start of the text.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A number that is not read.
    #[error("{source} at byte {offset}")]
    Number {
        /// Where, counted from the start of the text.
        offset: usize,
        /// What is wrong with it.
        source: NumberError,
    },
}

/// A value, and what was forgiven on the way.
pub struct Parsed {
    pub value: Value,
    /// The first name that stood twice in one object, escaped; the last value counts.
    pub repeated: Option<String>,
    /// Half a surrogate pair was read as U+FFFD.
    pub replaced: bool,
}

/// Reads one JSON value and white space around it.
pub fn parse(text: &str, limits: &Limits) -> Result<Parsed, SyntaxError> {
    json::check(text.as_bytes(), limits)?;
    let mut parser = Parser { text, at: 0, repeated: None, replaced: false };
    parser.space();
    let value = parser.value()?;
    parser.space();
    if parser.at < text.len() {
        return parser.fail("text after the value");
    }
    Ok(Parsed { value, repeated: parser.repeated, replaced: parser.replaced })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    repeated: Option<String>,
    replaced: bool,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, SyntaxError> {
        Err(SyntaxError::Grammar { offset: self.at, what })
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `byte` and the white space before and after it.
    fn takes(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
            self.space();
        }
        found
    }

    fn value(&mut self) -> Result<Value, SyntaxError> {
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'"') => self.string().map(Value::from),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.word(),
            None => self.fail("the text ends where a value should stand"),
        }
    }

    fn word(&mut self) -> Result<Value, SyntaxError> {
        for (word, value) in [("null", Value::Null), ("true", true.into()), ("false", false.into())] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.fail("no JSON value")
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let rest = self.rest();
        let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let end = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let number = rest.get(..end).unwrap_or_default().parse::<Number>();
        let offset = self.at;
        self.at += end;
        number.map(Value::Number).map_err(|source| SyntaxError::Number { offset, source })
    }

    fn list(&mut self) -> Result<Value, SyntaxError> {
        let mut items = Vec::new();
        self.takes(b'[');
        if self.takes(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value()?);
            if self.takes(b']') {
                return Ok(Value::List(items));
            }
            if !self.takes(b',') {
                return self.fail("`,` or `]` is missing");
            }
        }
    }

    fn object(&mut self) -> Result<Value, SyntaxError> {
        let mut members = Members::new();
        self.takes(b'{');
        if self.takes(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("a name in quotes is missing");
            }
            let name = self.string()?;
            if !self.takes(b':') {
                return self.fail("`:` is missing");
            }
            let value = self.value()?;
            match members.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(mut entry) => {
                    self.repeated.get_or_insert_with(|| escape_bounded(entry.key(), 60));
                    entry.insert(value);
                }
            }
            if self.takes(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.takes(b',') {
                return self.fail("`,` or `}` is missing");
            }
        }
    }

    /// A string whose opening quote is next.
    fn string(&mut self) -> Result<String, SyntaxError> {
        self.at += 1;
        let rest = self.rest();
        let mut escapes = false;
        let mut bytes = rest.bytes().enumerate();
        while let Some((length, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    let raw = rest.get(..length).unwrap_or_default();
                    let text = if escapes { self.unescape(raw)? } else { raw.to_owned() };
                    self.at += length + 1;
                    return Ok(text);
                }
                b'\\' => {
                    escapes = true;
                    bytes.next();
                }
                0..=0x1f => {
                    self.at += length;
                    return self.fail("a control character inside a string");
                }
                _ => {}
            }
        }
        self.fail("a string that does not end")
    }

    /// What a string's text stands for. It is never longer than the text, so the buffer does not grow and leave parts behind.
    fn unescape(&mut self, raw: &str) -> Result<String, SyntaxError> {
        let mut out = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some((before, after)) = rest.split_once('\\') {
            out.push_str(before);
            let mut after = after.chars();
            let character = match after.next() {
                Some(plain @ ('"' | '\\' | '/')) => Some(plain),
                Some('b') => Some('\u{8}'),
                Some('f') => Some('\u{c}'),
                Some('n') => Some('\n'),
                Some('r') => Some('\r'),
                Some('t') => Some('\t'),
                Some('u') => self.unicode(&mut after),
                _ => None,
            };
            let Some(character) = character else {
                self.at += raw.len() - rest.len() + before.len();
                return self.fail("an escape that JSON does not know");
            };
            out.push(character);
            rest = after.as_str();
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The character of `\uXXXX`, or of two of them that belong together.
    fn unicode(&mut self, after: &mut Chars<'_>) -> Option<char> {
        let first = hex4(after)?;
        if let Some(character) = char::from_u32(first) {
            return Some(character);
        }
        let mut ahead = after.clone();
        if first < 0xdc00 && ahead.next() == Some('\\') && ahead.next() == Some('u') {
            let second = hex4(&mut ahead)?;
            if (0xdc00..0xe000).contains(&second) {
                *after = ahead;
                return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
        }
        self.replaced = true;
        Some(char::REPLACEMENT_CHARACTER)
    }
}

fn hex4(text: &mut Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |sum, _| Some(sum * 16 + text.next()?.to_digit(16)?))
}
