//! What is in the buckets compared with what is to be there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quartermaster_proto::{
    mesh::{
        key,
        plan::Digest,
        report::{Outcome, Report},
    },
    time::WallClock,
};

use crate::client::service::world::Records;

/// Most operations of one module that are begun at once; the rest follows when these are done.
const AT_ONCE: usize = 64;

/// One of the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Needs,
    Items,
    Reports,
}

impl Place {
    pub(super) const ALL: [Self; 3] = [Self::Needs, Self::Items, Self::Reports];

    pub(super) const fn bucket(self) -> &'static str {
        match self {
            Self::Needs => key::NEEDS,
            Self::Items => key::COLLECT,
            Self::Reports => key::APPLIED,
        }
    }

    /// The module of a key.
    fn module(self, key: &str) -> Option<String> {
        match self {
            Self::Needs => key::parts::<4>(key).map(|[_, module, _, _]| module),
            Self::Items => key::parts::<3>(key).map(|[_, _, contributor]| contributor),
            Self::Reports => key::parts::<2>(key).map(|[_, module]| module),
        }
    }
}

/// Something to be done, until it is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) module: String,
    pub(super) place: Place,
    pub(super) key: String,
    pub(super) act: Act,
}

/// What is done to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Put this.
    Put(Vec<u8>),
    /// Delete it.
    Delete,
    /// Publish this and put it.
    Report(Vec<u8>),
    /// Publish this, put it, and delete it right after.
    Farewell(Vec<u8>),
}

/// What is known of both sides.
#[derive(Debug)]
pub(super) struct Book {
    node: String,
    run: String,
    wanted: BTreeMap<String, Records>,
    /// What lies in each bucket, by module and key; none until it was read.
    held: BTreeMap<Place, BTreeMap<String, BTreeMap<String, Digest>>>,
    open: BTreeSet<(Place, String)>,
    dirty: VecDeque<String>,
    failed: BTreeSet<String>,
}

impl Book {
    pub(super) const fn new(node: String, run: String) -> Self {
        Self {
            node,
            run,
            wanted: BTreeMap::new(),
            held: BTreeMap::new(),
            open: BTreeSet::new(),
            dirty: VecDeque::new(),
            failed: BTreeSet::new(),
        }
    }

    /// What is to be there of a module; none when the board has forgotten it.
    pub(super) fn record(&mut self, module: String, records: Option<Records>) {
        if let Some(records) = records {
            self.wanted.insert(module.clone(), records);
            self.look_at(module);
        }
    }

    /// What lies in a bucket.
    pub(super) fn read(&mut self, place: Place, entries: impl IntoIterator<Item = (String, Digest)>) {
        let mut held: BTreeMap<String, BTreeMap<String, Digest>> = BTreeMap::new();
        for (key, digest) in entries {
            if let Some(module) = place.module(&key) {
                held.entry(module).or_default().insert(key, digest);
            }
        }
        self.held.insert(place, held);
        for module in self.wanted.keys().cloned().collect::<Vec<_>>() {
            self.look_at(module);
        }
    }

    /// What lies in the buckets may be something else by now.
    pub(super) fn unsure(&mut self) {
        self.held.clear();
    }

    /// Modules of which something lies in a bucket and of which this run has heard nothing.
    pub(super) fn strangers(&self) -> BTreeSet<String> {
        let held = self.held.values().flat_map(BTreeMap::keys);
        held.filter(|module| !self.wanted.contains_key(*module)).cloned().collect()
    }

    fn look_at(&mut self, module: String) {
        if !self.dirty.contains(&module) {
            self.dirty.push_back(module);
        }
    }

    /// Tasks that are open now.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// True when all that is known to be done is done.
    pub(super) fn is_idle(&self) -> bool {
        self.dirty.is_empty() && self.open.is_empty() && self.failed.is_empty()
    }

    /// The next tasks, all of one module; none when there is nothing to do now.
    pub(super) fn next(&mut self, now: WallClock) -> Vec<Task> {
        while let Some(module) = self.dirty.pop_front() {
            let mut found = self.tasks(&module, now);
            found.truncate(AT_ONCE);
            if !found.is_empty() {
                self.open.extend(found.iter().map(|one| (one.place, one.key.clone())));
                return found;
            }
        }
        Vec::new()
    }

    /// A task ended; answers the module that is over with, if that was the last of it.
    pub(super) fn done(&mut self, task: &Task, is_acknowledged: bool) -> Option<String> {
        self.open.remove(&(task.place, task.key.clone()));
        if !is_acknowledged {
            self.failed.insert(task.module.clone());
            return None;
        }
        if let Some(modules) = self.held.get_mut(&task.place) {
            let held = modules.entry(task.module.clone()).or_default();
            match &task.act {
                Act::Put(value) | Act::Report(value) => {
                    held.insert(task.key.clone(), Digest::of(value));
                }
                Act::Delete | Act::Farewell(_) => drop(held.remove(&task.key)),
            }
            // A module of which nothing lies there any more is no stranger once it is forgotten.
            if held.is_empty() {
                modules.remove(&task.module);
            }
        }
        if matches!(task.act, Act::Farewell(_))
            && let Some(records) = self.wanted.get_mut(&task.module)
            && records.is_gone
        {
            records.report = None;
        }
        if self.is_over(&task.module) {
            self.wanted.remove(&task.module);
            return Some(task.module.clone());
        }
        self.look_at(task.module.clone());
        None
    }

    /// Nothing of the module is left, here and there.
    fn is_over(&self, module: &str) -> bool {
        let is_gone =
            self.wanted.get(module).is_some_and(|records| records.is_gone && records.report.is_none());
        is_gone
            && self.held.len() == Place::ALL.len()
            && self.held.values().all(|held| held.get(module).is_none_or(BTreeMap::is_empty))
    }

    /// What failed is tried again.
    pub(super) fn again(&mut self) {
        for module in std::mem::take(&mut self.failed) {
            self.look_at(module);
        }
    }

    fn tasks(&self, module: &str, now: WallClock) -> Vec<Task> {
        let Some(records) = self.wanted.get(module) else { return Vec::new() };
        let mut out = Vec::new();
        self.needs(module, records, &mut out);
        self.items(module, records, &mut out);
        self.report(module, records, now, &mut out);
        out
    }

    fn held(&self, place: Place, module: &str) -> Option<BTreeMap<String, Digest>> {
        Some(self.held.get(&place)?.get(module).cloned().unwrap_or_default())
    }

    fn add(&self, module: &str, place: Place, key: &str, act: Act, out: &mut Vec<Task>) {
        if !self.open.contains(&(place, key.to_owned())) {
            out.push(Task { module: module.to_owned(), place, key: key.to_owned(), act });
        }
    }

    fn needs(&self, module: &str, records: &Records, out: &mut Vec<Task>) {
        let Some(held) = self.held(Place::Needs, module) else { return };
        if records.needs.is_none() && !records.is_gone {
            return;
        }
        let mut wanted = BTreeSet::new();
        for need in records.needs.iter().flat_map(|needs| needs.iter()) {
            // A name that no key can hold fails nothing: the need is not recorded.
            let Ok(key) = need.key() else { continue };
            let value = need.encode();
            if held.get(&key) != Some(&Digest::of(&value)) {
                self.add(module, Place::Needs, &key, Act::Put(value), out);
            }
            wanted.insert(key);
        }
        for key in held.keys().filter(|key| !wanted.contains(*key)) {
            self.add(module, Place::Needs, key, Act::Delete, out);
        }
    }

    fn items(&self, module: &str, records: &Records, out: &mut Vec<Task>) {
        let Some(held) = self.held(Place::Items, module) else { return };
        let Some(items) = records.items.as_ref().or(records.is_gone.then_some(&NO_ITEMS)) else { return };
        for item in items.filled.values() {
            let Ok(key) = item.key() else { continue };
            let value = item.encode();
            if held.get(&key) != Some(&Digest::of(&value)) {
                self.add(module, Place::Items, &key, Act::Put(value), out);
            }
        }
        let keeps = |key: &str| {
            key::parts::<3>(key).is_some_and(|[_, collection, _]| items.keep.contains(&collection))
        };
        for key in held.keys().filter(|key| !keeps(key)) {
            self.add(module, Place::Items, key, Act::Delete, out);
        }
    }

    fn report(&self, module: &str, records: &Records, now: WallClock, out: &mut Vec<Task>) {
        let Some(held) = self.held(Place::Reports, module) else { return };
        let Ok(key) = key::module_key(&self.node, module) else { return };
        let said = records.report.as_deref();
        if !records.is_gone {
            // That it was taken off is said once all of it is to go, which follows at once.
            if let Some(value) = said.filter(|said| said.outcome != Outcome::Removed).map(Report::encode)
                && held.get(&key) != Some(&Digest::of(&value))
            {
                self.add(module, Place::Reports, &key, Act::Report(value), out);
            }
            return;
        }
        let removed = said.filter(|report| report.outcome == Outcome::Removed);
        if removed.is_none() && !held.contains_key(&key) {
            return;
        }
        let farewell = removed.cloned().unwrap_or_else(|| Report {
            node: self.node.clone(),
            module: module.to_owned(),
            run: self.run.clone(),
            revision: said.map_or(0, |report| report.revision),
            at: now,
            outcome: Outcome::Removed,
        });
        self.add(module, Place::Reports, &key, Act::Farewell(farewell.encode()), out);
    }
}

static NO_ITEMS: crate::client::service::world::Items =
    crate::client::service::world::Items { keep: BTreeSet::new(), filled: BTreeMap::new() };

#[cfg(test)]
mod tests;
