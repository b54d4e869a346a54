//! The keys that mean something to us, with their types; all other keys are kept as text (choria.md 11.3).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::super::duration::parse_cfg_duration;
use super::super::surroundings::Surroundings;
use super::syntax::{is_yes, split_list};

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text, verbatim.
    Text,
    /// A path; a leading `~` becomes the home folder.
    Path,
    /// A boolean; nonsense is false.
    Bool,
    /// A whole number; nonsense changes nothing.
    Int,
    /// A duration; nonsense changes nothing.
    Duration,
    /// Separated by commas; a later line replaces the whole list.
    List,
}

/// Every setting we read: key, type and the environment variable that overrides a file's value.
pub const SETTINGS: &[(&str, Kind, Option<&str>)] = &[
    ("identity", Kind::Text, None),
    ("ttl", Kind::Int, None),
    ("discovery_timeout", Kind::Int, None),
    ("plugin.security.provider", Kind::Text, None),
    ("plugin.security.file.certificate", Kind::Path, None),
    ("plugin.security.file.key", Kind::Path, None),
    ("plugin.security.file.ca", Kind::Path, None),
    ("plugin.security.choria.token_file", Kind::Path, None),
    ("plugin.security.choria.seed_file", Kind::Path, None),
    ("plugin.security.choria.certificate", Kind::Path, None),
    ("plugin.security.choria.key", Kind::Path, None),
    ("plugin.security.choria.ca", Kind::Path, None),
    ("plugin.security.issuer.names", Kind::List, None),
    ("plugin.security.cipher_suites", Kind::List, None),
    ("plugin.security.ecc_curves", Kind::List, None),
    ("plugin.security.support_legacy_certificates", Kind::Bool, None),
    ("plugin.security.client_anon_tls", Kind::Bool, None),
    ("plugin.choria.ssldir", Kind::Path, None),
    ("plugin.choria.middleware_hosts", Kind::List, None),
    ("plugin.choria.use_srv", Kind::Bool, None),
    ("plugin.choria.srv_domain", Kind::Text, Some("CHORIA_SRV_DOMAIN")),
    ("plugin.choria.network.connect_timeout", Kind::Duration, None),
    ("plugin.choria.federation.collectives", Kind::List, Some("CHORIA_FED_COLLECTIVE")),
    ("plugin.nats.user", Kind::Text, Some("MCOLLECTIVE_NATS_USERNAME")),
    ("plugin.nats.pass", Kind::Text, Some("MCOLLECTIVE_NATS_PASSWORD")),
    ("plugin.nats.credentials", Kind::Text, Some("MCOLLECTIVE_NATS_CREDENTIALS")),
];

/// A value that a typed setting got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// `Kind::Text` and `Kind::Path`.
    Text(String),
    /// `Kind::Bool`.
    Bool(bool),
    /// `Kind::Int`.
    Int(i64),
    /// `Kind::Duration`.
    Duration(Duration),
    /// `Kind::List`.
    List(Vec<String>),
}

/// Everything the files said.
#[derive(Default, Clone)]
pub struct ChoriaCfg {
    typed: BTreeMap<&'static str, Setting>,
    raw: BTreeMap<String, String>,
}

// Passwords are among the values, so only the keys are shown.
impl std::fmt::Debug for ChoriaCfg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChoriaCfg")
            .field("keys", &self.raw.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl ChoriaCfg {
    /// Takes one line in. `typed` is false for files whose keys are kept as text only.
    ///
    /// # Errors
    /// The value does not fit the setting's type; what the peer makes of it is what we make of it, and the sentence says what that is.
    pub fn set(
        &mut self,
        key: &str,
        value: &str,
        typed: bool,
        around: &Surroundings<'_>,
    ) -> Result<(), String> {
        self.raw.insert(key.to_owned(), value.to_owned());
        let Some((name, kind, variable)) = SETTINGS.iter().find(|(name, ..)| typed && *name == key) else {
            return Ok(());
        };
        let value =
            variable.and_then(|variable| around.env.get(variable)).unwrap_or_else(|| value.to_owned());
        let (setting, complaint) = parse(*kind, &value, around);
        if let Some(setting) = setting {
            self.typed.insert(name, setting);
        }
        complaint.map_or(Ok(()), Err)
    }

    /// The text of any key, exactly as the last file said it.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.raw.get(key).map(String::as_str)
    }

    /// A text or path setting; empty counts as unset.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.typed.get(key) {
            Some(Setting::Text(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// A path setting; empty counts as unset.
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(PathBuf::from)
    }

    /// A boolean setting.
    pub fn boolean(&self, key: &str) -> Option<bool> {
        match self.typed.get(key) {
            Some(Setting::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// A whole number.
    pub fn int(&self, key: &str) -> Option<i64> {
        match self.typed.get(key) {
            Some(Setting::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// A duration.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        match self.typed.get(key) {
            Some(Setting::Duration(value)) => Some(*value),
            _ => None,
        }
    }

    /// A list; empty when unset.
    pub fn list(&self, key: &str) -> &[String] {
        match self.typed.get(key) {
            Some(Setting::List(items)) => items,
            _ => &[],
        }
    }
}

fn parse(kind: Kind, value: &str, around: &Surroundings<'_>) -> (Option<Setting>, Option<String>) {
    match kind {
        Kind::Text => (Some(Setting::Text(value.to_owned())), None),
        Kind::Path => {
            let path = value.trim();
            match (path.strip_prefix('~'), around.home()) {
                (None, _) => (Some(Setting::Text(path.to_owned())), None),
                (Some(rest), Some(home)) => (Some(Setting::Text(format!("{home}{rest}"))), None),
                (Some(_), None) => (
                    Some(Setting::Text(value.to_owned())),
                    Some("`~` cannot be expanded, HOME is not set".to_owned()),
                ),
            }
        }
        Kind::Bool => {
            let complaint = super::syntax::parse_bool(value).is_none();
            (
                Some(Setting::Bool(is_yes(value))),
                complaint.then(|| format!("{value:?} is neither yes nor no and counts as no")),
            )
        }
        Kind::Int => match value.parse() {
            Ok(number) => (Some(Setting::Int(number)), None),
            Err(_) => (None, Some(format!("{value:?} is no whole number; the line is ignored"))),
        },
        Kind::Duration => match parse_cfg_duration(value) {
            Ok(duration) => (Some(Setting::Duration(duration)), None),
            Err(error) => (None, Some(format!("{value:?} is no duration: {error}; the line is ignored"))),
        },
        Kind::List => (Some(Setting::List(split_list(value))), None),
    }
}
