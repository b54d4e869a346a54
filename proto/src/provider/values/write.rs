//! Values and frames to JSON text: measured first, so that nothing is made that is too long, and no part of a secret stays
//! behind in a buffer that had to grow.

use std::fmt::Write as _;

use zeroize::Zeroizing;

use super::value::Value;

/// What is written: a value, or something around one whose order of names is fixed.
pub enum Part<'a> {
    /// A value, keys sorted.
    Value(&'a Value),
    /// An object of such.
    Members(&'a super::Members),
    /// A text.
    Text(&'a str),
    /// A whole number.
    Int(i64),
    /// A number that is never negative.
    Count(u64),
    /// A flag.
    Flag(bool),
    /// A value that is JSON text already, nothing but one value.
    Json(&'a str),
    /// An object whose names stand in the order given.
    Fields(Vec<(&'a str, Part<'a>)>),
    /// A list.
    List(Vec<Part<'a>>),
}

/// Where JSON goes.
trait Sink {
    fn put(&mut self, text: &str);
    /// A number: as it was written, or in normal form.
    fn number(&mut self, number: &super::Number) {
        self.put(number.as_str());
    }
    /// One more level of nesting is open, or one less.
    fn nest(&mut self, _deeper: bool) {}
}

impl Sink for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// Counts bytes and levels.
#[derive(Default)]
struct Measure {
    bytes: usize,
    depth: usize,
    deepest: usize,
}

impl Sink for Measure {
    fn put(&mut self, text: &str) {
        self.bytes += text.len();
    }

    fn nest(&mut self, deeper: bool) {
        self.depth = if deeper { self.depth + 1 } else { self.depth.saturating_sub(1) };
        self.deepest = self.deepest.max(self.depth);
    }
}

/// Writes numbers in normal form.
struct Canonical<'a>(&'a mut String);

impl Sink for Canonical<'_> {
    fn put(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn number(&mut self, number: &super::Number) {
        self.0.push_str(&number.normal());
    }
}

/// Bytes of the JSON text of `part`, and its deepest nesting.
pub fn measure(part: &Part<'_>) -> (usize, usize) {
    let mut measure = Measure::default();
    emit(part, &mut measure);
    (measure.bytes, measure.deepest)
}

/// `part` as JSON text that is wiped when dropped, with room for `extra` more bytes.
pub fn write(part: &Part<'_>, extra: usize) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(measure(part).0 + extra));
    emit(part, &mut *out);
    out
}

/// Appends `part` to `out`.
pub fn write_plain(part: &Part<'_>, out: &mut String) {
    out.reserve_exact(measure(part).0);
    emit(part, out);
}

/// Appends `value` to `out` with numbers in normal form.
pub fn write_canonical(value: &Value, out: &mut String) {
    out.reserve_exact(measure(&Part::Value(value)).0);
    emit_value(value, &mut Canonical(out));
}

/// `text` as a JSON string with its quotes.
pub fn quoted(text: &str) -> String {
    let mut out = String::new();
    emit_text(text, &mut out);
    out
}

fn emit<S: Sink>(part: &Part<'_>, out: &mut S) {
    match part {
        Part::Value(value) => emit_value(value, out),
        Part::Members(members) => {
            emit_object(members.iter().map(|(name, value)| (name.as_str(), value)), emit_value, out);
        }
        Part::Text(text) => emit_text(text, out),
        Part::Int(number) => out.put(&number.to_string()),
        Part::Count(number) => out.put(&number.to_string()),
        Part::Flag(flag) => out.put(if *flag { "true" } else { "false" }),
        Part::Json(text) => emit_json(text, out),
        Part::Fields(fields) => emit_object(fields.iter().map(|(name, part)| (*name, part)), emit, out),
        Part::List(items) => emit_list(items.iter(), emit, out),
    }
}

fn emit_value<S: Sink>(value: &Value, out: &mut S) {
    match value {
        Value::Null => out.put("null"),
        Value::Bool(flag) => out.put(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.number(number),
        Value::String(text) => emit_text(text, out),
        Value::List(items) => emit_list(items.iter(), emit_value, out),
        Value::Object(members) => {
            emit_object(members.iter().map(|(name, value)| (name.as_str(), value)), emit_value, out);
        }
    }
}

fn emit_list<'a, T: 'a, S: Sink>(items: impl Iterator<Item = &'a T>, each: impl Fn(&T, &mut S), out: &mut S) {
    out.nest(true);
    out.put("[");
    for (position, item) in items.enumerate() {
        out.put(if position == 0 { "" } else { "," });
        each(item, out);
    }
    out.put("]");
    out.nest(false);
}

fn emit_object<'a, T: 'a, S: Sink>(
    members: impl Iterator<Item = (&'a str, &'a T)>,
    each: impl Fn(&T, &mut S),
    out: &mut S,
) {
    out.nest(true);
    out.put("{");
    for (position, (name, item)) in members.enumerate() {
        out.put(if position == 0 { "" } else { "," });
        emit_text(name, out);
        out.put(":");
        each(item, out);
    }
    out.put("}");
    out.nest(false);
}

/// JSON text, which may stand in a line as it is but for line ends around its values and what [`emit_text`] escapes: those characters
/// can only stand inside strings.
fn emit_json<S: Sink>(text: &str, out: &mut S) {
    // The two bytes with which all characters begin that are escaped.
    let is_plain = |byte: u8| byte >= b' ' && !matches!(byte, 0x7f | 0xc2 | 0xe2);
    if text.bytes().all(is_plain) {
        out.put(text);
        return;
    }
    let special = |character: char| matches!(character, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
    let mut rest = text;
    while let Some(at) = rest.find(special) {
        let (plain, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.put(plain);
        let mut after = after.chars();
        match after.next() {
            Some(space) if space < ' ' => out.put(" "),
            Some(other) => emit_escape(other, out),
            None => {}
        }
        rest = after.as_str();
    }
    out.put(rest);
}

fn emit_escape<S: Sink>(character: char, out: &mut S) {
    let mut escape = String::with_capacity(6);
    // Writing to a string cannot fail.
    let _ = write!(escape, "\\u{:04x}", u32::from(character));
    out.put(&escape);
}

/// A JSON string. Besides what JSON demands, the characters are escaped that some runtimes take for the end of a line (next line,
/// line separator, paragraph separator) or some terminal for a command.
fn emit_text<S: Sink>(text: &str, out: &mut S) {
    out.put("\"");
    let mut rest = text;
    let special = |character: char| matches!(character, '"' | '\\' | '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
    while let Some(at) = rest.find(special) {
        let (plain, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.put(plain);
        let mut after = after.chars();
        match after.next() {
            Some('"') => out.put("\\\""),
            Some('\\') => out.put("\\\\"),
            Some('\n') => out.put("\\n"),
            Some('\r') => out.put("\\r"),
            Some('\t') => out.put("\\t"),
            Some('\u{8}') => out.put("\\b"),
            Some('\u{c}') => out.put("\\f"),
            Some(other) => emit_escape(other, out),
            None => {}
        }
        rest = after.as_str();
    }
    out.put(rest);
    out.put("\"");
}
