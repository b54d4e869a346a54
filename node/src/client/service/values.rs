//! The actor that knows the registry, this machine's config values and what providers serve it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError},
};

use actix::{Actor, AsyncContext as _, Context, SpawnHandle, StreamHandler};
use futures::StreamExt as _;
use quartermaster_actors::{supervise::Birth, supervised};
use quartermaster_proto::mesh::{
    Kind,
    bound::Bound,
    esc,
    key::{self, ConfigKey},
    registry::Entry,
    report::Why,
    signature::{HEADER, PublicNkey, verify},
    value::Json,
};
use tokio::sync::mpsc;

use super::{
    lane::heard,
    world::{ConfigValue, Topic, World, take_over},
};
use crate::{
    check::Want,
    client::{
        bucket::{self, News},
        bus::{Arrived, Bus, Target},
        seen::Seen,
    },
    core::{Event, Found, RegistryView, Stored},
};

/// Its mailbox: signs of life, and nothing else.
const MAILBOX: usize = 4;
/// Entries under way from one bucket.
const LANE: usize = 64;

/// What it follows, and whom it believes.
#[derive(Debug, Clone)]
pub(super) struct ValuesSource {
    pub(super) bus: Bus,
    pub(super) pins: Vec<PublicNkey>,
    pub(super) seen: Seen,
}

/// Which watch something comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Registry,
    Config,
    /// A provider's bucket.
    Bound(String),
}

/// What is known of a bucket as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    NotYet,
    NoBucket,
    Whole,
}

impl Known {
    /// Why an entry is missing.
    const fn why(self) -> Why {
        match self {
            Self::NotYet => Why::NotLoaded,
            Self::NoBucket => Why::NoBucket,
            Self::Whole => Why::NoEntry,
        }
    }
}

/// One watch.
struct Watched {
    bucket: String,
    /// Which of several in a row.
    number: u64,
    known: Known,
    handle: SpawnHandle,
}

/// A config value in its two spellings.
#[derive(Debug, Default)]
struct Spelled {
    escaped: Option<ConfigValue>,
    dotted: Option<ConfigValue>,
}

impl Spelled {
    fn best(&self) -> Option<&ConfigValue> {
        self.escaped.as_ref().or(self.dotted.as_ref())
    }
}

/// Knows values that lie in buckets.
pub(super) struct Values {
    source: ValuesSource,
    world: Arc<World>,
    watches: BTreeMap<Origin, Watched>,
    next: u64,
    registry: BTreeMap<Kind, Entry>,
    /// By module, then name.
    config: BTreeMap<String, BTreeMap<String, Spelled>>,
    /// By bucket, then key.
    bound: BTreeMap<String, BTreeMap<String, Found>>,
    wants: BTreeMap<String, BTreeSet<Want>>,
    /// Its drop tells the owner.
    _birth: Birth,
}

impl Values {
    pub(super) fn new(source: ValuesSource, world: Arc<World>, birth: Birth) -> Self {
        Self {
            source,
            world,
            watches: BTreeMap::new(),
            next: 0,
            registry: BTreeMap::new(),
            config: BTreeMap::new(),
            bound: BTreeMap::new(),
            wants: BTreeMap::new(),
            _birth: birth,
        }
    }

    fn begin(&mut self, from: Origin, bucket: String, keys: &str, ctx: &mut Context<Self>) {
        self.next += 1;
        let number = self.next;
        let (out, news) = mpsc::channel(LANE);
        let target = Target::bucket(&bucket, keys);
        let prefix = key::kv_subject(&bucket, "");
        let seen = self.source.seen.bucket(&bucket);
        actix_rt::spawn(bucket::follow(self.source.bus.clone(), target, prefix, seen, out));
        let named = from.clone();
        let handle = ctx.add_stream(heard(news).map(move |news| (named.clone(), number, news)));
        if let Some(before) =
            self.watches.insert(from, Watched { bucket, number, known: Known::NotYet, handle })
        {
            ctx.cancel_future(before.handle);
        }
    }

    fn end(&mut self, from: &Origin, ctx: &mut Context<Self>) {
        if let Some(watched) = self.watches.remove(from) {
            ctx.cancel_future(watched.handle);
        }
    }

    fn known(&self, from: &Origin) -> Known {
        self.watches.get(from).map_or(Known::NotYet, |watched| watched.known)
    }

    /// Follows exactly what the registry names and somebody wants.
    fn follow_named(&mut self, ctx: &mut Context<Self>) {
        let below = format!("{}.>", esc(&self.world.node));
        let config = self.registry.get(&Kind::Config).and_then(|entry| entry.bucket(""));
        if self.watches.get(&Origin::Config).map(|watched| &watched.bucket) != config.as_ref() {
            self.end(&Origin::Config, ctx);
            self.config.clear();
            self.publish_config();
            if let Some(bucket) = config {
                self.begin(Origin::Config, bucket, &below, ctx);
            }
        }
        let mut named: BTreeMap<Origin, String> = BTreeMap::new();
        for want in self.wants.values().flatten() {
            if let Want::Bound { provider, .. } = want
                && let Some(bucket) = self.bound_bucket(provider)
            {
                named.insert(Origin::Bound(bucket.clone()), bucket);
            }
        }
        let surplus: Vec<Origin> = self
            .watches
            .keys()
            .filter(|from| matches!(from, Origin::Bound(_)) && !named.contains_key(*from))
            .cloned()
            .collect();
        for from in surplus {
            if let Origin::Bound(bucket) = &from {
                self.bound.remove(bucket);
            }
            self.end(&from, ctx);
        }
        for (from, bucket) in named {
            if !self.watches.contains_key(&from) {
                self.begin(from, bucket, &below, ctx);
            }
        }
    }

    fn bound_bucket(&self, provider: &str) -> Option<String> {
        self.registry.get(&Kind::Bound)?.bucket(provider)
    }

    /// What is known of a value.
    fn found(&self, module: &str, want: &Want) -> Option<Found> {
        match want {
            Want::Config(name) => {
                let held = self.config.get(module).and_then(|values| values.get(name)?.best());
                Some(match held {
                    Some(Ok(value)) => Found::Here(Stored::Json(value.clone())),
                    Some(Err(error)) => Found::Refused { reason: error.to_string(), retry_at: None },
                    None => Found::Missing(self.known(&Origin::Config).why()),
                })
            }
            Want::Bound { provider, provision, local } => {
                let bucket = self.bound_bucket(provider)?;
                let key = key::bound_key(&self.world.node, module, provision, local.as_deref()).ok()?;
                let held = self.bound.get(&bucket).and_then(|entries| entries.get(&key)).cloned();
                let why = || Found::Missing(self.known(&Origin::Bound(bucket)).why());
                Some(held.unwrap_or_else(why))
            }
            Want::Vault(_) | Want::Collection(_) | Want::Consumers(_) => None,
        }
    }

    fn tell(&self, module: &str, want: &Want) {
        if let Some(found) = self.found(module, want) {
            self.world.post.found(module, want.clone(), found);
        }
    }

    /// Tells every module what is known of what it wants.
    fn tell_all(&self) {
        for (module, wants) in &self.wants {
            for want in wants {
                self.tell(module, want);
            }
        }
    }

    fn take(&mut self, from: &Origin, news: News, ctx: &mut Context<Self>) {
        if let News::Held { keys, wait } = &news {
            let bucket = self.watches.get(from).map_or("", |watched| watched.bucket.as_str());
            tracing::warn!(
                bucket,
                keys,
                seconds = wait.as_secs(),
                "a bucket looks lost or set back: nothing of it is taken away for a while"
            );
            return;
        }
        let before = self.known(from);
        if let Some(watched) = self.watches.get_mut(from) {
            match news {
                News::Loaded => watched.known = Known::Whole,
                // What was whole once is held on to.
                News::NoBucket => watched.known = Known::NoBucket,
                _ => {}
            }
        }
        match from {
            Origin::Registry => self.registry_news(news, ctx),
            Origin::Config => self.config_news(before, news),
            Origin::Bound(bucket) => self.bound_news(&bucket.clone(), before, news),
        }
    }

    fn registry_news(&mut self, news: News, ctx: &mut Context<Self>) {
        match news {
            News::Put { key, entry, .. } => match self.judged(&key, entry) {
                Ok(entry) => drop(self.registry.insert(entry.kind, entry)),
                Err(why) => {
                    tracing::warn!(
                        key,
                        why,
                        "an entry of the registry is not taken; what was known of it stays"
                    );
                    return;
                }
            },
            News::Gone(key) => {
                if let Some(kind) = Kind::parse(&key) {
                    self.registry.remove(&kind);
                }
            }
            News::Loaded | News::NoBucket => {}
            News::Unsure | News::Held { .. } => return,
        }
        let unknown = match self.known(&Origin::Registry) {
            Known::NoBucket if self.registry.is_empty() => Some(Why::NoBucket),
            Known::NotYet => Some(Why::NotLoaded),
            Known::NoBucket | Known::Whole => None,
        };
        let view = RegistryView { unknown, entries: Arc::new(self.registry.clone()) };
        self.world.registry.send_if_modified(|now| {
            let is_other = now.unknown != view.unknown || now.entries != view.entries;
            *now = view;
            is_other
        });
        // Half a registry names no owner for sure.
        if unknown.is_none() {
            self.follow_named(ctx);
            self.tell_all();
        }
    }

    /// An entry of the registry that is believed.
    fn judged(&self, key: &str, arrived: Option<Arrived>) -> Result<Entry, String> {
        let arrived =
            arrived.ok_or_else(|| "it is a broker's answer that was sent into the bucket".to_owned())?;
        let value = arrived.body.unwrap_or_default();
        if !self.source.pins.is_empty() {
            let header = arrived.headers.get(HEADER).map(|value| value.as_str().to_owned());
            verify(header.as_deref(), &self.source.pins, &arrived.subject, &value)
                .map_err(|error| error.to_string())?;
        }
        Entry::read(key, &value).map_err(|fault| fault.to_string())
    }

    fn config_news(&mut self, before: Known, news: News) {
        match news {
            News::Put { key, entry, .. } => {
                let Some(arrived) = entry else {
                    tracing::warn!(
                        key,
                        "a config value is a broker's answer that was sent into the bucket: not taken"
                    );
                    return;
                };
                let value = Json::from_bucket(&arrived.body.unwrap_or_default());
                self.config_moved(&key, Some(value), before);
            }
            News::Gone(key) => self.config_moved(&key, None, before),
            News::Loaded => {
                self.publish_config();
                let was_resolved = self.world.is_resolved.send_replace(true);
                self.tell_all();
                if was_resolved {
                    // The bus was away, or the bucket: the tool runner asks again.
                    self.world.post.tell_all(&Topic::BusBack, &Event::BusBack);
                }
            }
            News::NoBucket => self.tell_all(),
            News::Unsure | News::Held { .. } => {}
        }
    }

    fn config_moved(&mut self, key: &str, value: Option<ConfigValue>, before: Known) {
        let Some(ConfigKey { node, module, name, dotted }) = ConfigKey::read(key) else {
            tracing::warn!(key, "a key of the config values cannot be understood: it is skipped");
            return;
        };
        if node != self.world.node {
            return;
        }
        let values = self.config.entry(module.clone()).or_default();
        let spelled = values.entry(name.clone()).or_default();
        let old = spelled.best().cloned();
        *(if dotted { &mut spelled.dotted } else { &mut spelled.escaped }) = value;
        let new = spelled.best().cloned();
        if new.is_none() {
            values.remove(&name);
        }
        if old == new {
            return;
        }
        {
            let mut view = self.world.config.write().unwrap_or_else(PoisonError::into_inner);
            let shown = view.values.entry(module.clone()).or_default();
            match new {
                Some(value) => drop(shown.insert(name.clone(), value)),
                None => drop(shown.remove(&name)),
            }
        }
        if before == Known::Whole && self.world.assigned.get(&module).is_some() {
            self.world.moved.put((module.clone(), Some(name.clone())), ());
        }
        let want = Want::Config(name);
        if self.wants.get(&module).is_some_and(|wants| wants.contains(&want)) {
            self.tell(&module, &want);
        }
    }

    /// Shows the config values to who answers for them.
    fn publish_config(&self) {
        let mut view = self.world.config.write().unwrap_or_else(PoisonError::into_inner);
        view.values.clear();
        for (module, values) in &self.config {
            let shown =
                values.iter().filter_map(|(name, spelled)| Some((name.clone(), spelled.best()?.clone())));
            view.values.insert(module.clone(), shown.collect());
        }
    }

    fn bound_news(&mut self, bucket: &str, before: Known, news: News) {
        let (key, found) = match news {
            News::Put { key, entry: Some(arrived), .. } => {
                let found = match Bound::read(&arrived.body.unwrap_or_default()) {
                    Ok(Bound::Served(served)) => Found::Here(Stored::Bound(served)),
                    Ok(Bound::Refused { reason }) => Found::Refused { reason, retry_at: None },
                    Err(fault) => Found::Refused {
                        reason: format!("its entry cannot be read: {fault}"),
                        retry_at: None,
                    },
                };
                (key, Some(found))
            }
            News::Put { key, entry: None, .. } => {
                tracing::warn!(
                    bucket,
                    key,
                    "what a provider serves is a broker's answer that was sent into the bucket: not taken"
                );
                return;
            }
            News::Gone(key) => (key, None),
            News::Loaded | News::NoBucket if self.known(&Origin::Bound(bucket.to_owned())) != before => {
                return self.tell_all();
            }
            _ => return,
        };
        let module = key.split('.').nth(1).and_then(quartermaster_proto::mesh::unesc);
        let entries = self.bound.entry(bucket.to_owned()).or_default();
        match found {
            Some(found) => drop(entries.insert(key, found)),
            None => drop(entries.remove(&key)),
        }
        let Some(module) = module else { return };
        for want in self.wants.get(&module).into_iter().flatten() {
            if matches!(want, Want::Bound { .. }) {
                self.tell(&module, want);
            }
        }
    }
}

impl Actor for Values {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.begin(Origin::Registry, key::REGISTRY.to_owned(), ">", ctx);
        ctx.add_stream(self.world.values.read());
    }
}

impl StreamHandler<(Origin, u64, News)> for Values {
    fn handle(&mut self, (from, number, news): (Origin, u64, News), ctx: &mut Self::Context) {
        if self.watches.get(&from).is_some_and(|watched| watched.number == number) {
            self.take(&from, news, ctx);
        }
    }

    fn finished(&mut self, _: &mut Self::Context) {}
}

impl StreamHandler<Vec<(String, Option<BTreeSet<Want>>)>> for Values {
    fn handle(&mut self, changed: Vec<(String, Option<BTreeSet<Want>>)>, ctx: &mut Self::Context) {
        let told = take_over(&mut self.wants, changed);
        if self.world.registry.borrow().unknown.is_none() {
            self.follow_named(ctx);
        }
        for module in told {
            for want in self.wants.get(&module).into_iter().flatten() {
                self.tell(&module, want);
            }
        }
    }
}

supervised!(Values);
