//! Secrets kept out of what is shown.

use std::fmt;

use regex::Regex;
use zeroize::Zeroizing;

use crate::{
    provider::values::{Value, quoted},
    text::escape_bounded,
};

/// What stands in for a secret.
pub const MASKED: &str = "***";
/// Most bytes of a line that are shown.
const MAX_EXCERPT: usize = 200;
/// Shortest line of a secret of several lines that is masked by itself, in bytes.
const MIN_LINE: usize = 8;

/// Finds secrets in text and covers them: every string and number of the values it was made from, as it stands and as JSON
/// writes it, and each longer line of a secret of several lines. `true`, `false` and null are no secrets.
#[derive(Clone, Default)]
pub struct Mask {
    finder: Option<Regex>,
    /// There were too many secrets to look for: everything is covered.
    covers_all: bool,
    /// What is looked for, longest first.
    secrets: Vec<Zeroizing<String>>,
}

impl Mask {
    /// Covers everything in these values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut mask = Self::default();
        mask.cover(values);
        mask
    }

    /// Covers everything in these values too.
    pub fn cover<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) {
        for value in values {
            collect(value, &mut self.secrets);
        }
        // Longest first: of two secrets that begin alike the whole of the longer one is covered.
        self.secrets.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
        self.secrets.dedup();
        self.finder = None;
        if self.secrets.is_empty() {
            return;
        }
        let pattern = self.secrets.iter().map(|secret| regex::escape(secret)).collect::<Vec<_>>().join("|");
        match Regex::new(&Zeroizing::new(pattern)) {
            Ok(finder) => self.finder = Some(finder),
            Err(_) => self.covers_all = true,
        }
    }

    /// `text` with every secret covered.
    pub fn text(&self, text: &str) -> String {
        match &self.finder {
            _ if self.covers_all => MASKED.to_owned(),
            Some(finder) => finder.replace_all(text, MASKED).into_owned(),
            None => text.to_owned(),
        }
    }

    /// `value` with every secret in its strings, numbers and names covered, for traces and records.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Number(number) => {
                let shown = self.text(number.as_str());
                if shown == number.as_str() { value.clone() } else { shown.into() }
            }
            Value::List(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| (self.text(name), self.value(value))).collect()
            }
            Value::Null | Value::Bool(_) => value.clone(),
        }
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Mask of {}", self.secrets.len())
    }
}

fn collect(value: &Value, secrets: &mut Vec<Zeroizing<String>>) {
    let mut add = |text: &str| {
        if !text.is_empty() {
            secrets.push(Zeroizing::new(text.to_owned()));
        }
    };
    match value {
        Value::String(text) => {
            add(text);
            let escaped = Zeroizing::new(quoted(text));
            add(escaped.trim_start_matches('"').strip_suffix('"').unwrap_or_default());
            if text.contains('\n') {
                text.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE).for_each(add);
            }
        }
        Value::Number(number) => {
            add(number.as_str());
            add(&number.normal());
        }
        Value::List(items) => items.iter().for_each(|item| collect(item, secrets)),
        Value::Object(members) => members.values().for_each(|value| collect(value, secrets)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The beginning of a line that is no frame, for the detail of an error: secrets covered, escaped, at most 200 bytes of the line.
pub fn excerpt(line: &[u8], mask: &Mask) -> String {
    // A secret may begin before the cut and end after it, so more than is shown is looked through.
    let text = mask.text(&String::from_utf8_lossy(line));
    let mut end = text.len().min(MAX_EXCERPT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = if end < text.len() { "…" } else { "" };
    format!("{}{cut}", escape_bounded(text.get(..end).unwrap_or_default(), MAX_EXCERPT * 10))
}
