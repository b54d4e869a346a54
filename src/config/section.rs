//! One map of the YAML file: known keys are taken out with their types, whatever is left is unknown.

use std::path::Path;

use super::fault::Faults;
use super::raw::KEYS;
use super::yaml::{Key, Node, Value};

/// One map of the file, from which known keys are taken until only unknown ones are left.
pub(super) struct Section<'f> {
    pub file: &'f Path,
    /// The way to it, empty at the top.
    pub name: String,
    /// Its keys where the table of the file does not list them: sections under names of the site's own, and in lists.
    pub known: &'static [&'static str],
    pub entries: Vec<(Key, Node)>,
    pub faults: &'f mut Faults,
    pub strict: bool,
}

impl Section<'_> {
    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// Takes every spelling of `key`. Of several, the one that the peer would use last: equal spellings in the order of the file, different ones sorted.
    fn take(&mut self, key: &str) -> Option<Node> {
        let (mut found, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|(known, _)| known.text.eq_ignore_ascii_case(key));
        self.entries = rest;
        found.sort_by(|(a, _), (b, _)| a.text.cmp(&b.text));
        let count = found.len();
        // `null` unsets an equal spelling before it, but leaves what another spelling set.
        let last = found.iter().enumerate().rev().find(|(index, (key, node))| {
            let shadowed = found.get(index.saturating_add(1)).is_some_and(|(next, _)| next.text == key.text);
            !shadowed && node.value != Value::Null
        });
        let at = last.map_or(count.saturating_sub(1), |(index, _)| index);
        if at >= count {
            return None;
        }
        let (written, node) = found.remove(at);
        let path = self.path(key);
        self.faults.add_place(&path, self.file, written.place);
        if written.text != key {
            let what = format!("it is written `{}`", written.text);
            self.odd(&path, what, &format!("write `{key}`; only its lower-case form is documented"));
        }
        if count > 1 {
            let lines: Vec<String> = found.iter().map(|(other, _)| other.place.line.to_string()).collect();
            let what =
                format!("it is set more than once; this line is used, line {} is not", lines.join(", "));
            self.odd(&path, what, "remove all but one");
        }
        self.faults.add_place(&path, self.file, node_place(&written, &node));
        if super::fault::is_secret(&path) {
            self.faults.mask(self.file, node.place);
        }
        Some(node)
    }

    /// A warning, or an error when the file is strict.
    fn odd(&mut self, path: &str, what: impl Into<String>, help: &str) {
        if self.strict {
            self.faults.error(path, what, help);
        } else {
            self.faults.warning(path, what, help);
        }
    }

    fn wrong(&mut self, key: &str, node: &Node, wanted: &str, help: &str) {
        let path = self.path(key);
        let found = if super::fault::is_secret(&path) { String::new() } else { sample(&node.value) };
        self.faults.error(&path, format!("it must be {wanted} but is {}{found}", node.value.kind()), help);
    }

    pub fn text(&mut self, key: &str) -> Option<String> {
        let node = self.take(key)?;
        match &node.value {
            Value::Null => None,
            Value::Text(text) => Some(text.clone()),
            Value::Integer(number) if is_duration(key) => {
                self.wrong(
                    key,
                    &node,
                    "text",
                    &format!("give it a unit: `{key}: {number}s` or `{key}: {number}m`"),
                );
                None
            }
            Value::Bool(_) | Value::Integer(_) | Value::Float(_) => {
                self.wrong(key, &node, "text", "put the value in quotes");
                None
            }
            Value::List(_) | Value::Map(_) => {
                self.wrong(key, &node, "text", "write a single value after the colon");
                None
            }
        }
    }

    /// A text, or a whole number as it stands: for what is a port as well as an address.
    pub fn text_or_number(&mut self, key: &str) -> Option<String> {
        let is_number = self.entries.iter().any(|(known, node)| {
            known.text.eq_ignore_ascii_case(key) && matches!(node.value, Value::Integer(_))
        });
        if is_number { self.integer(key).map(|number| number.to_string()) } else { self.text(key) }
    }

    pub fn boolean(&mut self, key: &str) -> Option<bool> {
        let node = self.take(key)?;
        match &node.value {
            Value::Null => None,
            Value::Bool(value) => Some(*value),
            Value::Text(text)
                if ["true", "yes", "on", "false", "no", "off"]
                    .contains(&text.to_ascii_lowercase().as_str()) =>
            {
                self.wrong(key, &node, "true or false", "remove the quotes");
                None
            }
            _ => {
                self.wrong(key, &node, "true or false", "write `true` or `false`");
                None
            }
        }
    }

    pub fn integer(&mut self, key: &str) -> Option<i64> {
        let node = self.take(key)?;
        match &node.value {
            Value::Null => None,
            Value::Integer(number) => Some(*number),
            // The peer's detour over JSON makes `8.0` and `8` the same.
            Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                format!("{number:.0}").parse().ok()
            }
            Value::Text(text) if text.trim().parse::<i64>().is_ok() => {
                self.wrong(key, &node, "a whole number", "remove the quotes");
                None
            }
            _ => {
                self.wrong(key, &node, "a whole number", "write digits only");
                None
            }
        }
    }

    pub fn list(&mut self, key: &str) -> Option<Vec<String>> {
        let node = self.take(key)?;
        let items = match &node.value {
            Value::Null => return None,
            Value::List(items) => items,
            _ => {
                self.wrong(key, &node, "a list of texts", "begin each entry on its own line with `- `");
                return None;
            }
        };
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.path(key));
            self.faults.add_place(&path, self.file, item.place);
            match &item.value {
                Value::Text(text) => texts.push(text.clone()),
                Value::Null => texts.push(String::new()),
                other => self.faults.error(
                    &path,
                    format!("it must be text but is {}{}", other.kind(), sample(other)),
                    "put the value in quotes",
                ),
            }
        }
        Some(texts)
    }

    pub fn section(&mut self, key: &'static str) -> Option<Section<'_>> {
        let node = self.take(key)?;
        match node.value {
            Value::Null => None,
            Value::Map(entries) => Some(Section {
                file: self.file,
                name: self.path(key),
                known: &[],
                entries,
                faults: self.faults,
                strict: self.strict,
            }),
            _ => {
                self.wrong(
                    key,
                    &node,
                    "a map",
                    "write its keys on the following lines, indented with spaces",
                );
                None
            }
        }
    }

    /// A section whose keys the table of the file does not list.
    pub fn nested(&mut self, key: &str, known: &'static [&'static str]) -> Option<Section<'_>> {
        let node = self.take(key)?;
        let name = self.path(key);
        self.inside(name, known, node)
    }

    /// A map from names of the site's own to sections, in the order of the file.
    pub fn each_named<T>(
        &mut self,
        key: &str,
        known: &'static [&'static str],
        mut read: impl FnMut(&str, Section<'_>) -> T,
    ) -> Vec<T> {
        let Some(node) = self.take(key) else { return Vec::new() };
        let path = self.path(key);
        let entries = match node.value {
            Value::Null => return Vec::new(),
            Value::Map(entries) => entries,
            _ => {
                self.wrong(key, &node, "a map", "write a name on each line, and what it stands for below it");
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for (name, node) in entries {
            let path = format!("{path}.{}", name.text);
            if self.faults.place(&path).is_some() {
                self.faults.error(&path, "this name is there twice", "remove one of the two");
                continue;
            }
            self.faults.add_place(&path, self.file, name.place);
            found.extend(self.inside(path, known, node).map(|section| read(&name.text, section)));
        }
        found
    }

    /// A list of sections.
    pub fn each<T>(
        &mut self,
        key: &str,
        known: &'static [&'static str],
        mut read: impl FnMut(Section<'_>) -> T,
    ) -> Vec<T> {
        let Some(node) = self.take(key) else { return Vec::new() };
        let path = self.path(key);
        let items = match node.value {
            Value::Null => return Vec::new(),
            Value::List(items) => items,
            _ => {
                self.wrong(key, &node, "a list", "begin each entry on its own line with `- `");
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for (index, node) in items.into_iter().enumerate() {
            let path = format!("{path}[{index}]");
            self.faults.add_place(&path, self.file, node.place);
            found.extend(self.inside(path, known, node).map(&mut read));
        }
        found
    }

    /// A value of any kind, as it stands. Its scalars are covered where the text is shown when it may hold secrets.
    pub fn any(&mut self, key: &str, secret: bool) -> Option<Node> {
        let node = self.take(key)?;
        let path = self.path(key);
        self.note(&path, &node, secret);
        Some(node)
    }

    fn note(&mut self, path: &str, node: &Node, secret: bool) {
        match &node.value {
            Value::Map(entries) => {
                for (key, node) in entries {
                    let path = format!("{path}.{}", key.text);
                    self.faults.add_place(&path, self.file, node_place(key, node));
                    self.note(&path, node, secret);
                }
            }
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.faults.add_place(&path, self.file, item.place);
                    self.note(&path, item, secret);
                }
            }
            _ if secret => self.faults.mask(self.file, node.place),
            _ => {}
        }
    }

    /// A map from names to texts.
    pub fn texts(&mut self, key: &str) -> Vec<(String, String)> {
        let Some(node) = self.take(key) else { return Vec::new() };
        let entries = match &node.value {
            Value::Null => return Vec::new(),
            Value::Map(entries) => entries,
            _ => {
                self.wrong(key, &node, "a map", "write `name: value` lines below it");
                return Vec::new();
            }
        };
        let mut texts = Vec::new();
        for (name, node) in entries {
            let path = format!("{}.{}", self.path(key), name.text);
            self.faults.add_place(&path, self.file, node_place(name, node));
            match &node.value {
                Value::Text(text) => texts.push((name.text.clone(), text.clone())),
                Value::Integer(number) => texts.push((name.text.clone(), number.to_string())),
                other => {
                    let what = format!("it must be text but is {}", other.kind());
                    self.faults.error(&path, what, "put the value in quotes");
                }
            }
        }
        texts
    }

    fn inside(&mut self, name: String, known: &'static [&'static str], node: Node) -> Option<Section<'_>> {
        match node.value {
            Value::Null => None,
            Value::Map(entries) => Some(Section {
                file: self.file,
                name,
                known,
                entries,
                faults: self.faults,
                strict: self.strict,
            }),
            other => {
                let what = format!("it must be a map but is {}", other.kind());
                self.faults.error(&name, what, "write its keys on the following lines, indented with spaces");
                None
            }
        }
    }

    /// Whatever was not taken is unknown.
    pub fn finish(mut self) {
        for (key, _) in std::mem::take(&mut self.entries) {
            let path = self.path(&key.text);
            self.faults.add_place(&path, self.file, key.place);
            let help = match nearest(&self.name, self.known, &key.text) {
                Some(known) => format!("did you mean `{known}`?"),
                None => "remove it; `quartermaster check --print-default` lists every key".to_owned(),
            };
            let what =
                if self.strict { "there is no such key" } else { "there is no such key; it is ignored" };
            self.odd(&path, what, &help);
        }
    }
}

/// Where to point: the value, or the key when the value is on other lines or not there.
const fn node_place(key: &Key, node: &Node) -> super::fault::Place {
    if node.place.line == key.place.line && node.place.length > 0 { node.place } else { key.place }
}

fn is_duration(key: &str) -> bool {
    ["interval", "server_jwt_validity", "helper_timeout", "first", "cap", "give_up_after"].contains(&key)
}

/// The value, when it is short enough to be shown: ` (60)`.
fn sample(value: &Value) -> String {
    match value {
        Value::Bool(value) => format!(" ({value})"),
        Value::Integer(value) => format!(" ({value})"),
        Value::Float(value) => format!(" ({value})"),
        Value::Text(value) => format!(" ({:?})", value.chars().take(40).collect::<String>()),
        Value::Null | Value::List(_) | Value::Map(_) => String::new(),
    }
}

/// The known key most like `written`, as a path: in the same section first, then the same name elsewhere (a misplaced key), then a
/// similar name elsewhere.
fn nearest(section: &str, known: &'static [&'static str], written: &str) -> Option<String> {
    let written = written.to_ascii_lowercase().replace('-', "_");
    let mut best: Option<(f64, String)> = None;
    let own = [(section, known)];
    for (name, keys) in own.iter().chain(KEYS) {
        for key in *keys {
            let path = if name.is_empty() { (*key).to_owned() } else { format!("{name}.{key}") };
            let same_section = *name == section;
            let likeness = strsim::jaro_winkler(&written, key)
                .max(strsim::jaro_winkler(&written.replace('_', ""), &key.replace('_', "")));
            let edits = strsim::damerau_levenshtein(&written, key);
            let dotted = if path == written { 1.0 } else { 0.0 };
            let score = f64::max(likeness, dotted) + if same_section { 0.02 } else { 0.0 };
            let near = likeness > 0.88 || edits <= 1 || dotted > 0.0;
            if near && best.as_ref().is_none_or(|(known, _)| score > *known) {
                best = Some((score, path));
            }
        }
    }
    best.map(|(_, path)| path)
}
