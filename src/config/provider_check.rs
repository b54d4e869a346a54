//! What an entry of `providers` says, checked.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quartermaster_proto::provider::{Members, is_name};

use super::daemon::duration;
use super::fault::Faults;
use super::providers::{
    COMPAT, ProviderCompat, ProviderConfig, ProviderConfine, ProviderEnv, ProviderRestart, ProviderTimeouts,
    RawProvider, TIMEOUTS, digest,
};
use super::values;
use super::yaml;

/// What a source begins with.
const EXEC: &str = "exec:";
const BUILTIN: &str = "builtin/";
/// The providers that are part of this program.
pub const BUILTINS: [&str; 2] = ["exec", "file"];
const MOST: usize = 1_000;
const MAX_INSTANCES: usize = 256;
const FRAMES: RangeInclusive<usize> = 4_096..=1_073_741_824;
/// Not everybody's and nobody's: the highest number means none.
const IDS: RangeInclusive<usize> = 0..=4_294_967_294;
/// Three are its pipes, and what it is started with needs a few.
const FILES: RangeInclusive<usize> = 16..=1_048_576;
const PROCESSES: RangeInclusive<usize> = 1..=4_194_304;
/// With less no program starts.
const LEAST_MEMORY: u64 = 8 << 20;
/// What no provider gets handed on: our own credentials.
const OURS: [&str; 4] = [
    "MCOLLECTIVE_NATS_USERNAME",
    "MCOLLECTIVE_NATS_PASSWORD",
    "MCOLLECTIVE_NATS_CREDENTIALS",
    "CREDENTIALS_DIRECTORY",
];

/// Where a provider comes from.
enum Source {
    Program(PathBuf),
    Builtin(String),
}

/// Checks one.
pub(super) struct Checker<'c> {
    pub(super) raw: &'c RawProvider,
    pub(super) folder: &'c Path,
    pub(super) faults: &'c mut Faults,
}

impl Checker<'_> {
    fn key(&self, key: &str) -> String {
        format!("providers.{}.{key}", self.raw.name)
    }

    pub(super) fn check(mut self) -> Option<ProviderConfig> {
        let raw = self.raw;
        if !is_name(&raw.name) {
            let help = "write a letter, then letters, digits, _ and -";
            self.faults.error(&format!("providers.{}", raw.name), "this is no name of a provider", help);
        }
        let source = self.source();
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
        let confine = self.confine();
        let (program, builtin) = match source? {
            Source::Program(program) => (program, None),
            Source::Builtin(name) => {
                self.for_builtins();
                (PathBuf::new(), Some(name))
            }
        };
        Some(ProviderConfig {
            name: raw.name.clone(),
            program,
            builtin,
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
            confine,
            probed: None,
        })
    }

    fn source(&mut self) -> Option<Source> {
        let Some(source) = &self.raw.source else {
            let key = format!("providers.{}", self.raw.name);
            let help = "write `source: exec:<path of the program>` or `source: builtin/<name>`";
            self.faults.error(&key, "it has no source", help);
            return None;
        };
        if let Some(name) = source.strip_prefix(BUILTIN) {
            if BUILTINS.contains(&name) {
                return Some(Source::Builtin(name.to_owned()));
            }
            let what = format!("there is no builtin provider {name:?}");
            self.faults.error(&self.key("source"), what, &format!("known: {}", BUILTINS.join(", ")));
            return None;
        }
        match source.strip_prefix(EXEC) {
            Some(path) if !path.is_empty() => Some(Source::Program(self.folder.join(path))),
            _ => {
                let help = "write `exec:` and the path of the program, a relative one begins at this file, or \
                            `builtin/` and a name";
                self.faults.error(&self.key("source"), "it names no program", help);
                None
            }
        }
    }

    /// What is said of a program means nothing where there is none.
    fn for_builtins(&mut self) {
        let raw = self.raw;
        let said = [
            ("sha256", raw.sha256.is_some()),
            ("pin", raw.pin.is_some()),
            ("wrapper", raw.wrapper.is_some()),
            ("install_hint", raw.install_hint.is_some()),
            ("confine", raw.is_confined()),
        ];
        for (key, _) in said.into_iter().filter(|(_, said)| *said) {
            let help =
                "remove it, or let the provider be a program of its own: `quartermaster provider builtin`";
            self.faults.error(&self.key(key), "a builtin provider is no program", help);
        }
    }

    fn confine(&mut self) -> ProviderConfine {
        let raw = self.raw;
        let [uid, gid, open_files, processes] = raw.confine;
        let id = |id: usize| u32::try_from(id).ok();
        let memory_key = self.key("confine.memory");
        let memory = raw.memory.as_ref().and_then(|text| memory(text, &memory_key, self.faults));
        ProviderConfine {
            no_new_privileges: raw.no_new_privileges == Some(true),
            uid: self.count("confine.uid", uid, IDS).and_then(id),
            gid: self.count("confine.gid", gid, IDS).and_then(id),
            open_files: self.count("confine.open_files", open_files, FILES).map(|count| count as u64),
            memory,
            processes: self.count("confine.processes", processes, PROCESSES).map(|count| count as u64),
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

/// Bytes: a whole number of them, or one with K, M or G behind.
fn memory(text: &str, key: &str, faults: &mut Faults) -> Option<u64> {
    let units = [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)))
        .unwrap_or((text, 1));
    let bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let bytes = bytes.filter(|bytes| *bytes >= LEAST_MEMORY);
    if bytes.is_none() {
        let what = format!("{text:?} is no size of at least {} MiB", LEAST_MEMORY >> 20);
        faults.error(key, what, "write a number of bytes, or one such as 512M or 2G");
    }
    bytes
}
