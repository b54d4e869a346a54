//! The status told on a socket in the state folder, to root and the client's own account.

use std::{
    fs,
    io::{self, Read as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream as PlainStream},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
    time::Duration,
};

use actix::{Actor, AsyncContext as _, Context, WrapFuture as _};
use async_nats::connection::State;
use quartermaster_actors::{supervise::Birth, supervised};
use quartermaster_proto::mesh::plan::Planned;
use tokio::{
    io::AsyncWriteExt as _,
    net::{UnixListener, UnixStream},
    time::timeout,
};

use super::{
    NodeError,
    looked::Around,
    settings,
    status::{ModuleStatus, Status},
    world::World,
};
use crate::{client::bus::Bus, peers};

/// Its mailbox: signs of life, and nothing else.
const MAILBOX: usize = 4;
/// Connections at once; further ones wait.
const MOST: usize = 4;
/// Longest time for one answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Tells the status to whoever connects.
pub(super) struct StatusListener {
    world: Arc<World>,
    bus: Bus,
    path: PathBuf,
    /// Its drop tells the owner.
    _birth: Birth,
}

impl StatusListener {
    pub(super) const fn new(world: Arc<World>, bus: Bus, path: PathBuf, birth: Birth) -> Self {
        Self { world, bus, path, _birth: birth }
    }
}

impl Actor for StatusListener {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        let listener = match bind(&self.path) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(%error, "the status cannot be told");
                return;
            }
        };
        let own = rustix::process::geteuid().as_raw();
        let (world, bus) = (Arc::clone(&self.world), self.bus.clone());
        let serve = peers::serve(
            listener,
            MOST,
            move |uid| uid == 0 || uid == own,
            move |stream| tell(stream, Arc::clone(&world), bus.clone()),
        );
        ctx.spawn(serve.into_actor(self));
    }
}

/// The seat is ours, so what lies there is what a killed life left.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn tell(mut stream: UnixStream, world: Arc<World>, bus: Bus) {
    let mut modules = world.statuses.shown();
    for (module, status) in &mut modules {
        explain(&world, module, status);
    }
    let status = Status {
        node: world.node.clone(),
        run: world.run.clone(),
        connected: bus.client().connection_state() == State::Connected,
        refused: bus.refused(),
        modules,
    };
    let text = serde_json::to_vec(&status).unwrap_or_default();
    // Whoever asked may be gone.
    let _ = timeout(LIMIT, async {
        stream.write_all(&text).await?;
        stream.shutdown().await
    })
    .await;
}

/// Adds where what is missing was looked for, and what is there under a like name.
fn explain(world: &World, module: &str, status: &mut ModuleStatus) {
    let Some(assigned) = world.assigned.get(&module.to_owned()) else { return };
    let Planned::Plan(plan) = &*assigned.planned else { return };
    let registry = world.registry.borrow().clone();
    let config = world.config.read().unwrap_or_else(PoisonError::into_inner);
    let config: Vec<&str> =
        config.values.get(module).into_iter().flat_map(|values| values.keys().map(String::as_str)).collect();
    let around = Around { node: &world.node, module, plan, registry: &registry, config };
    for missing in &mut status.waiting {
        missing.looked = around.looked(&missing.waiting);
        missing.near = around.near(&missing.waiting);
    }
}

/// Asks the client with this state folder where its modules stand.
///
/// # Errors
/// [`NodeError::NoInstance`].
pub fn ask_status(state: &Path) -> Result<Status, NodeError> {
    let path = settings::status_socket(state);
    let ask = || {
        let mut stream = PlainStream::connect(&path)?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(io::Error::from)
    };
    ask().map_err(|source| NodeError::NoInstance { path: path.display().to_string(), source })
}

supervised!(StatusListener);
