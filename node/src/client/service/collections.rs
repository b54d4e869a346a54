//! The actor that knows the items of every collection of this machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use actix::{Actor, AsyncContext as _, Context, SpawnHandle, StreamHandler};
use futures::StreamExt as _;
use quartermaster_actors::{supervise::Birth, supervised};
use quartermaster_proto::mesh::{Kind, collect::Item, esc, key, report::Why};
use tokio::sync::mpsc;

use super::{lane::heard, world::World};
use crate::{
    check::Want,
    client::{
        bucket::{self, News},
        bus::{Bus, Target},
        seen::Seen,
    },
    core::{Found, RegistryView, Stored},
};

/// Its mailbox: signs of life, and nothing else.
const MAILBOX: usize = 4;
/// Items under way.
const LANE: usize = 64;

/// What is known of the bucket as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    NotYet,
    NoBucket,
    /// It was whole once, so that a collection without an item is known to have none.
    Whole,
}

/// Knows the items.
pub(super) struct Collections {
    world: Arc<World>,
    bus: Bus,
    seen: Seen,
    bucket: Option<String>,
    watch: Option<(u64, SpawnHandle)>,
    known: Known,
    /// By collection, then contributor.
    items: BTreeMap<String, BTreeMap<String, String>>,
    wants: BTreeMap<String, BTreeSet<String>>,
    /// Its drop tells the owner.
    _birth: Birth,
}

impl Collections {
    pub(super) fn new(world: Arc<World>, bus: Bus, seen: Seen, birth: Birth) -> Self {
        Self {
            world,
            bus,
            seen,
            bucket: None,
            watch: None,
            known: Known::NotYet,
            items: BTreeMap::new(),
            wants: BTreeMap::new(),
            _birth: birth,
        }
    }

    fn registry(&mut self, view: &RegistryView, ctx: &mut Context<Self>) {
        if view.unknown.is_some() {
            return;
        }
        let bucket = view.entries.get(&Kind::Collected).and_then(|entry| entry.bucket(""));
        if bucket == self.bucket {
            return;
        }
        let number = self.watch.take().map_or(1, |(number, handle)| {
            ctx.cancel_future(handle);
            number + 1
        });
        self.known = Known::NotYet;
        self.items.clear();
        if let Some(bucket) = &bucket {
            let (out, news) = mpsc::channel(LANE);
            let target = Target::bucket(bucket, &format!("{}.>", esc(&self.world.node)));
            let prefix = key::kv_subject(bucket, "");
            let seen = self.seen.bucket(bucket);
            actix_rt::spawn(bucket::follow(self.bus.clone(), target, prefix, seen, out));
            let handle = ctx.add_stream(heard(news).map(move |news| (number, news)));
            self.watch = Some((number, handle));
        }
        self.bucket = bucket;
        self.tell_all();
    }

    fn found(&self, collection: &str) -> Found {
        match self.known {
            Known::NotYet => Found::Missing(Why::NotLoaded),
            Known::NoBucket => Found::Missing(Why::NoBucket),
            Known::Whole => {
                let items = self.items.get(collection).cloned().unwrap_or_default();
                Found::Here(Stored::Items(Arc::new(items)))
            }
        }
    }

    fn tell(&self, collection: &str) {
        for (module, _) in self.wants.iter().filter(|(_, wants)| wants.contains(collection)) {
            self.world.post.found(module, Want::Collection(collection.to_owned()), self.found(collection));
        }
    }

    fn tell_all(&self) {
        for (module, wants) in &self.wants {
            for collection in wants {
                self.world.post.found(module, Want::Collection(collection.clone()), self.found(collection));
            }
        }
    }

    fn take(&mut self, news: News) {
        match news {
            News::Put { key, entry, .. } => {
                let item = entry
                    .ok_or_else(|| "it is a broker's answer that was sent into the bucket".to_owned())
                    .and_then(|arrived| {
                        Item::read(&key, &arrived.body.unwrap_or_default()).map_err(|fault| fault.to_string())
                    });
                match item {
                    Ok(item) => {
                        let items = self.items.entry(item.collection.clone()).or_default();
                        items.insert(item.contributor, item.text);
                        self.tell_if_known(&item.collection);
                    }
                    Err(why) => tracing::warn!(key, why, "an item is not taken"),
                }
            }
            News::Gone(key) => {
                let Some([_, collection, contributor]) = key::parts::<3>(&key) else { return };
                if let Some(items) = self.items.get_mut(&collection)
                    && items.remove(&contributor).is_some()
                {
                    self.tell_if_known(&collection);
                }
            }
            News::Loaded => {
                if self.known != Known::Whole {
                    self.known = Known::Whole;
                    self.tell_all();
                }
            }
            News::NoBucket => {
                // Items that are held are held on to.
                if self.known == Known::NotYet {
                    self.known = Known::NoBucket;
                    self.tell_all();
                }
            }
            News::Held { keys, wait } => tracing::warn!(
                keys,
                seconds = wait.as_secs(),
                "the bucket of items looks lost or set back: nothing of it is taken away for a while"
            ),
            News::Unsure => {}
        }
    }

    fn tell_if_known(&self, collection: &str) {
        if self.known == Known::Whole {
            self.tell(collection);
        }
    }
}

impl Actor for Collections {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.add_stream(self.world.collections.read());
        ctx.add_stream(self.world.registry_views());
    }
}

impl StreamHandler<RegistryView> for Collections {
    fn handle(&mut self, view: RegistryView, ctx: &mut Self::Context) {
        self.registry(&view, ctx);
    }
}

impl StreamHandler<(u64, News)> for Collections {
    fn handle(&mut self, (number, news): (u64, News), _: &mut Self::Context) {
        if self.watch.as_ref().is_some_and(|(now, _)| *now == number) {
            self.take(news);
        }
    }

    fn finished(&mut self, _: &mut Self::Context) {}
}

impl StreamHandler<Vec<(String, Option<BTreeSet<String>>)>> for Collections {
    fn handle(&mut self, changed: Vec<(String, Option<BTreeSet<String>>)>, _: &mut Self::Context) {
        for (module, wants) in changed {
            match wants {
                Some(wants) => {
                    for collection in &wants {
                        let found = self.found(collection);
                        self.world.post.found(&module, Want::Collection(collection.clone()), found);
                    }
                    self.wants.insert(module, wants);
                }
                None => drop(self.wants.remove(&module)),
            }
        }
    }
}

supervised!(Collections);
