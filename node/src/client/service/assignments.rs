//! The actor that follows the mirror of assignments: this machine's modules, and who on any machine is bound to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use actix::{Actor, AsyncContext as _, Context, StreamHandler, WrapFuture as _};
use quartermaster_actors::{supervise::Birth, supervised};
use quartermaster_proto::mesh::{
    key,
    plan::{Assignment, Digest},
    report::Why,
    signature::PublicNkey,
};
use tokio::sync::mpsc;

use super::{lane::heard, world::World};
use crate::{
    assigned::{self, Follow, follow},
    check::Want,
    client::{
        bus::Bus,
        mirror::{Mirror, Offer},
        seen::Seen,
    },
    core::{Assigned, Found, Stored},
};

/// Its mailbox: signs of life, and nothing else.
const MAILBOX: usize = 4;
/// Assignments under way.
const LANE: usize = 64;
/// How often what was seen is written down, where it changed.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// What it follows, and whom it believes.
#[derive(Debug, Clone)]
pub(super) struct MirrorSource {
    pub(super) bus: Bus,
    pub(super) pins: Vec<PublicNkey>,
    pub(super) seen: Seen,
}

/// Follows the mirror.
pub(super) struct Assignments {
    source: MirrorSource,
    world: Arc<World>,
    mirror: Mirror,
    is_loaded: bool,
    /// This machine's modules that were told before everything was.
    told: BTreeSet<String>,
    /// The provisions whose consumers a module wants.
    wants: BTreeMap<String, BTreeSet<String>>,
    /// Its drop tells the owner.
    _birth: Birth,
}

impl Assignments {
    pub(super) fn new(source: MirrorSource, world: Arc<World>, birth: Birth) -> Self {
        let (told, wants) = (BTreeSet::new(), BTreeMap::new());
        Self { source, world, mirror: Mirror::default(), is_loaded: false, told, wants, _birth: birth }
    }

    /// The module of a key, if it is this machine's.
    fn own(&self, key: &str) -> Option<String> {
        let [node, module] = key::parts(key)?;
        (node == self.world.node).then_some(module)
    }

    fn take(&mut self, told: assigned::Assigned) {
        match told {
            assigned::Assigned::Put { key, assignment, value, revision } => {
                self.world.mirrored.store(revision, Ordering::Relaxed);
                let changed = self.mirror.put(&key, &assignment);
                if let Some(module) = self.own(&key) {
                    // Before anything is done for it, so that no crash lets an older one in; the snapshot's are saved together.
                    if self.is_loaded {
                        self.source.seen.save();
                    }
                    self.told.insert(module.clone());
                    let newly = self.world.assigned.get(&module).is_none();
                    let Assignment { planned, .. } = *assignment;
                    let (digest, planned) = (Digest::of(&value), Arc::new(planned));
                    self.world.assigned.set(module, Some(Assigned { revision, digest, planned, newly }));
                }
                self.tell_offers(&changed);
            }
            assigned::Assigned::Refused(key) => {
                if let Some(module) = self.own(&key) {
                    self.told.insert(module);
                }
            }
            assigned::Assigned::Gone(key) => {
                let changed = self.mirror.gone(&key);
                if let Some(module) = self.own(&key) {
                    self.world.assigned.set(module, None);
                }
                self.tell_offers(&changed);
            }
            assigned::Assigned::Loaded => self.loaded(),
        }
    }

    fn loaded(&mut self) {
        if std::mem::replace(&mut self.is_loaded, true) {
            return;
        }
        self.source.seen.save();
        let told = std::mem::take(&mut self.told);
        for module in self.world.assigned.keys().into_iter().filter(|module| !told.contains(module)) {
            self.world.assigned.set(module, None);
        }
        tracing::info!(modules = told.len(), "all assignments are known");
        self.world.is_known.send_replace(true);
        for (module, provisions) in &self.wants {
            self.tell(module, provisions);
        }
    }

    /// Tells the providers of these offers, where they are on this machine, who is bound to them.
    fn tell_offers(&self, changed: &BTreeSet<Offer>) {
        if !self.is_loaded {
            return;
        }
        for (provider, provision) in changed {
            if self.wants.get(provider).is_some_and(|provisions| provisions.contains(provision)) {
                self.tell(provider, &BTreeSet::from([provision.clone()]));
            }
        }
    }

    fn tell(&self, module: &str, provisions: &BTreeSet<String>) {
        for provision in provisions {
            let found = if self.is_loaded {
                let offer = (module.to_owned(), provision.clone());
                Found::Here(Stored::Consumers(Arc::new(self.mirror.consumers(&self.world.node, &offer))))
            } else {
                Found::Missing(Why::NotLoaded)
            };
            self.world.post.found(module, Want::Consumers(provision.clone()), found);
        }
    }
}

impl Actor for Assignments {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        let MirrorSource { bus, pins, seen } = self.source.clone();
        let what = Follow { bus, node: None, pins, seen: seen.bucket(key::ASSIGNMENTS) };
        let (out, told) = mpsc::channel(LANE);
        ctx.spawn(follow(what, out).into_actor(self));
        ctx.add_stream(heard(told));
        ctx.add_stream(self.world.consumers.read());
        ctx.run_interval(SAVE_EVERY, |me, _| me.source.seen.save());
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.source.seen.save();
    }
}

impl StreamHandler<assigned::Assigned> for Assignments {
    fn handle(&mut self, told: assigned::Assigned, _: &mut Self::Context) {
        self.take(told);
    }
}

impl StreamHandler<Vec<(String, Option<BTreeSet<String>>)>> for Assignments {
    fn handle(&mut self, changed: Vec<(String, Option<BTreeSet<String>>)>, _: &mut Self::Context) {
        for (module, provisions) in changed {
            match provisions {
                Some(provisions) => {
                    self.tell(&module, &provisions);
                    self.wants.insert(module, provisions);
                }
                None => drop(self.wants.remove(&module)),
            }
        }
    }
}

supervised!(Assignments);
