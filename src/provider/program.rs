//! A provider's program as the command line names it.

use std::path::{Path, PathBuf};

use quartermaster_actors::child::printable;
use quartermaster_actors::provider::{CallError, EnvironmentRules, Inherit, ProviderSettings, environment};
use quartermaster_proto::provider::{Limits, Members, Value};

/// The bounds of a configuration or of attributes given by a person.
const LIMITS: Limits = Limits { max_bytes: 16 * 1024 * 1024, max_depth: 64, max_items: 1_000_000 };

/// Why what was given cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// The file with the values cannot be read.
    #[error("cannot read {}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It is no JSON object.
    #[error("{what} should be a JSON object, or @ and the name of a file that holds one: {why}")]
    Json {
        /// Which argument.
        what: &'static str,
        /// What is wrong; nothing of the text is repeated.
        why: String,
    },
}

/// The settings of a provider that a person runs: everything of the environment is handed on but our own secrets, as a shell would.
pub fn settings(program: &Path) -> ProviderSettings {
    // Never looked up in the PATH: a provider is one file.
    let program = std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
    let name =
        program.file_name().map_or_else(|| "provider".into(), |name| name.to_string_lossy().into_owned());
    let mut settings = ProviderSettings::new(name, program);
    let rules =
        EnvironmentRules { inherit: Inherit::All, pass: Vec::new(), set: Vec::new(), remove: Vec::new() };
    settings.environment = environment(std::env::vars_os(), &rules);
    settings
}

/// The members of a JSON object that was given as text, or as `@` and a file's name.
pub fn members(what: &'static str, given: &str) -> Result<Members, GivenError> {
    let text = match given.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|source| GivenError::Read { file: file.into(), source })?
        }
        None => given.to_owned(),
    };
    match Value::from_json(&text, &LIMITS) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(other) => Err(GivenError::Json { what, why: format!("it is {}", other.kind()) }),
        Err(error) => Err(GivenError::Json { what, why: error.to_string() }),
    }
}

/// An error with the last words of the program, for a person.
pub fn explained(error: &CallError) -> String {
    let mut text = error.message().to_owned();
    if let Some(detail) = &error.error.detail {
        text = format!("{text}\n  {detail}");
    }
    for line in &error.stderr {
        text = format!("{text}\n  stderr: {line}");
    }
    let lines: Vec<String> = text.lines().map(|line| printable(line.as_bytes())).collect();
    lines.join("\n")
}
