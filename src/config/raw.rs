//! The YAML file as it stands: every known key with the type the peer's own reader would accept, nothing checked beyond that.
//!
//! The peer turns YAML into JSON and that into its structure, so: `null` leaves the default, upper and lower case of a key do not
//! matter, the later of two equal keys wins, a number is no text and a text is no number.

use std::fmt;
use std::path::Path;

use super::fault::Faults;
use super::yaml::{Key, Node, Value};

/// The keys of the file by section; the empty section is the top level. Everything that reads, documents or suggests keys uses this table.
pub const KEYS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "workers",
            "interval",
            "logfile",
            "loglevel",
            "helper",
            "token",
            "lifecycle_component",
            "choria_insecure",
            "site",
            "monitor_port",
            "broker_port",
            "rego_policy",
            "broker_provisioning_password",
            "cert_deny_list",
            "jwt_verify_cert",
            "jwt_signing_key",
            "jwt_signing_token",
            "server_jwt_validity",
            "leader_election",
            "upgrades_repository",
            "upgrades_optional",
            "features",
            "helper_timeout",
            "helper_protocol",
            "helper_env",
            "in_flight",
            "queue",
            "retry",
            "listen",
            "state_dir",
            "control",
            "cluster",
            "strict",
        ],
    ),
    ("features", &["pki", "jwt", "ed25519", "upgrades"]),
    ("retry", &["first", "cap", "give_up_after"]),
    ("control", &["enabled", "subject_prefix"]),
    ("cluster", &["mode"]),
];

/// The file, every key optional: `None` is unset or `null`.
#[derive(Default, Clone)]
#[expect(
    missing_docs,
    reason = "the fields are the file's keys; docs/configuration.md and default.yaml explain each"
)]
pub struct RawConfig {
    pub workers: Option<i64>,
    pub interval: Option<String>,
    pub logfile: Option<String>,
    pub loglevel: Option<String>,
    pub helper: Option<String>,
    pub token: Option<String>,
    pub lifecycle_component: Option<String>,
    pub choria_insecure: Option<bool>,
    pub site: Option<String>,
    pub monitor_port: Option<i64>,
    pub broker_port: Option<i64>,
    pub rego_policy: Option<String>,
    pub broker_provisioning_password: Option<String>,
    pub cert_deny_list: Option<Vec<String>>,
    pub jwt_verify_cert: Option<String>,
    pub jwt_signing_key: Option<String>,
    pub jwt_signing_token: Option<String>,
    pub server_jwt_validity: Option<String>,
    pub leader_election: Option<bool>,
    pub upgrades_repository: Option<String>,
    pub upgrades_optional: Option<bool>,
    pub features: RawFeatures,
    pub helper_timeout: Option<String>,
    pub helper_protocol: Option<String>,
    pub helper_env: Option<Vec<String>>,
    pub in_flight: Option<i64>,
    pub queue: Option<i64>,
    pub retry: RawRetry,
    pub listen: Option<String>,
    pub state_dir: Option<String>,
    pub control: RawControl,
    pub cluster: RawCluster,
    pub strict: Option<bool>,
}

/// It holds the token and the password as they stand in the file.
impl fmt::Debug for RawConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawConfig").finish_non_exhaustive()
    }
}

/// `features`.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawFeatures {
    pub pki: Option<bool>,
    pub jwt: Option<bool>,
    pub ed25519: Option<bool>,
    pub upgrades: Option<bool>,
}

/// `retry`.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawRetry {
    pub first: Option<String>,
    pub cap: Option<String>,
    pub give_up_after: Option<String>,
}

/// `control`.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawControl {
    pub enabled: Option<bool>,
    pub subject_prefix: Option<String>,
}

/// `cluster`.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the fields are the section's keys")]
pub struct RawCluster {
    pub mode: Option<String>,
}

impl RawConfig {
    /// Takes the keys out of the file's top level. Wrong types, unknown, doubled and differently written keys become faults.
    pub fn from_map(file: &Path, entries: Vec<(Key, Node)>, faults: &mut Faults) -> Self {
        // Whether unknown keys refuse must be known before the first of them is met.
        let strict =
            entries.iter().any(|(key, node)| key.text == "strict" && node.value == Value::Bool(true));
        let mut top = Section { file, name: "", entries, faults, strict };
        let mut raw = Self {
            workers: top.integer("workers"),
            interval: top.text("interval"),
            logfile: top.text("logfile"),
            loglevel: top.text("loglevel"),
            helper: top.text("helper"),
            token: top.text("token"),
            lifecycle_component: top.text("lifecycle_component"),
            choria_insecure: top.boolean("choria_insecure"),
            site: top.text("site"),
            monitor_port: top.integer("monitor_port"),
            broker_port: top.integer("broker_port"),
            rego_policy: top.text("rego_policy"),
            broker_provisioning_password: top.text("broker_provisioning_password"),
            cert_deny_list: top.list("cert_deny_list"),
            jwt_verify_cert: top.text("jwt_verify_cert"),
            jwt_signing_key: top.text("jwt_signing_key"),
            jwt_signing_token: top.text("jwt_signing_token"),
            server_jwt_validity: top.text("server_jwt_validity"),
            leader_election: top.boolean("leader_election"),
            upgrades_repository: top.text("upgrades_repository"),
            upgrades_optional: top.boolean("upgrades_optional"),
            helper_timeout: top.text("helper_timeout"),
            helper_protocol: top.text("helper_protocol"),
            helper_env: top.list("helper_env"),
            in_flight: top.integer("in_flight"),
            queue: top.integer("queue"),
            listen: top.text("listen"),
            state_dir: top.text("state_dir"),
            strict: top.boolean("strict"),
            ..Self::default()
        };
        if let Some(mut features) = top.section("features") {
            raw.features = RawFeatures {
                pki: features.boolean("pki"),
                jwt: features.boolean("jwt"),
                ed25519: features.boolean("ed25519"),
                upgrades: features.boolean("upgrades"),
            };
            features.finish();
        }
        if let Some(mut retry) = top.section("retry") {
            raw.retry = RawRetry {
                first: retry.text("first"),
                cap: retry.text("cap"),
                give_up_after: retry.text("give_up_after"),
            };
            retry.finish();
        }
        if let Some(mut control) = top.section("control") {
            raw.control = RawControl {
                enabled: control.boolean("enabled"),
                subject_prefix: control.text("subject_prefix"),
            };
            control.finish();
        }
        if let Some(mut cluster) = top.section("cluster") {
            raw.cluster = RawCluster { mode: cluster.text("mode") };
            cluster.finish();
        }
        top.finish();
        raw
    }
}

/// One map of the file, from which known keys are taken until only unknown ones are left.
struct Section<'f> {
    file: &'f Path,
    name: &'static str,
    entries: Vec<(Key, Node)>,
    faults: &'f mut Faults,
    strict: bool,
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
        let (written, node) = found.pop()?;
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

    fn text(&mut self, key: &str) -> Option<String> {
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

    fn boolean(&mut self, key: &str) -> Option<bool> {
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

    fn integer(&mut self, key: &str) -> Option<i64> {
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

    fn list(&mut self, key: &str) -> Option<Vec<String>> {
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

    fn section(&mut self, key: &'static str) -> Option<Section<'_>> {
        let node = self.take(key)?;
        match node.value {
            Value::Null => None,
            Value::Map(entries) => Some(Section {
                file: self.file,
                name: key,
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

    /// Whatever was not taken is unknown.
    fn finish(mut self) {
        for (key, _) in std::mem::take(&mut self.entries) {
            let path = self.path(&key.text);
            self.faults.add_place(&path, self.file, key.place);
            let help = match nearest(self.name, &key.text) {
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
fn nearest(section: &str, written: &str) -> Option<String> {
    let written = written.to_ascii_lowercase().replace('-', "_");
    let mut best: Option<(f64, String)> = None;
    for (name, keys) in KEYS {
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

#[cfg(test)]
#[path = "raw_tests.rs"]
mod tests;
