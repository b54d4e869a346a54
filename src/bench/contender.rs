//! Who is measured: our own provisioner, or another with the same files.

use std::path::Path;

use tokio::process::Command;

use super::setting::absolute;
use crate::config::split;
use crate::emulate::NetworkFiles;

/// A provisioner to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Contender {
    /// `quartermaster run` of this very program.
    Ours,
    /// A command line; `{config}` and `{choria_config}` stand for the files.
    Other(Vec<String>),
}

/// Why a command cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum CommandError {
    /// It cannot be split into words.
    #[error("{0}")]
    Words(String),
    /// It names no program.
    #[error("it names no program")]
    Empty,
    /// It would not know its configuration.
    #[error("it does not say {0}")]
    Missing(&'static str),
}

impl Contender {
    /// Reads `--against`.
    pub(super) fn parse(text: &str) -> Result<Self, CommandError> {
        let words = words(text)?;
        for needed in ["{config}", "{choria_config}"] {
            if !words.iter().any(|word| word.contains(needed)) {
                return Err(CommandError::Missing(needed));
            }
        }
        Ok(Self::Other(words))
    }

    /// Its name in tables.
    pub(super) const fn title(&self) -> &'static str {
        match self {
            Self::Ours => "quartermaster",
            Self::Other(_) => "the other",
        }
    }

    /// Starts nothing: the command, with the files of this network.
    pub(super) fn command(&self, own: &Path, network: &NetworkFiles) -> Command {
        match self {
            Self::Ours => {
                let mut command = Command::new(own);
                command.arg("run").arg("--config").arg(&network.config);
                command.arg("--choria-config").arg(&network.choria_config);
                command
            }
            Self::Other(words) => {
                let config = network.config.to_string_lossy();
                let choria_config = network.choria_config.to_string_lossy();
                let mut command =
                    filled(words, &[("{config}", &config), ("{choria_config}", &choria_config)]);
                // The Choria framework does not start without it (choria.md 11.4).
                if std::env::var_os("USER").is_none() {
                    command.env("USER", "quartermaster");
                }
                command
            }
        }
    }
}

/// Splits a command line as a shell does, without a shell.
pub(super) fn words(text: &str) -> Result<Vec<String>, CommandError> {
    let mut words = split(text).map_err(|error| CommandError::Words(error.to_string()))?;
    let Some(program) = words.first_mut().filter(|program| !program.is_empty()) else {
        return Err(CommandError::Empty);
    };
    // It is started in a directory of its own.
    *program = absolute(program);
    Ok(words)
}

/// The command of these words with the placeholders replaced.
pub(super) fn filled(words: &[String], values: &[(&str, &str)]) -> Command {
    let mut words = words.iter().map(|word| {
        values.iter().fold(word.clone(), |word, (placeholder, value)| word.replace(placeholder, value))
    });
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_given_the_files() {
        let files = NetworkFiles {
            dir: "/net".into(),
            config: "/net/a b.yaml".into(),
            choria_config: "/net/c.cfg".into(),
            helper: "/net/h".into(),
        };
        let other =
            Contender::parse("'/opt/the peer' --config {config} --choria-config={choria_config}").unwrap();
        let command = other.command(Path::new("/own"), &files);
        let arguments: Vec<_> =
            command.as_std().get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(command.as_std().get_program(), "/opt/the peer");
        assert_eq!(arguments, ["--config", "/net/a b.yaml", "--choria-config=/net/c.cfg"]);
    }

    #[test]
    fn a_command_that_cannot_know_its_configuration_is_refused() {
        for (text, expected) in [
            ("peer --choria-config {choria_config}", CommandError::Missing("{config}")),
            ("peer --config {config}", CommandError::Missing("{choria_config}")),
            ("  ", CommandError::Empty),
        ] {
            assert_eq!(Contender::parse(text), Err(expected), "{text}");
        }
        assert!(matches!(Contender::parse("peer 'x"), Err(CommandError::Words(_))));
    }
}
