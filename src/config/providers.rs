//! The section `providers`: every provider that anything of the configuration uses, by a name of the site's own (provider.md D20).

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::provider::{Members, Schema};

use super::fault::Faults;
use super::provider_check::Checker;
use super::raw::RawConfig;
use super::section::Section;
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
    "confine",
];
pub(super) const TIMEOUTS: &[&str] =
    &["schema", "describe", "configure", "execute", "write", "shutdown", "cancel"];
const ENV: &[&str] = &["mode", "pass", "set"];
const RESTART: &[&str] = &["min", "max", "limit", "window"];
pub(super) const COMPAT: &[&str] = &["undo", "any_encoding", "stray_stdout", "ping", "schema_probe"];
const CONFINE: &[&str] = &["no_new_privileges", "uid", "gid", "open_files", "memory", "processes"];

/// One provider as the file has it.
#[derive(Clone)]
pub struct RawProvider {
    pub(super) name: String,
    pub(super) source: Option<String>,
    pub(super) sha256: Option<String>,
    pub(super) pin: Option<String>,
    pub(super) config: Option<yaml::Node>,
    pub(super) timeouts: [Option<String>; 7],
    pub(super) max_in_flight: Option<i64>,
    pub(super) instances: Option<i64>,
    pub(super) cwd: Option<String>,
    pub(super) env_mode: Option<String>,
    pub(super) env_pass: Option<Vec<String>>,
    pub(super) env_set: Vec<(String, String)>,
    pub(super) restart: [Option<String>; 3],
    pub(super) restart_limit: Option<i64>,
    pub(super) compat: [Option<String>; 5],
    pub(super) wrapper: Option<Vec<String>>,
    pub(super) strict_outputs: Option<bool>,
    pub(super) start: Option<String>,
    pub(super) idle_stop: Option<String>,
    pub(super) install_hint: Option<String>,
    pub(super) max_frame_bytes: Option<i64>,
    pub(super) no_new_privileges: Option<bool>,
    /// uid, gid, open_files, processes.
    pub(super) confine: [Option<i64>; 4],
    pub(super) memory: Option<String>,
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
            no_new_privileges: None,
            confine: [None; 4],
            memory: None,
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
        if let Some(mut confine) = section.nested("confine", CONFINE) {
            raw.no_new_privileges = confine.boolean("no_new_privileges");
            raw.confine = ["uid", "gid", "open_files", "processes"].map(|key| confine.integer(key));
            raw.memory = confine.text_or_number("memory");
            confine.finish();
        }
        section.finish();
        raw
    }
}

impl RawProvider {
    /// Whether anything is said of what its processes may not.
    pub(super) fn is_confined(&self) -> bool {
        self.no_new_privileges.is_some() || self.memory.is_some() || self.confine.iter().any(Option::is_some)
    }
}

/// One provider, checked. Its `Debug` form shows no configuration.
#[derive(Clone)]
pub struct ProviderConfig {
    /// The local name.
    pub name: String,
    /// The program; an absolute path. Empty for a builtin.
    pub program: PathBuf,
    /// The name of a provider that is part of this program.
    pub builtin: Option<String>,
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
    /// What its processes may not.
    pub confine: ProviderConfine,
    /// What its program said of itself when it was asked; filled in by whoever asks.
    pub probed: Option<Arc<Schema>>,
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("name", &self.name)
            .field("program", &self.program)
            .field("builtin", &self.builtin)
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

/// What a provider's processes may not; nothing is set for what is as it is for this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderConfine {
    /// No program that it starts gains rights that it has not.
    pub no_new_privileges: bool,
    /// The user it runs as.
    pub uid: Option<u32>,
    /// The group it runs as.
    pub gid: Option<u32>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Address space of one process, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads of its user.
    pub processes: Option<u64>,
}

impl ProviderConfine {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
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

pub(super) fn digest(key: &str, text: &str, faults: &mut Faults) -> Option<[u8; 32]> {
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

#[cfg(test)]
#[path = "providers_tests.rs"]
mod tests;
