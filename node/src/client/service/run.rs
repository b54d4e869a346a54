//! The client as a whole: built, started, stopped.

use std::{
    fs::{self, DirBuilder, Permissions},
    future::Future,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    sync::Arc,
    time::Duration,
};

use quartermaster_actors::supervise::{
    ActorEnding, Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy, Slot, Vital, Ward,
};
use quartermaster_proto::mesh::accounts::Account;
use svix_ksuid::{Ksuid, KsuidLike as _};
use tokio::{sync::watch, time::timeout};

use super::{
    NodeError, NodeMetrics, Settings,
    asker::Asker,
    assignments::{Assignments, MirrorSource},
    collections::Collections,
    digest_key,
    engine::{self, EngineClient, EngineHandle},
    modules::ModuleKeeper,
    reporter::Reporter,
    seat::Seat,
    settings,
    show::StatusListener,
    templates::Templates,
    values::{Values, ValuesSource},
    vault::VaultAsker,
    world::{Clock, World},
};
use crate::{
    client::{
        bus::{Bus, BusSettings, Credentials},
        engine::EngineSettings,
        seen::Seen,
        templates::{Cache, Fetcher, TemplatesKeeper},
    },
    secrecy::forbid_core_files,
};

/// How long each actor may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// How long the end waits for reports that are under way.
const FAREWELL: Duration = Duration::from_secs(2);

/// A client that has begun, for who watches over it.
#[derive(Debug, Clone)]
pub struct Running {
    overseer: OverseerHandle,
    world: Arc<World>,
}

impl Running {
    /// Signs of life.
    pub fn vital(&self) -> Vital {
        self.overseer.vital()
    }

    /// How many modules there are, and how many are applied.
    pub fn modules(&self) -> (i64, i64) {
        let counts = self.world.statuses.counts();
        let applied = counts.get(&crate::core::State::Applied).copied().unwrap_or_default();
        (counts.values().sum(), applied)
    }

    /// Brings the numbers that are counted only when they are read up to date.
    pub fn refresh_metrics(&self) {
        self.world.metrics.count_modules(&self.world.statuses);
    }
}

/// Runs the client until `stop` resolves, on the current actix system; `begun` is told when everything is up. The broker and the
/// engine may be away.
///
/// # Errors
/// [`NodeError`].
pub async fn run(
    settings: Settings,
    metrics: NodeMetrics,
    clock: Clock,
    begun: impl FnOnce(Running),
    stop: impl Future<Output = ()>,
) -> Result<(), NodeError> {
    forbid_core_files();
    if rustix::process::geteuid().is_root() && !settings.allow_root {
        return Err(NodeError::Root);
    }
    let file = |source| NodeError::File { path: settings.state.display().to_string(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(&settings.state).map_err(file)?;
    fs::set_permissions(&settings.state, Permissions::from_mode(0o700)).map_err(file)?;
    let _seat = Seat::take(&settings.seat())?;
    // Looked at once, so that a missing one is said; it is read anew at every connect.
    drop(Credentials::read(&settings.credentials)?);
    let digest_key = Arc::new(digest_key::open_or_make(&settings.state)?);
    let cache = Cache::open(settings.templates())?;
    let seen = Seen::open(settings.seen());
    let account = Account::Provisioner { node: settings.node.clone() };
    let bus = Bus::connect(BusSettings {
        servers: settings.servers.clone(),
        account,
        credentials: Some(settings.credentials.clone()),
    })
    .await?;
    let run = Ksuid::new(None::<time::OffsetDateTime>, None).to_string();
    let world = Arc::new(World::new(settings.node.clone(), run, settings.pace, clock, metrics));
    let (is_idle, mut idle) = watch::channel(true);
    let parts = Parts { settings, world: Arc::clone(&world), bus: bus.clone(), seen, cache, is_idle };
    let observer = Arc::new(|ending: &ActorEnding| {
        tracing::warn!(child = %ending.child, cause = %ending.cause, decision = ending.decision, "a part of the client ended");
    });
    let overseer = Overseer::launch(OverseerSettings::default(), parts.wards(digest_key), observer);
    tracing::info!(node = world.node, run = world.run, "the client runs");
    begun(Running { overseer: overseer.clone(), world });
    let ended = tokio::select! {
        () = stop => Ok(()),
        fatal = overseer.fatal() => Err(NodeError::Fatal { why: format!("{}: {}", fatal.child, fatal.why) }),
    };
    if ended.is_ok() {
        // What is said already is to be heard, if anybody hears.
        let _ = timeout(FAREWELL, idle.wait_for(|idle| *idle)).await;
    }
    overseer.stop(STOP_LIMIT).await;
    let _ = timeout(FAREWELL, bus.client().flush()).await;
    ended
}

/// What the actors are made of.
struct Parts {
    settings: Settings,
    world: Arc<World>,
    bus: Bus,
    seen: Seen,
    cache: Cache,
    is_idle: watch::Sender<bool>,
}

impl Parts {
    /// The actors, in the order in which they are started; they are stopped the other way round.
    fn wards(self, digest_key: Arc<crate::core::DigestKey>) -> Vec<Box<dyn Ward>> {
        let Self { settings, world, bus, seen, cache, is_idle } = self;
        let always = RestartPolicy::standard();
        let slot = Slot::new("engine-client", engine::MAX_ASKS);
        let handle = EngineHandle(slot.clone());
        let keeper = TemplatesKeeper::new(Fetcher::new(Some(bus.clone())), Some(cache.clone()));
        let socket = EngineSettings { socket: settings.socket.clone(), node: settings.node.clone() };
        let status = settings::status_socket(&settings.state);
        let values = ValuesSource { bus: bus.clone(), pins: settings.pins.clone(), seen: seen.clone() };
        let mirror = MirrorSource { bus: bus.clone(), pins: settings.pins, seen: seen.clone() };
        vec![
            Box::new(Owned::new(slot, always, move |birth, _| EngineClient::new(socket.clone(), birth))),
            Box::new(Owned::new(Slot::new("reporter", 1), always, {
                let (world, bus) = (Arc::clone(&world), bus.clone());
                move |birth, _| Reporter::new(Arc::clone(&world), bus.clone(), is_idle.clone(), birth)
            })),
            Box::new(Owned::new(Slot::new("templates", 1), always, {
                let (world, bus) = (Arc::clone(&world), bus.clone());
                move |birth, _| {
                    let (keeper, cache) = (keeper.clone(), Some(cache.clone()));
                    Templates::new(Arc::clone(&world), bus.clone(), keeper, cache, birth)
                }
            })),
            Box::new(Owned::new(Slot::new("collections", 1), always, {
                let (world, bus) = (Arc::clone(&world), bus.clone());
                move |birth, _| Collections::new(Arc::clone(&world), bus.clone(), seen.clone(), birth)
            })),
            Box::new(Owned::new(Slot::new("vault-asker", 1), always, {
                let (world, bus) = (Arc::clone(&world), bus.clone());
                move |birth, _| VaultAsker::new(Arc::clone(&world), bus.clone(), birth)
            })),
            Box::new(Owned::new(Slot::new("values", 1), always, {
                let world = Arc::clone(&world);
                move |birth, _| Values::new(values.clone(), Arc::clone(&world), birth)
            })),
            Box::new(Owned::new(Slot::new("modules", 1), always, {
                let world = Arc::clone(&world);
                move |birth, _| {
                    ModuleKeeper::new(Arc::clone(&world), handle.clone(), Arc::clone(&digest_key), birth)
                }
            })),
            Box::new(Owned::new(Slot::new("assignments", 1), always, {
                let world = Arc::clone(&world);
                move |birth, _| Assignments::new(mirror.clone(), Arc::clone(&world), birth)
            })),
            Box::new(Owned::new(Slot::new("asker", 1), always, {
                let (world, bus) = (Arc::clone(&world), bus.clone());
                move |birth, _| Asker::new(Arc::clone(&world), bus.clone(), birth)
            })),
            Box::new(Owned::new(Slot::new("status", 1), always, move |birth, _| {
                StatusListener::new(Arc::clone(&world), bus.clone(), status.clone(), birth)
            })),
        ]
    }
}
