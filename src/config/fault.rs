//! What is wrong with a configuration: every fault with its file, line, key path, what is wrong and what to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::exit::Exit;

/// Whether the daemon may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It starts; somebody should look.
    Warning,
    /// It does not start.
    Error,
}

/// What kind of thing is wrong; decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// The text of a configuration file.
    Config,
    /// Something a configuration file names: a key, a token, the helper, a folder.
    Files,
    /// The broker.
    Broker,
}

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Bytes from the start of the file.
    #[serde(skip)]
    pub offset: usize,
    /// Bytes that belong to it.
    #[serde(skip)]
    pub length: usize,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Whether the daemon may start.
    pub severity: Severity,
    /// What kind of thing is wrong.
    pub kind: FaultKind,
    /// The file it stands in, when it stands in one.
    pub file: Option<PathBuf>,
    /// Where in the file.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// The key, as a path such as `features.pki`.
    pub key: Option<String>,
    /// What is wrong, a sentence without a full stop. Never holds a secret.
    pub what: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// All faults found so far, the texts they stand in (secrets masked) and the place of every key.
#[derive(Debug, Default, Clone)]
pub struct Faults {
    list: Vec<Fault>,
    texts: BTreeMap<PathBuf, String>,
    places: BTreeMap<String, (PathBuf, Place)>,
}

impl Faults {
    /// Adds a file's text, from which the lines around a fault are shown. Values of secret keys are masked first.
    pub fn add_text(&mut self, file: &Path, text: &str) {
        self.texts.insert(file.to_owned(), mask_secrets(text));
    }

    /// Masks `place` in the text of `file`: a secret's value.
    pub(super) fn mask(&mut self, file: &Path, place: Place) {
        if let Some(text) = self.texts.get_mut(file) {
            let end = place.offset.saturating_add(place.length).min(text.len());
            let blank: String = text
                .get(place.offset..end)
                .unwrap_or_default()
                .bytes()
                .map(|b| if b == b'\n' { '\n' } else { '*' })
                .collect();
            if text.is_char_boundary(place.offset) && text.is_char_boundary(end) && place.offset <= end {
                text.replace_range(place.offset..end, &blank);
            }
        }
    }

    /// Notes where `key` stands; faults about it are shown there.
    pub fn add_place(&mut self, key: &str, file: &Path, place: Place) {
        self.places.insert(key.to_owned(), (file.to_owned(), place));
    }

    /// Where `key` stands, when a file sets it.
    pub fn place(&self, key: &str) -> Option<(&Path, Place)> {
        self.places.get(key).map(|(file, place)| (file.as_path(), *place))
    }

    /// The text of `file`, secrets masked.
    pub fn text(&self, file: &Path) -> Option<&str> {
        self.texts.get(file).map(String::as_str)
    }

    /// Adds any fault.
    pub fn push(&mut self, fault: Fault) {
        self.list.push(fault);
    }

    /// Adds a fault about `key`, at the key's place.
    pub fn about(
        &mut self,
        severity: Severity,
        kind: FaultKind,
        key: &str,
        what: impl Into<String>,
        help: &str,
    ) {
        let (file, place) = self.place(key).map(|(file, place)| (file.to_owned(), place)).unzip();
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.push(Fault { severity, kind, file, place, key: Some(key.to_owned()), what: what.into(), help });
    }

    /// Adds an error in the text of a configuration file.
    pub fn error(&mut self, key: &str, what: impl Into<String>, help: &str) {
        self.about(Severity::Error, FaultKind::Config, key, what, help);
    }

    /// Adds a warning about the text of a configuration file.
    pub fn warning(&mut self, key: &str, what: impl Into<String>, help: &str) {
        self.about(Severity::Warning, FaultKind::Config, key, what, help);
    }

    /// Adds an error about something that a configuration file names.
    pub fn missing(&mut self, key: &str, what: impl Into<String>, help: &str) {
        self.about(Severity::Error, FaultKind::Files, key, what, help);
    }

    /// All faults, in the order in which they were found.
    pub fn list(&self) -> &[Fault] {
        &self.list
    }

    /// The warnings.
    pub fn warnings(&self) -> impl Iterator<Item = &Fault> {
        self.list.iter().filter(|fault| fault.severity == Severity::Warning)
    }

    /// The errors.
    pub fn errors(&self) -> impl Iterator<Item = &Fault> {
        self.list.iter().filter(|fault| fault.severity == Severity::Error)
    }

    /// True when nothing forbids a start.
    pub fn may_start(&self) -> bool {
        self.errors().next().is_none()
    }

    /// The exit code these faults ask for: the text of a file outranks what it names, which outranks the broker.
    pub fn exit(&self) -> Exit {
        let mut exit = Exit::Success;
        for fault in self.errors() {
            match fault.kind {
                FaultKind::Config => return Exit::Config,
                FaultKind::Files => exit = Exit::Files,
                FaultKind::Broker if exit == Exit::Success => exit = Exit::Broker,
                FaultKind::Broker => {}
            }
        }
        exit
    }

    /// Sorts by file and line, faults without a place last.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|fault| {
            (fault.place.is_none(), fault.file.clone(), fault.place.map(|place| place.offset))
        });
    }
}

/// Keys whose value is a secret, in either file's spelling.
const SECRET_KEYS: [&str; 5] =
    ["token", "broker_provisioning_password", "plugin.nats.pass", "control.password", "password"];

/// True when the value of `key` must never be shown.
pub fn is_secret(key: &str) -> bool {
    SECRET_KEYS.iter().any(|secret| key.eq_ignore_ascii_case(secret))
}

/// The text with everything that follows a secret key on its line replaced by as many asterisks, so that places stay right.
/// Works on broken files too, where nothing but the text is known; lines indented below the key (a block text) are masked as well.
fn mask_secrets(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut block: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let indent = line.len().saturating_sub(line.trim_start().len());
        if block.is_some_and(|outer| indent > outer && !line.trim().is_empty()) {
            push_masked(&mut masked, line);
            continue;
        }
        block = None;
        if let Some(at) = secret_value(line) {
            let (shown, hidden) = line.split_at_checked(at).unwrap_or((line, ""));
            masked.push_str(shown);
            push_masked(&mut masked, hidden);
            block = Some(indent);
        } else {
            masked.push_str(line);
        }
    }
    masked
}

fn push_masked(out: &mut String, text: &str) {
    out.extend(text.bytes().map(|b| match b {
        b'\n' => '\n',
        b'\r' => '\r',
        _ => '*',
    }));
}

/// Where in `line` the value of a secret key begins: after the `:` or `=` that follows the key as a whole word.
fn secret_value(line: &str) -> Option<usize> {
    let lower = line.to_ascii_lowercase();
    let mut first: Option<usize> = None;
    for key in SECRET_KEYS {
        for (at, _) in lower.match_indices(key) {
            let before = lower.get(..at).and_then(|text| text.chars().next_back());
            let after = lower.get(at.saturating_add(key.len())..).unwrap_or_default();
            let trimmed = after.trim_start_matches(['"', '\'', ' ', '\t']);
            let whole = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '.' && c != '-');
            if whole && (trimmed.starts_with(':') || trimmed.starts_with('=')) {
                let value = lower.len().saturating_sub(trimmed.len()).saturating_add(1);
                first = Some(first.map_or(value, |known| known.min(value)));
            }
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(text: &str, expected: &str) {
        assert_eq!(mask_secrets(text), expected);
        assert_eq!(mask_secrets(text).len(), text.len(), "places must not move");
    }

    #[test]
    fn secrets_are_masked_and_places_stay() {
        masks("token: s3cret\nsite: x\n", "token:*******\nsite: x\n");
        masks("  \"Token\" : é\n", "  \"Token\" :***\n");
        masks("{site: a, token: b, interval: 60}", "{site: a, token:*****************");
        masks("token: |\n  one\n  two\nsite: x", "token:**\n*****\n*****\nsite: x");
        masks("plugin.nats.pass = x\n", "plugin.nats.pass =**\n");
    }

    #[test]
    fn keys_that_only_look_secret_stay_readable() {
        masks("jwt_signing_token: /etc/signer.jwt\n", "jwt_signing_token: /etc/signer.jwt\n");
        masks("# the token of the site\n", "# the token of the site\n");
    }

    #[test]
    fn the_text_of_a_file_outranks_what_it_names() {
        let mut faults = Faults::default();
        assert_eq!(faults.exit(), Exit::Success);
        faults.warning("site", "it is odd", "");
        assert_eq!(faults.exit(), Exit::Success);
        faults.about(Severity::Error, FaultKind::Broker, "broker", "refused", "");
        assert_eq!(faults.exit(), Exit::Broker);
        faults.missing("helper", "it is missing", "");
        assert_eq!(faults.exit(), Exit::Files);
        faults.error("interval", "it is a number", "");
        assert_eq!(faults.exit(), Exit::Config);
    }
}
