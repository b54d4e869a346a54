//! From the two files to a `Config` and everything that is wrong with them.

use std::path::Path;

use super::checked::Config;
use super::choria_cfg::{self, ChoriaCfg};
use super::fault::{Fault, FaultKind, Faults, Severity};
use super::raw::RawConfig;
use super::surroundings::Surroundings;
use super::yaml::{self, Value};
use super::{daemon, network};

/// The commented default file: every key with its default, printed by `quartermaster check --print-default`.
pub const DEFAULT_FILE: &str = include_str!("default.yaml");

/// What loading found.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration. `None` when a file could not be read at all; otherwise present even with errors among the faults,
    /// with defaults in the place of what is wrong, so that the files it names can be examined as well.
    pub config: Option<Config>,
    /// Everything that is wrong.
    pub faults: Faults,
}

impl Loaded {
    /// The configuration, if nothing forbids a start.
    ///
    /// # Errors
    /// The faults.
    pub fn usable(self) -> Result<(Config, Faults), Faults> {
        match self.config {
            Some(config) if self.faults.may_start() => Ok((config, self.faults)),
            _ => Err(self.faults),
        }
    }
}

/// Reads the YAML file `yaml` and the choria.cfg `choria` (the default one when `None`; choria.md 11.2) with its relatives.
pub fn load(yaml: &Path, choria: Option<&Path>, around: &Surroundings<'_>) -> Loaded {
    let mut faults = Faults::default();
    let raw = read_yaml(yaml, &mut faults);
    let choria = choria.map_or_else(|| choria_cfg::default_path(around), Path::to_owned);
    let cfg = choria_cfg::read(&choria, around, &mut faults);
    let config = raw.zip(cfg).and_then(|(raw, cfg)| build(yaml, &choria, &raw, &cfg, around, &mut faults));
    faults.sort();
    Loaded { config, faults }
}

fn build(
    yaml: &Path,
    choria: &Path,
    raw: &RawConfig,
    cfg: &ChoriaCfg,
    around: &Surroundings<'_>,
    faults: &mut Faults,
) -> Option<Config> {
    let network = network::check(raw, cfg, choria, around, faults);
    daemon::check(yaml, choria, raw, network, around, faults)
}

/// Reads the YAML file. `None`, with a fault, when nothing can be taken from it.
fn read_yaml(file: &Path, faults: &mut Faults) -> Option<RawConfig> {
    let mut wrong = |what: String, place, help: &str| {
        faults.push(Fault {
            severity: Severity::Error,
            kind: FaultKind::Config,
            file: Some(file.to_owned()),
            place,
            key: None,
            what,
            help: Some(help.to_owned()),
        });
    };
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            wrong(
                format!("it cannot be read: {error}"),
                None,
                "name the YAML file with --config, and make it readable",
            );
            return None;
        }
    };
    let Ok(text) = String::from_utf8(bytes) else {
        wrong("it is not UTF-8".to_owned(), None, "save it as UTF-8");
        return None;
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let document = match yaml::parse(text) {
        Ok(document) => document,
        Err(error) => {
            wrong(error.what, Some(error.place), "indent with spaces, and close what was opened");
            faults.add_text(file, text);
            return None;
        }
    };
    let entries = match document.root.map(|root| (root.place, root.value)) {
        Some((_, Value::Map(entries))) => entries,
        None | Some((_, Value::Null)) => {
            wrong(
                "the file is empty".to_owned(),
                None,
                "`quartermaster check --print-default` prints a commented file to begin with",
            );
            return None;
        }
        Some((place, other)) => {
            wrong(
                format!("the file must be a map but is {}", other.kind()),
                Some(place),
                "write `key: value` lines",
            );
            faults.add_text(file, text);
            return None;
        }
    };
    if let Some(place) = document.second {
        faults.push(Fault {
            severity: Severity::Warning,
            kind: FaultKind::Config,
            file: Some(file.to_owned()),
            place: Some(place),
            key: None,
            what: "a second document begins here; it is ignored".to_owned(),
            help: Some("keep one document in the file".to_owned()),
        });
    }
    faults.add_text(file, text);
    Some(RawConfig::from_map(file, entries, faults))
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
