//! The section `providers`: every provider that anything of the configuration uses, by a name of the site's own (provider.md D20).

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quartermaster_proto::provider::{Members, is_name};

use super::daemon::duration;
use super::fault::Faults;
use super::raw::RawConfig;
use super::section::Section;
use super::values;
use super::yaml;

/// The keys of one provider.
const KEYS: &[&str] = &[
    "source",
    "sha256",
    "pin",
    "config",
    "timeouts",
    "max_in_flight",
    "instances",
    "cwd",
    "env",
    "restart",
    "compat",
    "wrapper",
    "strict_outputs",
    "start",
    "idle_stop",
    "install_hint",
    "max_frame_bytes",
];
const TIMEOUTS: &[&str] = &["schema", "describe", "configure", "execute", "write", "shutdown", "cancel"];
const ENV: &[&str] = &["mode", "pass", "set"];
const RESTART: &[&str] = &["min", "max", "limit", "window"];
const COMPAT: &[&str] = &["undo", "any_encoding", "stray_stdout", "ping", "schema_probe"];

/// What a source begins with.
const EXEC: &str = "exec:";
const MOST: usize = 1_000;
const MAX_INSTANCES: usize = 256;
const FRAMES: std::ops::RangeInclusive<usize> = 4_096..=1_073_741_824;
/// What no provider gets handed on: our own credentials.
const OURS: [&str; 4] = [
    "MCOLLECTIVE_NATS_USERNAME",
    "MCOLLECTIVE_NATS_PASSWORD",
    "MCOLLECTIVE_NATS_CREDENTIALS",
    "CREDENTIALS_DIRECTORY",
];

/// One provider as the file has it.
#[derive(Clone)]
pub struct RawProvider {
    name: String,
    source: Option<String>,
    sha256: Option<String>,
    pin: Option<String>,
    config: Option<yaml::Node>,
    timeouts: [Option<String>; 7],
    max_in_flight: Option<i64>,
    instances: Option<i64>,
    cwd: Option<String>,
    env_mode: Option<String>,
    env_pass: Option<Vec<String>>,
    env_set: Vec<(String, String)>,
    restart: [Option<String>; 3],
    restart_limit: Option<i64>,
    compat: [Option<String>; 5],
    wrapper: Option<Vec<String>>,
    strict_outputs: Option<bool>,
    start: Option<String>,
    idle_stop: Option<String>,
    install_hint: Option<String>,
    max_frame_bytes: Option<i64>,
}

impl RawProvider {
    /// Every provider of the file.
    pub(super) fn all(top: &mut Section<'_>) -> Vec<Self> {
        top.each_named("providers", KEYS, |name, section| Self::read(name.to_owned(), section))
    }

    fn read(name: String, mut section: Section<'_>) -> Self {
        let mut raw = Self {
            source: section.text("source"),
            sha256: section.text("sha256"),
            pin: section.text("pin"),
            config: section.any("config", true),
            timeouts: Default::default(),
            max_in_flight: section.integer("max_in_flight"),
            instances: section.integer("instances"),
            cwd: section.text("cwd"),
            env_mode: None,
            env_pass: None,
            env_set: Vec::new(),
            restart: Default::default(),
            restart_limit: None,
            compat: Default::default(),
            wrapper: section.list("wrapper"),
            strict_outputs: section.boolean("strict_outputs"),
            start: section.text("start"),
            idle_stop: section.text("idle_stop"),
            install_hint: section.text("install_hint"),
            max_frame_bytes: section.integer("max_frame_bytes"),
            name,
        };
        if let Some(mut timeouts) = section.nested("timeouts", TIMEOUTS) {
            raw.timeouts =
                std::array::from_fn(|at| TIMEOUTS.get(at).and_then(|key| timeouts.text_or_number(key)));
            timeouts.finish();
        }
        if let Some(mut env) = section.nested("env", ENV) {
            raw.env_mode = env.text("mode");
            raw.env_pass = env.list("pass");
            raw.env_set = env.texts("set");
            env.finish();
        }
        if let Some(mut restart) = section.nested("restart", RESTART) {
            raw.restart = ["min", "max", "window"].map(|key| restart.text(key));
            raw.restart_limit = restart.integer("limit");
            restart.finish();
        }
        if let Some(mut compat) = section.nested("compat", COMPAT) {
            raw.compat = std::array::from_fn(|at| COMPAT.get(at).and_then(|key| compat.text(key)));
            compat.finish();
        }
        section.finish();
        raw
    }
}

/// One provider, checked. Its `Debug` form shows no configuration.
#[derive(Clone)]
pub struct ProviderConfig {
    /// The local name.
    pub name: String,
    /// The program; an absolute path.
    pub program: PathBuf,
    /// Its digest, when it is pinned.
    pub sha256: Option<[u8; 32]>,
    /// A private copy of the verified bytes is what runs.
    pub pin_copy: bool,
    /// What `configure` hands it; may hold secrets.
    pub config: Members,
    /// Limits; `None` is the default.
    pub timeouts: ProviderTimeouts,
    /// The most calls open at once on one process, if set.
    pub max_in_flight: Option<NonZeroUsize>,
    /// How many processes serve this name.
    pub instances: NonZeroUsize,
    /// Where its processes start; `None` is this process's own directory.
    pub cwd: Option<PathBuf>,
    /// What it gets of this process's environment.
    pub env: ProviderEnv,
    /// When and how often it is started again; `None` is the default.
    pub restart: ProviderRestart,
    /// What is done differently for it.
    pub compat: ProviderCompat,
    /// A command put in front of it.
    pub wrapper: Vec<String>,
    /// Outputs that are not as declared fail the call.
    pub strict_outputs: bool,
    /// It is started at once instead of with its first call.
    pub eager: bool,
    /// It ends after so long without work.
    pub idle_stop: Option<Duration>,
    /// What to do when the program is missing, for people.
    pub install_hint: Option<String>,
    /// The most a frame may have, in bytes, if set.
    pub max_frame: Option<usize>,
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("name", &self.name)
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// Limits of a provider that are set; zero of `execute` is no limit.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the fields are the section's keys; docs/steps.md explains each")]
pub struct ProviderTimeouts {
    pub schema: Option<Duration>,
    pub describe: Option<Duration>,
    pub configure: Option<Duration>,
    pub execute: Option<Duration>,
    pub write: Option<Duration>,
    pub shutdown: Option<Duration>,
    pub cancel: Option<Duration>,
}

/// The environment of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderEnv {
    /// All of this process's but its own secrets, instead of a short list.
    pub inherit: bool,
    /// More names to hand on.
    pub pass: Vec<String>,
    /// Variables to set.
    pub set: Vec<(String, String)>,
}

/// Restarts of a provider that are set.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the fields are the section's keys; docs/steps.md explains each")]
pub struct ProviderRestart {
    pub min: Option<Duration>,
    pub max: Option<Duration>,
    pub limit: Option<usize>,
    pub window: Option<Duration>,
}

/// What is done differently for a provider that needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderCompat {
    /// Undos are never asked for.
    pub no_undo: bool,
    /// Values of type `any` are wrapped as cty does.
    pub any_cty: bool,
    /// A line on standard output that is no frame is logged.
    pub log_stray_stdout: bool,
    /// Signs of life are asked of a provider that does not say that it knows the question.
    pub ping_probe: bool,
    /// Its schema is asked for with `describe` in a process of its own, for a program that has no `schema` subcommand.
    pub probe_by_describe: bool,
}

/// Checks the section.
pub(super) fn check(yaml: &Path, raw: &RawConfig, faults: &mut Faults) -> Vec<ProviderConfig> {
    let folder = yaml.parent().unwrap_or_else(|| Path::new("/"));
    raw.providers.iter().filter_map(|raw| Checker { raw, folder, faults: &mut *faults }.check()).collect()
}

/// One provider whose settings stand elsewhere: a JSON object with the keys of an entry of `providers`. Paths in it begin at `folder`.
///
/// # Errors
/// What is wrong, a sentence each.
pub fn provider_of(name: &str, json: &str, folder: &Path) -> Result<ProviderConfig, Vec<String>> {
    let file = Path::new("");
    let mut faults = Faults::default();
    // JSON is YAML.
    let Ok(yaml::Document { root: Some(yaml::Node { value: yaml::Value::Map(entries), .. }), .. }) =
        yaml::parse(json)
    else {
        return Err(vec!["the settings are no object".to_owned()]);
    };
    let key = format!("providers.{name}");
    let section =
        Section { file, name: key.clone(), known: KEYS, entries, faults: &mut faults, strict: true };
    let raw = RawProvider::read(name.to_owned(), section);
    let checked = Checker { raw: &raw, folder, faults: &mut faults }.check();
    let wrong: Vec<String> = faults
        .errors()
        .map(|fault| {
            let at = fault.key.as_deref().unwrap_or(&key);
            let at = at.strip_prefix("providers.").unwrap_or(at);
            let help = fault.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
            format!("{at}: {}{help}", fault.what)
        })
        .collect();
    match checked {
        Some(config) if wrong.is_empty() => Ok(config),
        _ => Err(wrong),
    }
}

/// The one folder below which providers may lie.
pub(super) fn folder(yaml: &Path, raw: &RawConfig) -> Option<PathBuf> {
    let folder = yaml.parent().unwrap_or_else(|| Path::new("/"));
    raw.providers_dir.as_ref().map(|dir| folder.join(dir))
}

/// The digests of programs that may be started; `None` is all.
pub(super) fn allowed(raw: &RawConfig, faults: &mut Faults) -> Option<Vec<[u8; 32]>> {
    let list = raw.providers_allow.as_ref()?;
    let each = list.iter().enumerate();
    let digests = each.filter_map(|(index, text)| digest(&format!("providers_allow[{index}]"), text, faults));
    Some(digests.collect())
}

fn digest(key: &str, text: &str, faults: &mut Faults) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex::decode_to_slice(text, &mut bytes).is_err() {
        faults.error(
            key,
            "it is no SHA-256 digest",
            "write 64 hexadecimal digits, as `quartermaster provider lock` prints them",
        );
        return None;
    }
    Some(bytes)
}

struct Checker<'c> {
    raw: &'c RawProvider,
    folder: &'c Path,
    faults: &'c mut Faults,
}

impl Checker<'_> {
    fn key(&self, key: &str) -> String {
        format!("providers.{}.{key}", self.raw.name)
    }

    fn check(mut self) -> Option<ProviderConfig> {
        let raw = self.raw;
        if !is_name(&raw.name) {
            let help = "write a letter, then letters, digits, _ and -";
            self.faults.error(&format!("providers.{}", raw.name), "this is no name of a provider", help);
        }
        let program = self.program();
        let sha256 = raw.sha256.as_ref().and_then(|text| digest(&self.key("sha256"), text, self.faults));
        let pin_copy = self.choice("pin", raw.pin.as_ref(), &["check", "copy"]) == 1;
        let config = self.config();
        let [schema, describe, configure, execute, write, shutdown, cancel] =
            std::array::from_fn(|at| self.timeout(at));
        let env = self.env();
        let [min, max, window] = std::array::from_fn(|at| {
            let name = ["min", "max", "window"].get(at).copied().unwrap_or_default();
            let key = self.key(&format!("restart.{name}"));
            duration(self.faults, &key, raw.restart.get(at).and_then(Option::as_ref))
        });
        let limit = self.count("restart.limit", raw.restart_limit, 1..=MOST);
        let compat = self.compat();
        let max_in_flight =
            self.count("max_in_flight", raw.max_in_flight, 1..=MOST).and_then(NonZeroUsize::new);
        let instances = self.count("instances", raw.instances, 1..=MAX_INSTANCES).and_then(NonZeroUsize::new);
        let eager = self.choice("start", raw.start.as_ref(), &["lazy", "eager"]) == 1;
        let idle_key = self.key("idle_stop");
        let idle_stop = duration(self.faults, &idle_key, raw.idle_stop.as_ref());
        let max_frame = self.count("max_frame_bytes", raw.max_frame_bytes, FRAMES);
        Some(ProviderConfig {
            name: raw.name.clone(),
            program: program?,
            sha256,
            pin_copy,
            config,
            timeouts: ProviderTimeouts { schema, describe, configure, execute, write, shutdown, cancel },
            max_in_flight,
            instances: instances.unwrap_or(NonZeroUsize::MIN),
            cwd: raw.cwd.as_ref().map(|cwd| self.folder.join(cwd)),
            env,
            restart: ProviderRestart { min, max, limit, window },
            compat,
            wrapper: raw.wrapper.clone().unwrap_or_default(),
            strict_outputs: raw.strict_outputs == Some(true),
            eager,
            idle_stop: idle_stop.filter(|idle| !idle.is_zero()),
            install_hint: raw.install_hint.clone(),
            max_frame,
        })
    }

    fn program(&mut self) -> Option<PathBuf> {
        let Some(source) = &self.raw.source else {
            let key = format!("providers.{}", self.raw.name);
            self.faults.error(&key, "it has no source", "write `source: exec:<path of the program>`");
            return None;
        };
        match source.strip_prefix(EXEC) {
            Some(path) if !path.is_empty() => Some(self.folder.join(path)),
            _ => {
                let help = "write `exec:` and the path of the program; a relative one begins at this file";
                self.faults.error(&self.key("source"), "it names no program", help);
                None
            }
        }
    }

    fn config(&mut self) -> Members {
        match &self.raw.config {
            None => Members::new(),
            Some(node) if matches!(node.value, yaml::Value::Map(_) | yaml::Value::Null) => {
                values::members(node)
            }
            Some(node) => {
                let what = format!("it must be a map but is {}", node.value.kind());
                self.faults.error(
                    &self.key("config"),
                    what,
                    "write its keys on the following lines, indented with spaces",
                );
                Members::new()
            }
        }
    }

    /// The limit at this place of the table. `0` is no limit, where there may be none.
    fn timeout(&mut self, at: usize) -> Option<Duration> {
        let name = TIMEOUTS.get(at)?;
        let text = self.raw.timeouts.get(at)?.as_ref()?;
        let key = self.key(&format!("timeouts.{name}"));
        if text == "0" && *name == "execute" {
            return Some(Duration::ZERO);
        }
        let limit = duration(self.faults, &key, Some(text))?;
        if limit.is_zero() && *name != "execute" {
            self.faults.error(&key, "it must be more than nothing", "remove it for the default");
            return None;
        }
        Some(limit)
    }

    fn env(&mut self) -> ProviderEnv {
        let raw = self.raw;
        let inherit = self.choice("env.mode", raw.env_mode.as_ref(), &["clean", "inherit"]) == 1;
        let pass = raw.env_pass.clone().unwrap_or_default();
        for (index, name) in pass.iter().enumerate() {
            let key = self.key(&format!("env.pass[{index}]"));
            let stem = name.strip_suffix('*').unwrap_or(name);
            let covers = |ours: &&&str| **ours == name || (name.ends_with('*') && ours.starts_with(stem));
            if !is_variable(stem) {
                self.faults.error(
                    &key,
                    format!("{name:?} is no name of a variable"),
                    "write a name such as TZ, or a prefix such as SITE_*",
                );
            } else if let Some(secret) = OURS.iter().find(covers) {
                let what = format!(
                    "it covers {secret}, which holds credentials of this instance and never reaches a provider"
                );
                self.faults.error(&key, what, "name the variables one by one");
            }
        }
        for (name, _) in raw.env_set.iter().filter(|(name, _)| !is_variable(name)) {
            let key = self.key(&format!("env.set.{name}"));
            self.faults.error(&key, "it is no name of a variable", "write a name such as TZ");
        }
        ProviderEnv { inherit, pass, set: raw.env_set.clone() }
    }

    fn compat(&mut self) -> ProviderCompat {
        let words: [&[&str]; 5] = [
            &["auto", "never"],
            &["plain", "cty"],
            &["fail", "log"],
            &["declared", "probe"],
            &["schema", "describe"],
        ];
        let [no_undo, any_cty, log_stray_stdout, ping_probe, probe_by_describe] = std::array::from_fn(|at| {
            let name = COMPAT.get(at).copied().unwrap_or_default();
            let given = self.raw.compat.get(at).and_then(Option::as_ref);
            self.choice(&format!("compat.{name}"), given, words.get(at).copied().unwrap_or_default()) == 1
        });
        ProviderCompat { no_undo, any_cty, log_stray_stdout, ping_probe, probe_by_describe }
    }

    /// The place of the word that was chosen; the first one is the default.
    fn choice(&mut self, key: &str, given: Option<&String>, words: &[&str]) -> usize {
        let Some(given) = given else { return 0 };
        words.iter().position(|word| word == given).unwrap_or_else(|| {
            let help = format!("write {}", words.join(" or "));
            let key = self.key(key);
            self.faults.error(&key, format!("there is no such choice as {given:?}"), &help);
            0
        })
    }

    fn count(
        &mut self,
        key: &str,
        given: Option<i64>,
        bounds: std::ops::RangeInclusive<usize>,
    ) -> Option<usize> {
        let given = given?;
        let count = usize::try_from(given).ok().filter(|count| bounds.contains(count));
        if count.is_none() {
            let what = format!("{given} is not between {} and {}", bounds.start(), bounds.end());
            let key = self.key(key);
            self.faults.error(&key, what, "remove it for the default");
        }
        count
    }
}

fn is_variable(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

#[cfg(test)]
#[path = "providers_tests.rs"]
mod tests;
