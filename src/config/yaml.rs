//! A YAML file as a tree in which every value knows its place.
//!
//! Plain scalars are resolved as the peer's YAML reader does (YAML 1.1: `yes` and `on` are booleans, `010` is eight, `0x1f` is
//! thirty-one), only the first document counts, aliases and merge keys are followed.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::fault::Place;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// What a YAML node is, after resolution.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number, too large ones included.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the order of the file, duplicates included.
    Map(Vec<(Key, Node)>),
}

impl Value {
    /// What it is called in a message.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

/// A key of a map; numbers and booleans as keys become text, as in the peer.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The key.
    pub text: String,
    /// Where it stands.
    pub place: Place,
}

/// Why a text is no YAML we can use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{what}")]
pub struct YamlError {
    /// What is wrong.
    pub what: String,
    /// Where.
    pub place: Place,
}

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The first document; `None` when the text holds none.
    pub root: Option<Node>,
    /// Where a second document begins, which is ignored.
    pub second: Option<Place>,
}

const MAX_DEPTH: usize = 32;
/// Nodes, those made by aliases included.
const MAX_NODES: usize = 20_000;

/// Reads `text`.
///
/// # Errors
/// A syntax error with its place; nesting or aliases beyond all reason.
pub fn parse(text: &str) -> Result<Document, YamlError> {
    let mut text = std::borrow::Cow::Borrowed(text);
    loop {
        match parse_strictly(&text) {
            Err(error) => match without_tab(&text, error.place) {
                Some(patched) => text = patched.into(),
                None => return Err(error),
            },
            read => return read,
        }
    }
}

/// The peer's reader takes tabs after the colon of a key where ours wants spaces. When the error stands behind such tabs, spaces in their place
/// move nothing else.
fn without_tab(text: &str, place: Place) -> Option<String> {
    let (before, after) = text.split_at_checked(place.offset)?;
    let kept = before.trim_end_matches([' ', '\t']);
    let blanks = before.get(kept.len()..)?;
    (kept.ends_with(':') && blanks.contains('\t')).then(|| [kept, &blanks.replace('\t', " "), after].concat())
}

fn parse_strictly(text: &str) -> Result<Document, YamlError> {
    let places = Places::new(text);
    let mut builder =
        Builder { places: &places, open: Vec::new(), anchors: HashMap::new(), root: None, nodes: 0 };
    let mut parser = Parser::new_from_str(text);
    let mut second = None;
    let mut finished = false;
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok(found) => found,
            // What comes after the first document is ignored, well-formed or not.
            Err(_) if finished => break,
            Err(error) => return Err(places.explain(text, &error)),
        };
        match event {
            Event::DocumentStart(_) if finished => {
                second = Some(places.of(span));
                break;
            }
            Event::DocumentEnd => finished = true,
            Event::StreamEnd => break,
            event => builder.take(event, span)?,
        }
    }
    Ok(Document { root: builder.root, second })
}

/// Translates the parser's character positions.
struct Places {
    /// Byte offset of each character, and of the end.
    offsets: Vec<usize>,
}

impl Places {
    fn new(text: &str) -> Self {
        Self { offsets: text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len())).collect() }
    }

    fn offset(&self, index: usize) -> usize {
        self.offsets.get(index).or(self.offsets.last()).copied().unwrap_or_default()
    }

    fn of(&self, span: Span) -> Place {
        let offset = self.offset(span.start.index());
        Place {
            line: span.start.line(),
            column: span.start.col().saturating_add(1),
            offset,
            length: self.offset(span.end.index()).saturating_sub(offset),
        }
    }

    fn explain(&self, text: &str, error: &saphyr_parser::ScanError) -> YamlError {
        let mark = error.marker();
        // Tabs are the usual reason, and the parser's own words seldom say so: point at the first line indented with one.
        let mut offset = 0_usize;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let blank = line.trim_start_matches([' ', '\t']);
            let indent = line.len().saturating_sub(blank.len());
            let tab = line.get(..indent).and_then(|blank| blank.find('\t'));
            if let Some(at) =
                tab.filter(|_| number.saturating_add(1) <= mark.line() && !blank.trim().is_empty())
            {
                let place = Place {
                    line: number.saturating_add(1),
                    column: at.saturating_add(1),
                    offset: offset.saturating_add(at),
                    length: 1,
                };
                return YamlError {
                    what: "the line is indented with a tab; YAML allows spaces only".to_owned(),
                    place,
                };
            }
            offset = offset.saturating_add(line.len());
        }
        let place = Place {
            line: mark.line(),
            column: mark.col().saturating_add(1),
            offset: self.offset(mark.index()),
            length: 0,
        };
        YamlError { what: format!("it is no valid YAML: {}", error.info()), place }
    }
}

enum Open {
    List(Vec<Node>),
    Map { entries: Vec<(Key, Node)>, key: Option<Key> },
}

struct Builder<'p> {
    places: &'p Places,
    open: Vec<(Open, Place, usize)>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let place = self.places.of(span);
        match event {
            Event::SequenceStart(anchor, _) => self.begin(Open::List(Vec::new()), place, anchor),
            Event::MappingStart(anchor, _) => {
                self.begin(Open::Map { entries: Vec::new(), key: None }, place, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::List(items), start, anchor)) => self.add(Value::List(items), start, anchor),
                Some((Open::Map { entries, .. }, start, anchor)) => {
                    self.add(Value::Map(entries), start, anchor)
                }
                None => Ok(()),
            },
            Event::Scalar(text, style, anchor, tag) => {
                // The key of a map is text, whatever it looks like.
                if let Some((Open::Map { key: key @ None, .. }, ..)) = self.open.last_mut() {
                    if anchor > 0 {
                        self.anchors.insert(anchor, Node { place, value: Value::Text(text.to_string()) });
                    }
                    *key = Some(Key { text: text.into_owned(), place });
                    return Ok(());
                }
                self.add(resolve(&text, style, tag.as_deref()), place, anchor)
            }
            Event::Alias(anchor) => {
                let copy = self.anchors.get(&anchor).cloned();
                let value = copy.map_or(Value::Null, |node| node.value);
                self.nodes = self.nodes.saturating_add(count(&value));
                if let (Some((Open::Map { key: key @ None, .. }, ..)), Value::Text(text)) =
                    (self.open.last_mut(), &value)
                {
                    *key = Some(Key { text: text.clone(), place });
                    return Ok(());
                }
                self.add(value, place, 0)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, what: Open, place: Place, anchor: usize) -> Result<(), YamlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlError { what: format!("it is nested more than {MAX_DEPTH} deep"), place });
        }
        self.open.push((what, place, anchor));
        Ok(())
    }

    fn add(&mut self, value: Value, place: Place, anchor: usize) -> Result<(), YamlError> {
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > MAX_NODES {
            return Err(YamlError { what: format!("it holds more than {MAX_NODES} values"), place });
        }
        let node = Node { place, value };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            Some((Open::List(items), ..)) => items.push(node),
            Some((Open::Map { entries, key }, ..)) => match key.take() {
                Some(key) if key.text == "<<" => merge(entries, node),
                Some(key) => entries.push((key, node)),
                None => return Err(YamlError { what: "a list or map cannot be a key".to_owned(), place }),
            },
            None => self.root = Some(node),
        }
        Ok(())
    }
}

/// Follows a merge key: the entries of a map, or of each map of a list, as if they stood here.
fn merge(entries: &mut Vec<(Key, Node)>, node: Node) {
    match node.value {
        Value::Map(merged) => {
            for (key, value) in merged {
                entries.retain(|(known, _)| known.text != key.text);
                entries.push((key, value));
            }
        }
        Value::List(maps) => maps.into_iter().for_each(|map| merge(entries, map)),
        _ => {}
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::List(items) => items.iter().map(|item| count(&item.value)).fold(1, usize::saturating_add),
        Value::Map(entries) => {
            entries.iter().map(|(_, item)| count(&item.value)).fold(1, usize::saturating_add)
        }
        _ => 1,
    }
}

fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let core = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    match core.or(tag.map(|_| "str")) {
        Some("int" | "float" | "bool" | "null") => plain(text),
        None if style == ScalarStyle::Plain => plain(text),
        _ => Value::Text(text.to_owned()),
    }
}

/// YAML 1.1 resolution of a plain scalar.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Value::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    let looks_numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    if !looks_numeric {
        return Value::Text(text.to_owned());
    }
    let bare = text.replace('_', "");
    if let Some(number) = integer(&bare) {
        return Value::Integer(number);
    }
    let digits = bare.trim_start_matches(['+', '-']);
    let is_float = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    match bare.parse::<f64>() {
        // What is too large for a number is text, as in the peer.
        Ok(number) if is_float && number.is_finite() => Value::Float(number),
        _ => Value::Text(text.to_owned()),
    }
}

fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, base) = match digits.get(..2) {
        Some("0x" | "0X") => (digits.get(2..)?, 16),
        Some("0b" | "0B") => (digits.get(2..)?, 2),
        Some("0o" | "0O") => (digits.get(2..)?, 8),
        Some(start) if start.starts_with('0') => (digits.get(1..)?, 8),
        _ => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = i128::from_str_radix(digits, base).ok()?;
    i64::try_from(if negative { -number } else { number }).ok()
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
