//! Where the mesh is: the operator's folder and the broker, and how a verb that asks it ends.

use std::future::Future;
use std::path::PathBuf;

use quartermaster_node::client::bus::Bus;
use quartermaster_node::mesh::{Cause, MeshError, Selection, Site};
use quartermaster_proto::mesh::accounts::Account;

use super::super::serve::Chain;
use crate::cli::out::{Out, say};
use crate::exit::Exit;
use crate::telemetry::plain_text;

/// Where the mesh is.
#[derive(Debug, Clone, clap::Args)]
pub struct SiteArgs {
    /// Folder of the mesh's keys
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "QM_MESH_SITE",
        default_value = "/etc/quartermaster/mesh"
    )]
    pub site: PathBuf,
    /// Brokers [default: those that `mesh init --servers` was told]
    #[arg(long, global = true, value_name = "HOST:PORT,...", env = "QM_MESH_SERVERS")]
    pub servers: Option<String>,
}

impl SiteArgs {
    pub(super) fn open(&self) -> Result<Site, MeshError> {
        Site::open(&self.site)
    }

    pub(super) fn brokers(&self, site: &Site) -> Result<String, MeshError> {
        let remembered = || Ok::<_, MeshError>(site.settings()?.servers);
        match &self.servers {
            Some(servers) => Ok(servers.clone()),
            None => remembered()?.ok_or(MeshError::NoServers),
        }
    }

    /// A connection as this account, now or not at all.
    pub(super) async fn connect(&self, site: &Site, account: &Account) -> Result<Bus, MeshError> {
        let servers = self.brokers(site)?;
        let login = site.login(account, &servers)?;
        Bus::connect_once(login).await.map_err(|source| match source.kind() {
            async_nats::ConnectErrorKind::AuthorizationViolation => {
                MeshError::Login { account: account.name() }
            }
            _ => MeshError::Away { servers, source },
        })
    }
}

/// Which modules are meant.
#[derive(Debug, Clone, clap::Args)]
pub struct Chosen {
    /// Of this machine alone
    #[arg(value_name = "NODE")]
    pub node: Option<String>,
    /// This module alone
    #[arg(value_name = "MODULE")]
    pub module: Option<String>,
}

impl Chosen {
    pub(super) fn selection(&self) -> Selection {
        Selection { node: self.node.clone(), module: self.module.clone() }
    }
}

/// Runs what speaks to the broker and says what went wrong.
pub(super) fn work(asked: impl Future<Output = Result<Exit, MeshError>>) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("error: the runtime cannot be made: {error}\n"));
            return Exit::Failure;
        }
    };
    runtime.block_on(asked).unwrap_or_else(|error| complain(&error))
}

/// Says what went wrong; the exit code it means.
pub(super) fn complain(error: &MeshError) -> Exit {
    match error {
        MeshError::Refused(faults) => {
            for fault in faults {
                say(&format!("refused: {}\n", clean(fault)));
            }
        }
        error => say(&format!("error: {}\n", clean(&Chain(error).to_string()))),
    }
    match error.cause() {
        Cause::Refused => Exit::Failure,
        Cause::Files => Exit::Files,
        Cause::Away => Exit::Broker,
    }
}

/// What comes from elsewhere cannot move the cursor.
pub(super) fn clean(text: &str) -> String {
    plain_text(text, false)
}

/// One object for scripts.
pub(super) fn json(out: &mut Out, value: &serde_json::Value) {
    out.text(&format!("{value}\n"));
}
