//! Secrets kept out of what is shown.

use std::fmt;

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
    /// What is looked for, sorted, each once.
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
        self.secrets.sort_by(|left, right| left.as_str().cmp(right));
        self.secrets.dedup();
    }

    /// `text` with every secret covered, also where two overlap.
    pub fn text(&self, text: &str) -> String {
        self.until(text, text.len())
    }

    /// The first `end` bytes of `text` with every secret covered that begins in them.
    fn until(&self, text: &str, end: usize) -> String {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for secret in &self.secrets {
            found.extend(occurrences(text, secret));
        }
        found.sort_unstable();
        let mut out = String::with_capacity(end);
        let mut at = 0;
        for (start, stop) in found.into_iter().filter(|(start, _)| *start < end) {
            if start >= at {
                out.push_str(text.get(at..start).unwrap_or_default());
                out.push_str(MASKED);
            }
            at = at.max(stop);
        }
        out.push_str(text.get(at..end).unwrap_or_default());
        out
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

/// Where `secret` stands in `text`, also when one place overlaps the next.
fn occurrences<'a>(text: &'a str, secret: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let step = secret.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find(secret)?;
        from = start + step;
        Some((start, start + secret.len()))
    })
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
    let longest = mask.secrets.iter().map(|secret| secret.len()).max().unwrap_or_default();
    let looked_at = line.get(..MAX_EXCERPT + longest).unwrap_or(line);
    let text = String::from_utf8_lossy(looked_at);
    let mut end = text.len().min(MAX_EXCERPT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let shown = escape_bounded(&mask.until(&text, end), MAX_EXCERPT * 10);
    let cut = if end < text.len() || looked_at.len() < line.len() { "…" } else { "" };
    format!("{shown}{cut}")
}
