//! Why an operator's wish was not done, with what to do about it.

use std::path::PathBuf;

use async_nats::ConnectError;
use quartermaster_proto::mesh::Fault;

use crate::client::templates::FetchError;

/// Why an operator's wish was not done.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// A file cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("failed to write {}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The folder holds no keys of a mesh.
    #[error("{} is no folder of a mesh: `quartermaster mesh init` makes one, --site names another", .0.display())]
    NoSite(PathBuf),
    /// A file of a key holds none. Nothing of the file is repeated.
    #[error("{} holds no seed of a user", .0.display())]
    NoSeed(PathBuf),
    /// The settings of the folder cannot be read.
    #[error("{} holds no settings of a mesh", .0.display())]
    Settings(PathBuf),
    /// Nobody said where the broker is.
    #[error(
        "where is the broker? Say it with --servers, or once and for all with `quartermaster mesh init --servers`"
    )]
    NoServers,
    /// An account has no credentials in the folder.
    #[error("the account {account} has no credentials: {help}")]
    NoAccount {
        /// Which.
        account: String,
        /// What makes them.
        help: &'static str,
    },
    /// The broker cannot be reached.
    #[error("the broker at {servers} cannot be reached")]
    Away {
        /// Where it should be.
        servers: String,
        /// Why.
        #[source]
        source: ConnectError,
    },
    /// The broker does not let an account in.
    #[error(
        "the broker does not let {account} in: has it been told of the accounts? It includes the folder's broker.conf and is reloaded"
    )]
    Login {
        /// Which.
        account: String,
    },
    /// The broker said nothing to a request.
    #[error("the broker did not acknowledge {0}: it is away, or does not let this account do that")]
    NoAnswer(String),
    /// A stream is not there.
    #[error(
        "there is no {0} on the broker: `quartermaster mesh init` makes what every mesh has, and assigning a provider what is its own"
    )]
    NoStream(String),
    /// The broker refuses something for another reason.
    #[error("the broker refuses {what}: {why}")]
    Broker {
        /// What.
        what: String,
        /// Its words.
        why: String,
    },
    /// Somebody else was quicker.
    #[error("{0} was changed by somebody else at the same time: look at it and try again")]
    Changed(String),
    /// What was to be published can never be right.
    #[error("refused: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// A name or a value is none.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The templates cannot be had here, so they cannot be checked.
    #[error("the templates {reference} cannot be checked")]
    Templates {
        /// Where they should be.
        reference: String,
        /// Why.
        #[source]
        source: FetchError,
    },
}

/// What kind of failure it is; the exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// What was asked for is not done, by us or by the broker.
    Refused,
    /// A file is missing, unreadable or cannot be written.
    Files,
    /// The broker is away or does not let us in.
    Away,
}

impl MeshError {
    /// The kind of failure.
    pub const fn cause(&self) -> Cause {
        match self {
            Self::Read { .. }
            | Self::Write { .. }
            | Self::NoSite(_)
            | Self::NoSeed(_)
            | Self::Settings(_)
            | Self::NoAccount { .. } => Cause::Files,
            Self::Away { .. } | Self::Login { .. } | Self::NoAnswer(_) => Cause::Away,
            _ => Cause::Refused,
        }
    }

    pub(super) fn read(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::Read { path, source }
    }

    pub(super) fn write(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::Write { path, source }
    }
}
