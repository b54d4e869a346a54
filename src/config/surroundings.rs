//! What the configuration depends on beside its files: the environment, the working folder and the machine's names.
//!
//! All of it is handed in, so tests say what the machine looks like.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Where environment variables come from.
pub trait Environment {
    /// The value of `name`, when it is set (an empty value counts).
    fn get(&self, name: &str) -> Option<String>;
}

/// The environment of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn get(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    }
}

impl Environment for BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<String> {
        BTreeMap::get(self, name).cloned()
    }
}

/// The machine's names, asked for only when no file gives them: each may take a second.
pub trait Names {
    /// What the operating system calls this machine.
    fn hostname(&self) -> String;
    /// The full name by name service, else by facter.
    fn full_name(&self) -> Option<String>;
    /// The domain by facter, else that of the full name.
    fn domain(&self) -> Option<String>;
}

/// What the configuration depends on beside its files.
pub struct Surroundings<'a> {
    /// Environment variables.
    pub env: &'a dyn Environment,
    /// The machine's names.
    pub names: &'a dyn Names,
    /// The working folder: start of relative paths and of the search for project files.
    pub cwd: PathBuf,
    /// We run as root.
    pub is_root: bool,
    /// Processors, the default number of workers.
    pub cpus: NonZeroUsize,
}

impl Surroundings<'_> {
    /// `path` as an absolute one.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.cwd.join(path)
    }

    /// The home folder.
    pub fn home(&self) -> Option<String> {
        self.env.get("HOME").filter(|home| !home.is_empty())
    }
}
