//! The engine as a whole: built, started, stopped.

use std::fs::DirBuilder;
use std::future::Future;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::supervise::{
    Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy, Slot, Vital, Ward,
};
use rustix::fs::{Access, access};
use tokio::sync::{oneshot, watch};

use super::actor::EngineKeeper;
use super::folder::DeclarationsReader;
use super::handle::{EngineHandle, MAX_WRITES};
use super::listener::{Audience, FillListener};
use super::mirror::{self, MirrorReader};
use super::socket;
use super::writer::{Declared, Writer};
use super::{EngineError, Settings, Source};
use crate::client::bus::Bus;
use crate::engine::disk::{Accounts, Roots};
use crate::engine::keeper::Keeper;
use crate::engine::ledger::Store;
use crate::engine::program::{Commands, Machine, Runner};
use crate::secrecy::forbid_core_files;

/// The ledger's name in the state folder.
const LEDGER: &str = "ledger";
/// How long each actor may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// An engine that has begun, for who watches over it.
#[derive(Debug, Clone)]
pub struct Running {
    overseer: OverseerHandle,
    declared: Declared,
}

impl Running {
    /// Signs of life.
    pub fn vital(&self) -> Vital {
        self.overseer.vital()
    }

    /// How many modules are declared; none until that is known for the first time.
    pub fn modules(&self) -> Option<usize> {
        self.declared.borrow().as_ref().map(|declared| declared.iter().count())
    }
}

/// Runs the engine until `stop` resolves, on the current actix system; `begun` is told when it listens. The broker may be away.
///
/// # Errors
/// [`EngineError`].
pub async fn run(
    settings: Settings,
    begun: impl FnOnce(Running),
    stop: impl Future<Output = ()>,
) -> Result<(), EngineError> {
    let machine = Machine {
        commands: settings.commands.clone().map(Commands::below).unwrap_or_default(),
        is_user: settings.user_units,
    };
    run_with(settings, Arc::new(machine), begun, stop).await
}

/// As [`run`], with somebody else to tell programs.
pub(super) async fn run_with(
    settings: Settings,
    runner: Arc<dyn Runner>,
    begun: impl FnOnce(Running),
    stop: impl Future<Output = ()>,
) -> Result<(), EngineError> {
    forbid_core_files();
    let accounts = Accounts::default();
    let client = accounts.user(&settings.client)?;
    let roots = roots(&settings.roots)?;
    let file = |source| EngineError::File { path: settings.state.display().to_string(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(&settings.state).map_err(file)?;
    let store = Store::open(&settings.state.join(LEDGER))?;
    let group = accounts.group_of(&settings.client);
    let keeper = Keeper::new(store, roots, accounts);
    let swept = keeper.sweep();
    if swept > 0 {
        tracing::info!(swept, "removed files that a killed life had not finished");
    }
    let (publish, declared) = watch::channel(None);
    let publish = Arc::new(publish);
    let (closing, closed) = oneshot::channel();
    let writer = Arc::new(Writer::new(
        &settings.node,
        keeper,
        settings.state.clone(),
        declared.clone(),
        (runner, settings.metrics),
        closing,
    ));
    let socket = Arc::new(socket::bind(&settings.socket, group)?);

    let always = RestartPolicy::standard();
    let slot = Slot::new("engine", MAX_WRITES);
    let audience = Audience { node: settings.node.clone(), client, engine: EngineHandle(slot.clone()) };
    let declarations: Box<dyn Ward> = match settings.source {
        Source::Folder { folder, every } => {
            let node = settings.node;
            Box::new(Owned::new(Slot::new("declarations", 1), always, move |birth, _| {
                DeclarationsReader::new(node.clone(), folder.clone(), every, Arc::clone(&publish), birth)
            }))
        }
        Source::Mirror { bus, pins } => {
            let bus = Bus::connect(bus).await?;
            let source = mirror::Source { node: settings.node, state: settings.state, bus, pins, publish };
            Box::new(Owned::new(Slot::new("declarations", 1), always, move |birth, _| {
                MirrorReader::new(source.clone(), birth)
            }))
        }
    };
    let known = declared.clone();
    let wards: Vec<Box<dyn Ward>> = vec![
        Box::new(Owned::new(slot, always, move |birth, _| {
            EngineKeeper::new(Arc::clone(&writer), declared.clone(), birth)
        })),
        declarations,
        Box::new(Owned::new(Slot::new("fill-listener", 1), always, move |birth, _| {
            FillListener::new(Arc::clone(&socket), audience.clone(), birth)
        })),
    ];
    let observer = Arc::new(|ending: &quartermaster_actors::supervise::ActorEnding| {
        tracing::warn!(child = %ending.child, cause = %ending.cause, decision = ending.decision, "a part of the engine ended");
    });
    let overseer = Overseer::launch(OverseerSettings::default(), wards, observer);
    tracing::info!(socket = %settings.socket.display(), "the engine listens");
    begun(Running { overseer: overseer.clone(), declared: known });
    let ended = tokio::select! {
        () = stop => Ok(()),
        fatal = overseer.fatal() => Err(EngineError::Fatal { why: format!("{}: {}", fatal.child, fatal.why) }),
    };
    overseer.stop(STOP_LIMIT).await;
    drop(overseer);
    // Nobody answers there any more; a client that finds nothing waits for the next engine.
    let _ = std::fs::remove_file(&settings.socket);
    // Whoever starts next is to find the ledger closed.
    let _ = tokio::time::timeout(STOP_LIMIT, closed).await;
    ended
}

fn roots(roots: &[String]) -> Result<Roots, EngineError> {
    for root in roots {
        Roots::parse([root.as_str()]).map_err(|source| EngineError::Root { root: root.clone(), source })?;
    }
    // Said before a module meets it: a unit that has not opened the folder, a disk that is read-only.
    for root in roots {
        if let Err(error) = access(root, Access::WRITE_OK) {
            tracing::warn!(root, %error, "nothing can be written below this root");
        }
    }
    Ok(Roots::parse(roots.iter().map(String::as_str)).unwrap_or_default())
}
