//! Why nothing could be shown or measured.

use std::io::Write as _;
use std::time::Duration;

use super::child::ChildError;
use crate::emulate::PrepareError;
use crate::exit::Exit;

/// How long a child may take until it is ready.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(30);

/// Why a demo or a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    /// There is no broker to start.
    #[error("no nats-server: put one on the PATH, name one with --nats-server, or run tools/get-nats-server")]
    NoBroker,
    /// The file of the running program is not known.
    #[error("could not find this program's own file")]
    OwnFile(#[source] std::io::Error),
    /// Something of this machine could not be had.
    #[error("could not prepare {what}")]
    Setup {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The files of the network could not be written.
    #[error("could not prepare the network")]
    Prepare(#[source] PrepareError),
    /// A child could not be started.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// A child was not ready in time.
    #[error("{what} within {} s\n{}", START_LIMIT.as_secs(), log.join("\n"))]
    NotReady {
        /// What did not happen.
        what: &'static str,
        /// The last lines of its log.
        log: Vec<String>,
    },
    /// A child has ended too early.
    #[error("{how}\n{}", log.join("\n"))]
    Ended {
        /// How.
        how: String,
        /// The last lines of its log.
        log: Vec<String>,
    },
}

impl StageError {
    /// For `map_err`: what of this machine could not be had.
    pub(crate) fn setup(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Setup { what, source }
    }
}

/// Writes the error with its causes to stderr; the exit code it ends with.
pub(crate) fn complain(error: &StageError) -> Exit {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    // A closed stderr must not turn an error into a panic.
    let _ = writeln!(std::io::stderr(), "error: {text}");
    match error {
        StageError::NoBroker => Exit::Files,
        _ => Exit::Failure,
    }
}
