//! What a module is told, and what it wants done.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use quartermaster_proto::{
    mesh::{
        Kind,
        bound::Served,
        collect::Item,
        fill::{Failure, RequestCode, Write, Written},
        need::Need,
        plan::{Credential, Digest, Planned, Templates as TemplatesPlan},
        registry::Entry,
        report::{Report, Why},
        value::Json,
        vault::{Binding, SecretName},
    },
    time::WallClock,
};

use crate::{archive::Templates, check::Want, value::Value};

/// The time, twice: since the client started, for periods, and of the wall, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Since the client started.
    pub mono: Duration,
    /// Of the wall.
    pub wall: WallClock,
}

impl Moment {
    /// The wall's time at this time since the start.
    pub fn wall_at(&self, mono: Duration) -> WallClock {
        let ahead = mono.saturating_sub(self.mono);
        let nanos = i64::try_from(ahead.as_nanos()).unwrap_or(i64::MAX);
        WallClock::from_nanos(self.wall.nanos().saturating_add(nanos))
    }
}

/// What a module is told.
#[derive(Debug, Clone)]
pub enum Event {
    /// Its assignment was put.
    Assigned(Assigned),
    /// It was taken off.
    Gone,
    /// What became of the archive of this digest.
    Archive(Digest, ArchiveState),
    /// The registry as it is now.
    Registry(RegistryView),
    /// What became of a value that is wanted.
    Found(Want, Found),
    /// The engine's answer to the request of this number.
    Engine(u64, EngineAnswer),
    /// A timer that was asked for.
    Woke(Timer),
    /// The bus is back: what may have been missed is said anew.
    BusBack,
}

/// An assignment of this machine.
#[derive(Debug, Clone)]
pub struct Assigned {
    /// The mirror's revision of it.
    pub revision: u64,
    /// Of its value.
    pub digest: Digest,
    /// What it says.
    pub planned: Arc<Planned>,
    /// The module was not assigned before, as far as this run knows.
    pub newly: bool,
}

/// What became of an archive.
#[derive(Debug, Clone)]
pub enum ArchiveState {
    /// It is here and good.
    Ready(Arc<Templates>),
    /// It is waited for.
    Waiting(Why),
    /// It is not what the plan says, or refused.
    Failed {
        /// Why.
        reason: String,
        /// When it is fetched again.
        retry_at: Option<WallClock>,
    },
}

/// The registry, as far as it is known.
#[derive(Debug, Clone, Default)]
pub struct RegistryView {
    /// Why it is not known, if it is not.
    pub unknown: Option<Why>,
    /// Its entries.
    pub entries: Arc<BTreeMap<Kind, Entry>>,
}

/// What became of a value that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is not here.
    Missing(Why),
    /// It is here.
    Here(Stored),
    /// Its owner will not give it.
    Refused {
        /// Why, in the owner's words.
        reason: String,
        /// When it is asked again, if time alone helps.
        retry_at: Option<WallClock>,
    },
}

/// A value as its owner keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// A config value.
    Json(Json),
    /// A value of the vault.
    Secret(Value),
    /// What a provider serves.
    Bound(Served),
    /// Items by contributor.
    Items(Arc<BTreeMap<String, String>>),
    /// Consumers, by their assignments' keys and within one by its plan.
    Consumers(Arc<Vec<ConsumerRef>>),
}

/// One who is bound to a provision of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerRef {
    /// Who is bound to what.
    pub binding: Binding,
    /// The form of its credential.
    pub credential: Credential,
}

impl ConsumerRef {
    /// The vault's name of the credential, as the provider asks for it; none for the form `none`.
    pub fn pair(&self) -> Option<SecretName> {
        (self.credential != Credential::None).then(|| SecretName::Pair(self.binding.clone()))
    }
}

/// What the engine says to a request.
#[derive(Debug, Clone)]
pub enum EngineAnswer {
    /// It did what it could.
    Written(Written),
    /// It did nothing.
    Failed(Failure<RequestCode>),
    /// It is not there, or its connection broke.
    Away,
}

/// Timers of a module; asking for one replaces the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Changes have settled.
    Settle,
    /// Every file is written again.
    Minute,
    /// The engine is tried again.
    Engine,
}

/// What a module wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Have this archive here; the answer is [`Event::Archive`].
    Fetch(TemplatesPlan),
    /// These are all its needs.
    Needs(Vec<Need>),
    /// This is all it wants from elsewhere, as of this revision of the mirror; what is found comes as [`Event::Found`], at
    /// once for what is known.
    Want {
        /// The mirror's revision of the plan that names it.
        revision: u64,
        /// Everything.
        wants: BTreeSet<Want>,
    },
    /// Record this item.
    PutItem(Item),
    /// Of its items, only those of these collections stay.
    KeepItems(BTreeSet<String>),
    /// Have the engine write; the answer is [`Event::Engine`] with this number.
    Write(u64, Write),
    /// Publish this and keep it.
    Report(Report),
    /// Say that every value of the kinds that can be asked may have moved.
    Changed,
    /// Everything of it in the buckets goes: needs, items, report.
    Remove,
    /// Come back with [`Event::Woke`] at this time since the start.
    Wake(Timer, Duration),
    /// Worth a line in the log.
    Note(Note),
}

/// Something that people may want to know, without any value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// A consumer is left out of the list that a provider reads.
    LeftOut {
        /// The vault's name of its credential.
        credential: String,
        /// Why.
        why: String,
    },
}
