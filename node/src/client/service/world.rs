//! What the client's actors have between them: boards and lanes that outlive each of them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, PoisonError, RwLock, atomic::AtomicU64},
    time::{Duration, Instant},
};

use futures::Stream;
use quartermaster_proto::{
    mesh::{
        collect::Item,
        need::Need,
        plan::Templates as TemplatesPlan,
        report::Report,
        report::Why,
        value::{Json, ValueError},
        vault::SecretName,
    },
    time::WallClock,
};
use tokio::sync::watch;

use super::{
    lane::{Board, Lane},
    metrics::NodeMetrics,
    status::Statuses,
};
use crate::{
    check::Want,
    core::{ArchiveState, Assigned, Event, Found, Moment, RegistryView},
};

/// Where the wall's time comes from.
pub type Clock = Arc<dyn Fn() -> WallClock + Send + Sync>;

/// What a module is told, by what the latest counts for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    Assignment,
    Archive,
    Registry,
    Found(Want),
    BusBack,
}

/// What is to be recorded of one module; what is none was not said in this run, and is left as it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    pub(super) needs: Option<Arc<Vec<Need>>>,
    pub(super) items: Option<Items>,
    pub(super) report: Option<Arc<Report>>,
    /// The module is no longer assigned: nothing of it stays.
    pub(super) is_gone: bool,
}

/// The items of a module.
#[derive(Debug, Clone, Default)]
pub(super) struct Items {
    /// Of these collections.
    pub(super) keep: BTreeSet<String>,
    /// Those that were filled in this run.
    pub(super) filled: BTreeMap<String, Arc<Item>>,
}

/// A module's lane: what it is told, the latest under each topic.
pub(super) type ModuleLane = Lane<Topic, Event>;

/// Lanes to the modules that live.
#[derive(Clone, Default)]
pub(super) struct Post(Arc<RwLock<HashMap<String, ModuleLane>>>);

impl Post {
    /// Tells a module. One that does not live is told nothing: it asks when it begins to.
    pub(super) fn tell(&self, module: &str, topic: Topic, event: Event) {
        let lanes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(module) {
            lane.put(topic, event);
        }
    }

    /// Tells a module what became of a value.
    pub(super) fn found(&self, module: &str, want: Want, found: Found) {
        self.tell(module, Topic::Found(want.clone()), Event::Found(want, found));
    }

    /// Tells every module.
    pub(super) fn tell_all(&self, topic: &Topic, event: &Event) {
        let lanes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for lane in lanes.values() {
            lane.put(topic.clone(), event.clone());
        }
    }

    /// A new lane, in place of the one before.
    pub(super) fn open(&self, module: &str) -> ModuleLane {
        let lane = Lane::new();
        let mut lanes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        lanes.insert(module.to_owned(), lane.clone());
        lane
    }

    /// The module lives no more.
    pub(super) fn close(&self, module: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(module);
    }
}

/// A config value, or why it has no text.
pub(super) type ConfigValue = Result<Json, ValueError>;

/// Config values as the tool runner may ask for them.
#[derive(Debug, Default)]
pub(super) struct ConfigView {
    /// By module and name.
    pub(super) values: HashMap<String, HashMap<String, ConfigValue>>,
}

/// Everything that is shared.
pub(super) struct World {
    pub(super) node: String,
    pub(super) run: String,
    pub(super) began: Instant,
    /// How many times faster than real its timers run.
    pub(super) pace: u32,
    pub(super) clock: Clock,
    /// This machine's assignments, by module.
    pub(super) assigned: Board<String, Assigned>,
    /// How far the mirror of all assignments has come.
    pub(super) mirrored: AtomicU64,
    /// All assignments have been told once.
    pub(super) is_known: watch::Sender<bool>,
    /// The config values have been told once.
    pub(super) is_resolved: watch::Sender<bool>,
    pub(super) registry: watch::Sender<RegistryView>,
    pub(super) config: RwLock<ConfigView>,
    /// What modules want, by module and by whom it is asked of.
    pub(super) archives: Board<String, TemplatesPlan>,
    pub(super) values: Board<String, BTreeSet<Want>>,
    pub(super) consumers: Board<String, BTreeSet<String>>,
    pub(super) collections: Board<String, BTreeSet<String>>,
    pub(super) secrets: Board<String, (u64, BTreeSet<SecretName>)>,
    pub(super) records: Board<String, Records>,
    /// Values that moved, for the tool runner: module and key, or every key.
    pub(super) moved: Lane<(String, Option<String>), ()>,
    pub(super) post: Post,
    pub(super) statuses: Statuses,
    pub(super) metrics: NodeMetrics,
}

impl fmt::Debug for World {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("World").field("node", &self.node).finish_non_exhaustive()
    }
}

/// Takes over what modules want now; answers the modules that want something, in the order in which they said so.
pub(super) fn take_over<T>(
    wants: &mut BTreeMap<String, T>,
    changed: Vec<(String, Option<T>)>,
) -> Vec<String> {
    let mut told = Vec::new();
    for (module, wanted) in changed {
        match wanted {
            Some(wanted) => {
                told.push(module.clone());
                wants.insert(module, wanted);
            }
            None => drop(wants.remove(&module)),
        }
    }
    told
}

impl World {
    /// The registry as it is, and again at every change of it.
    pub(super) fn registry_views(&self) -> impl Stream<Item = RegistryView> + use<> {
        let mut registry = self.registry.subscribe();
        registry.mark_changed();
        futures::stream::unfold(registry, |mut registry| async move {
            registry.changed().await.ok()?;
            let view = registry.borrow_and_update().clone();
            Some((view, registry))
        })
    }

    pub(super) fn new(node: String, run: String, pace: u32, clock: Clock, metrics: NodeMetrics) -> Self {
        let unknown = RegistryView { unknown: Some(Why::NotLoaded), ..RegistryView::default() };
        Self {
            node,
            run,
            began: Instant::now(),
            pace: pace.max(1),
            clock,
            assigned: Board::new(),
            mirrored: AtomicU64::new(0),
            is_known: watch::Sender::new(false),
            is_resolved: watch::Sender::new(false),
            registry: watch::Sender::new(unknown),
            config: RwLock::default(),
            archives: Board::new(),
            values: Board::new(),
            consumers: Board::new(),
            collections: Board::new(),
            secrets: Board::new(),
            records: Board::new(),
            moved: Lane::new(),
            post: Post::default(),
            statuses: Statuses::default(),
            metrics,
        }
    }

    /// Now.
    pub(super) fn now(&self) -> Moment {
        Moment { mono: self.began.elapsed() * self.pace, wall: (self.clock)() }
    }

    /// How long to sleep until this time since the start.
    pub(super) fn until(&self, at: Duration) -> Duration {
        at.saturating_sub(self.now().mono) / self.pace
    }

    /// Says what a module wants, to each of whom it is wanted from.
    pub(super) fn want(&self, module: &str, revision: u64, wants: BTreeSet<Want>) {
        let (mut values, mut consumers) = (BTreeSet::new(), BTreeSet::new());
        let (mut collections, mut secrets) = (BTreeSet::new(), BTreeSet::new());
        for want in wants {
            match want {
                Want::Config(_) | Want::Bound { .. } => drop(values.insert(want)),
                Want::Consumers(provision) => drop(consumers.insert(provision)),
                Want::Collection(collection) => drop(collections.insert(collection)),
                Want::Vault(name) => drop(secrets.insert(name)),
            }
        }
        let module = module.to_owned();
        self.values.set(module.clone(), (!values.is_empty()).then_some(values));
        self.consumers.set(module.clone(), (!consumers.is_empty()).then_some(consumers));
        self.collections.set(module.clone(), (!collections.is_empty()).then_some(collections));
        self.secrets.set(module, (!secrets.is_empty()).then_some((revision, secrets)));
    }

    /// Tells a module what became of its archive.
    pub(super) fn archive(&self, module: &str, plan: &TemplatesPlan, state: ArchiveState) {
        self.post.tell(module, Topic::Archive, Event::Archive(plan.digest, state));
    }
}
