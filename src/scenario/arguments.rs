//! What all three verbs are given.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::variables::{Given, PREFIX};

/// Values of variables.
#[derive(Clone, Default, clap::Args)]
pub struct VariableArgs {
    /// The value of a variable. Other users of this machine may see command lines: give secrets by file or environment
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub var: Vec<String>,
    /// A file of `name = value` lines, or one JSON object if its name ends in .json; later ones win
    #[arg(long = "var-file", value_name = "FILE")]
    pub var_file: Vec<PathBuf>,
}

/// Values may be secret.
impl std::fmt::Debug for VariableArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VariableArgs").field("var_file", &self.var_file).finish_non_exhaustive()
    }
}

impl VariableArgs {
    /// Everything that is given from outside.
    ///
    /// # Errors
    /// A file that cannot be read, as one sentence.
    pub fn given(&self) -> Result<Given, String> {
        let mut files = Vec::new();
        for file in &self.var_file {
            let text = std::fs::read_to_string(file)
                .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
            files.push((file.clone(), text));
        }
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        Ok(Given { arguments: self.var.clone(), files, environment, recorded: BTreeMap::new() })
    }
}

/// Where the key lies that seals what an undo needs and nobody may read.
pub fn record_key() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("quartermaster/record.key"))
}
