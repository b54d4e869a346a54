//! The state machine of one module.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use quartermaster_proto::{
    mesh::{
        collect::Item,
        fill::Write,
        plan::{Digest, Plan, Planned},
        report::{Outcome, Why},
    },
    text::escape_bounded,
    time::WallClock,
};

use super::{
    digest::DigestKey,
    event::{
        ArchiveState, Assigned, Effect, EngineAnswer, Event, Found, Moment, Note, RegistryView, Stored, Timer,
    },
    gather::Hand,
    reports::Reports,
    settle::Settle,
    writing::{Ended, Filled, Touched, Writing},
};
use crate::{
    backoff::{Backoff, Jitter},
    check::{self, Prepared, Want},
};

/// What a module is born with.
#[derive(Debug, Clone)]
pub struct ModuleSettings {
    /// The machine.
    pub node: String,
    /// The module.
    pub module: String,
    /// Which life of the client this is.
    pub run: String,
    /// For digests of contents with secrets.
    pub digest_key: Arc<DigestKey>,
    /// Spreads retries.
    pub jitter: u64,
    /// How far into its minute it begins, below a minute: modules that begin together then write again at different times.
    pub phase: Duration,
}

/// Where a module stands, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Assigned without a plan, or not at all.
    Unplanned,
    /// The archive of its templates is not here.
    Fetching,
    /// Some value is missing.
    Gathering,
    /// The engine has been asked, or is about to be.
    Writing,
    /// Everything is as the plan says.
    Applied,
    /// Something cannot be.
    Failed,
}

/// One module of this machine.
#[derive(Debug)]
pub struct ModuleCore {
    settings: ModuleSettings,
    jitter: Jitter,
    revision: u64,
    digest: Digest,
    plan: Option<Arc<Plan>>,
    /// The plan cannot be read, or its templates can never be filled.
    fault: Option<String>,
    archive: ArchiveState,
    prepared: Option<Prepared>,
    registry: RegistryView,
    found: BTreeMap<Want, Found>,
    wanted: (u64, BTreeSet<Want>),
    items: BTreeMap<String, String>,
    notes: BTreeSet<Note>,
    writing: Writing,
    settle: Settle,
    reports: Reports,
    state: State,
}

type Effects = Vec<Effect>;

impl ModuleCore {
    /// A module of which nothing is known yet.
    pub fn new(settings: ModuleSettings) -> Self {
        Self {
            jitter: Jitter::new(settings.jitter),
            reports: Reports::new(&settings.node, &settings.module, &settings.run),
            writing: Writing::with_phase(settings.phase),
            settings,
            revision: 0,
            digest: Digest::of(b""),
            plan: None,
            fault: None,
            archive: ArchiveState::Waiting(Why::NotLoaded),
            prepared: None,
            registry: RegistryView { unknown: Some(Why::NotLoaded), ..RegistryView::default() },
            found: BTreeMap::new(),
            wanted: (0, BTreeSet::new()),
            items: BTreeMap::new(),
            notes: BTreeSet::new(),
            settle: Settle::default(),
            state: State::Unplanned,
        }
    }

    /// Where it stands.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Takes an event; answers what to do, in order. Every event may be repeated.
    pub fn handle(&mut self, now: Moment, event: Event) -> Effects {
        let mut effects = Effects::new();
        match event {
            Event::Assigned(assigned) => self.assigned(now, assigned, &mut effects),
            Event::Gone => self.leave(now, &mut effects),
            Event::Archive(digest, state) => {
                if self.plan.as_ref().is_some_and(|plan| plan.templates.digest == digest) {
                    self.archive = state;
                    self.prepare(now, &mut effects);
                }
            }
            Event::Registry(registry) => {
                let is_other = self.registry.entries != registry.entries;
                self.registry = registry;
                if is_other && let Some(plan) = self.plan.clone() {
                    self.record_needs(&plan, &mut effects);
                }
                self.look_soon(now, false, &mut effects);
            }
            Event::Found(want, found) => self.found(now, want, found, &mut effects),
            Event::Engine(id, answer) => self.engine(now, id, &answer, &mut effects),
            Event::Woke(Timer::Settle) => {
                if self.settle.is_due(now.mono) {
                    self.look(now, &mut effects);
                }
            }
            Event::Woke(Timer::Minute) => self.minute(now, &mut effects),
            Event::Woke(Timer::Engine) => {
                if self.writing.stuck.is_some() {
                    self.look(now, &mut effects);
                }
            }
            Event::BusBack => effects.push(Effect::Changed),
        }
        effects
    }

    fn assigned(&mut self, now: Moment, assigned: Assigned, effects: &mut Effects) {
        let Assigned { revision, digest, planned, newly } = assigned;
        (self.revision, self.digest) = (revision, digest);
        if newly {
            effects.push(Effect::Changed);
        }
        // An answer to a request that carried the older plan says nothing about this one.
        self.writing.forget_request();
        self.writing.all = true;
        (self.writing.stuck, self.writing.tries, self.writing.failure) = (None, 0, None);
        self.fault = None;
        match &*planned {
            Planned::Nothing => self.leave(now, effects),
            Planned::Unreadable(fault) => {
                (self.plan, self.prepared) = (None, None);
                self.fail(now, &format!("the plan cannot be read: {fault}"), None, effects);
            }
            Planned::Plan(plan) => {
                let plan = Arc::new((**plan).clone());
                let before = self.plan.replace(Arc::clone(&plan));
                let same = before.is_some_and(|before| before.templates == plan.templates);
                if !(same && matches!(self.archive, ArchiveState::Ready(_))) {
                    self.archive = ArchiveState::Waiting(Why::NotLoaded);
                    effects.push(Effect::Fetch(plan.templates.clone()));
                }
                self.prepare(now, effects);
            }
        }
    }

    /// Reads the templates once they are here, records what they need, and says what is wanted.
    fn prepare(&mut self, now: Moment, effects: &mut Effects) {
        self.prepared = None;
        let Some(plan) = self.plan.clone() else { return };
        let ArchiveState::Ready(templates) = &self.archive else { return self.look(now, effects) };
        let (node, module) = (&self.settings.node, &self.settings.module);
        let checked = check::read(&plan.contents, templates).map(|sources| {
            let needs = check::needs(node, module, &plan, &sources, &self.registry.entries);
            (needs, check::prepare(node, module, &plan, sources))
        });
        let prepared = match checked {
            Ok((needs, prepared)) => {
                effects.push(Effect::Needs(needs));
                prepared
            }
            Err(error) => Err(error),
        };
        match prepared {
            Ok(prepared) => {
                let collections: BTreeSet<String> =
                    prepared.items.iter().map(|item| item.collection.clone()).collect();
                self.items.retain(|collection, _| collections.contains(collection));
                effects.push(Effect::KeepItems(collections));
                self.fault = None;
                self.prepared = Some(prepared);
                self.want(effects);
            }
            Err(error) => {
                self.items.clear();
                effects.push(Effect::KeepItems(BTreeSet::new()));
                self.fault = Some(error.to_string());
            }
        }
        self.look(now, effects);
    }

    fn record_needs(&self, plan: &Plan, effects: &mut Effects) {
        let ArchiveState::Ready(templates) = &self.archive else { return };
        if let Ok(sources) = check::read(&plan.contents, templates) {
            let (node, module) = (&self.settings.node, &self.settings.module);
            effects.push(Effect::Needs(check::needs(node, module, plan, &sources, &self.registry.entries)));
        }
    }

    /// Says what is wanted, when that is something else than before.
    fn want(&mut self, effects: &mut Effects) {
        let Some(prepared) = &self.prepared else { return };
        let mut wants = prepared.wants.clone();
        for want in &prepared.wants {
            if let Some(Found::Here(Stored::Consumers(consumers))) = self.found.get(want) {
                wants.extend(consumers.iter().filter_map(|consumer| Some(Want::Vault(consumer.pair()?))));
            }
        }
        self.found.retain(|want, _| wants.contains(want));
        if self.wanted != (self.revision, wants.clone()) {
            self.wanted = (self.revision, wants.clone());
            effects.push(Effect::Want { revision: self.revision, wants });
        }
    }

    fn found(&mut self, now: Moment, want: Want, found: Found, effects: &mut Effects) {
        if !self.wanted.1.contains(&want) || self.found.get(&want) == Some(&found) {
            return;
        }
        let of_many = matches!(want, Want::Collection(_) | Want::Consumers(_));
        let is_list = matches!(want, Want::Consumers(_));
        self.found.insert(want, found);
        if is_list {
            self.want(effects);
        }
        self.look_soon(now, of_many, effects);
    }

    fn look_soon(&mut self, now: Moment, of_many: bool, effects: &mut Effects) {
        if self.prepared.is_some() {
            let due = self.settle.changed(now.mono, of_many);
            effects.push(Effect::Wake(Timer::Settle, due));
        }
    }

    /// Looks at everything and does what is next. It may be called at any time.
    fn look(&mut self, now: Moment, effects: &mut Effects) {
        self.settle.looked(now.mono);
        let Some(plan) = self.plan.clone() else { return };
        match &self.archive {
            ArchiveState::Ready(_) => {}
            ArchiveState::Waiting(why) => {
                let missing = ("templates".to_owned(), plan.templates.reference.to_string(), *why);
                self.state = State::Fetching;
                return self.wait(now, BTreeSet::from([missing]), effects);
            }
            ArchiveState::Failed { reason, retry_at } => {
                let (reason, retry_at) = (format!("templates: {reason}"), *retry_at);
                return self.fail(now, &reason, retry_at, effects);
            }
        }
        if let Some(fault) = self.fault.clone() {
            return self.fail(now, &fault, None, effects);
        }
        let Some(prepared) = self.prepared.take() else { return };
        self.record_items(&plan, &prepared, effects);
        let gap = Hand { plan: &plan, registry: &self.registry, found: &self.found }.gap(&prepared);
        if !gap.is_empty() {
            // What the engine says to a running request is about what was there before.
            self.writing.dirty |= self.writing.is_busy();
            self.state = State::Gathering;
            match gap.refused {
                Some(refusal) => self.fail(now, &refusal.reason, refusal.retry_at, effects),
                None => self.wait(now, gap.missing, effects),
            }
        } else if self.writing.is_busy() {
            self.writing.dirty = true;
        } else {
            self.write(now, &plan, &prepared, effects);
        }
        self.prepared = Some(prepared);
    }

    /// Items are recorded on their own: what files wait for does not hold them up.
    fn record_items(&mut self, plan: &Plan, prepared: &Prepared, effects: &mut Effects) {
        let hand = Hand { plan, registry: &self.registry, found: &self.found };
        for item in &prepared.items {
            if !hand.gap_of(&item.filled).is_empty() {
                continue;
            }
            let Ok(text) = hand.fill_item(&item.collection, &item.filled) else { continue };
            if self.items.get(&item.collection) != Some(&text) {
                self.items.insert(item.collection.clone(), text.clone());
                effects.push(Effect::PutItem(Item {
                    node: self.settings.node.clone(),
                    collection: item.collection.clone(),
                    contributor: self.settings.module.clone(),
                    text,
                }));
            }
        }
    }

    fn write(&mut self, now: Moment, plan: &Plan, prepared: &Prepared, effects: &mut Effects) {
        let hand = Hand { plan, registry: &self.registry, found: &self.found };
        let mut notes = Vec::new();
        let mut files = Vec::with_capacity(prepared.files.len());
        let mut fault = None;
        for file in &prepared.files {
            match hand.fill(&file.filled, &mut notes) {
                Ok(content) => {
                    files.push(Filled { path: file.path.clone(), content, sensitive: file.sensitive });
                }
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        let items =
            prepared.items.iter().filter_map(|item| hand.fill_item(&item.collection, &item.filled).err());
        if let Some(error) = fault.into_iter().chain(items).next() {
            return self.fail(now, &error.to_string(), None, effects);
        }
        let notes: BTreeSet<Note> = notes.into_iter().collect();
        effects.extend(notes.difference(&self.notes).cloned().map(Effect::Note));
        self.notes = notes;
        // What was said last may be of another plan or of a wait: then the engine is asked again, so that there is something to say.
        let is_said = self.reports.last().is_some_and(|last| {
            last.revision == self.revision && matches!(last.outcome, Outcome::Applied { .. })
        });
        self.writing.all |= !is_said;
        let Some((id, files)) = self.writing.begin(files, &self.settings.digest_key) else {
            self.state = State::Applied;
            self.settle.ended(false);
            return;
        };
        self.state = State::Writing;
        let module = self.settings.module.clone();
        effects.push(Effect::Write(id, Write { module, plan: self.digest, revision: self.revision, files }));
        if self.writing.first.is_none() {
            effects.push(Effect::Wake(Timer::Minute, self.writing.next_minute(now.mono)));
        }
    }

    fn minute(&mut self, now: Moment, effects: &mut Effects) {
        effects.push(Effect::Wake(Timer::Minute, self.writing.next_minute(now.mono)));
        if self.writing.is_busy() || self.prepared.is_none() {
            return;
        }
        self.writing.all = true;
        // What waits is looked at within a second, and all the rest with it.
        if !self.settle.is_waiting() {
            self.look(now, effects);
        }
    }

    /// A request ended, having touched this.
    fn ended(&mut self, now: Moment, touched: Touched, effects: &mut Effects) {
        self.settle.ended(touched.disk || touched.program);
        if touched.program
            && let Some(due) = self.settle.told(now.mono)
        {
            effects.push(Effect::Wake(Timer::Settle, due));
        }
    }

    fn engine(&mut self, now: Moment, id: u64, answer: &EngineAnswer, effects: &mut Effects) {
        let is_told;
        let ended = match answer {
            EngineAnswer::Written(written) => self.writing.written(id, written),
            EngineAnswer::Failed(failure) => self.writing.failed(id, failure),
            EngineAnswer::Away => self.writing.away(id),
        };
        match ended {
            Ended::Stale => return,
            Ended::Applied(files, programs, touched) => {
                self.state = State::Applied;
                is_told = touched.program;
                self.ended(now, touched, effects);
                self.say(now, Outcome::Applied { files, programs }, effects);
            }
            Ended::Failed(touched) => {
                is_told = touched.program;
                self.ended(now, touched, effects);
                let reason = self.writing.failure.clone().unwrap_or_default();
                let retry_at = now.wall_at(self.writing.next_minute(now.mono));
                self.fail(now, &reason, Some(retry_at), effects);
            }
            Ended::Stuck => {
                let why = self.writing.stuck.unwrap_or(Why::NoAnswer);
                let failed = self.writing.tries.saturating_sub(1);
                let delay = Backoff::ENGINE.delay(failed, &mut self.jitter);
                effects.push(Effect::Wake(Timer::Engine, now.mono + delay));
                return self.wait(now, BTreeSet::from([("engine".to_owned(), String::new(), why)]), effects);
            }
        }
        if self.writing.dirty {
            self.writing.dirty = false;
            // What moved while the program was told waits with what moves now.
            if is_told { self.look_soon(now, false, effects) } else { self.look(now, effects) }
        }
    }

    fn leave(&mut self, now: Moment, effects: &mut Effects) {
        if self.reports.last().is_some() {
            self.say(now, Outcome::Removed, effects);
        }
        self.reports.forget();
        (self.plan, self.prepared, self.fault) = (None, None, None);
        self.found.clear();
        self.items.clear();
        self.notes.clear();
        self.writing.start_over();
        self.settle = Settle::default();
        self.state = State::Unplanned;
        if !self.wanted.1.is_empty() {
            self.wanted = (self.revision, BTreeSet::new());
            effects.push(Effect::Want { revision: self.revision, wants: BTreeSet::new() });
        }
        effects.push(Effect::Remove);
    }

    fn wait(&mut self, now: Moment, missing: BTreeSet<super::gather::Missing>, effects: &mut Effects) {
        let waiting = self.reports.waiting(missing, now.wall);
        self.say(now, waiting, effects);
    }

    fn fail(&mut self, now: Moment, reason: &str, retry_at: Option<WallClock>, effects: &mut Effects) {
        self.state = State::Failed;
        let reason = escape_bounded(reason, quartermaster_proto::mesh::report::MAX_REASON);
        self.say(now, Outcome::failed(&reason, retry_at), effects);
    }

    fn say(&mut self, now: Moment, outcome: Outcome, effects: &mut Effects) {
        effects.extend(self.reports.say(self.revision, outcome, now.wall).map(Effect::Report));
    }
}
