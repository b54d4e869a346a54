//! Which values the vault is asked for, and when: once a run, and again when it says that one changed.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use quartermaster_proto::mesh::{report::Why, vault::SecretName};

use crate::{
    backoff::{Backoff, Jitter},
    core::{Found, Moment, Stored},
    value::Value,
};

/// Most questions that are open at once.
const MAX_OPEN: usize = 16;

/// What is told to the asking.
#[derive(Debug, Clone)]
pub enum AskingEvent {
    /// These are all values that modules want, each with the highest revision of the mirror of a plan that names it.
    Want(BTreeMap<SecretName, u64>),
    /// The answer to a question.
    Answered(SecretName, Answer),
    /// The vault says that a value changed.
    Changed(SecretName, u64),
    /// The bus is back.
    BusBack,
    /// Time passed.
    Woke,
}

/// What a question ended with.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The value, opened.
    Value(Value, u64),
    /// The vault does not hold it yet.
    Absent,
    /// It will not give it.
    Refused(String),
    /// Nobody answered, or nothing that could be understood.
    Nothing,
}

/// What the asking wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskingEffect {
    /// Ask for this, as of this revision of the mirror.
    Ask(SecretName, u64),
    /// Tell every module that wants it.
    Tell(SecretName, Found),
    /// Come back with [`AskingEvent::Woke`] at this time since the start.
    WakeAt(Duration),
    /// An answer is older than what is held, so it is not used: the vault's store was set back.
    Older {
        /// The value.
        name: SecretName,
        /// The answer's version.
        version: u64,
        /// The version that is held.
        held: u64,
    },
}

/// Everything that was ever wanted in this run.
#[derive(Debug)]
pub struct Asking {
    entries: BTreeMap<SecretName, Entry>,
    queue: VecDeque<SecretName>,
    open: usize,
    jitter: Jitter,
}

#[derive(Debug, Default)]
struct Entry {
    wanted: bool,
    revision: u64,
    /// What was told last.
    told: Option<Found>,
    /// What was held when nobody wanted it any more; serves who wants it next only where the vault gives no answer.
    earlier: Option<Found>,
    /// The highest version that was ever held.
    version: Option<u64>,
    open: bool,
    queued: bool,
    /// A newer plan came while the question was open.
    again: bool,
    /// The version that the vault told of while the question was open: an answer with an older one is asked for again.
    changed: Option<u64>,
    due: Option<Duration>,
    failed: u32,
}

impl Asking {
    /// Nothing is held.
    pub const fn new(jitter: u64) -> Self {
        Self { entries: BTreeMap::new(), queue: VecDeque::new(), open: 0, jitter: Jitter::new(jitter) }
    }

    /// What is known of a value, for a module that begins to want it.
    pub fn known(&self, name: &SecretName) -> Option<&Found> {
        self.entries.get(name)?.told.as_ref()
    }

    /// Takes an event; answers what to do, in order.
    pub fn handle(&mut self, now: Moment, event: AskingEvent) -> Vec<AskingEffect> {
        let mut effects = Vec::new();
        match event {
            AskingEvent::Want(wants) => self.want(&wants),
            AskingEvent::Answered(name, answer) => self.answered(now, &name, answer, &mut effects),
            AskingEvent::Changed(name, version) => {
                let is_news = |entry: &&mut Entry| entry.version.is_none_or(|held| version > held);
                if let Some(entry) = self.entries.get_mut(&name).filter(is_news) {
                    entry.failed = 0;
                    if entry.open {
                        entry.changed = entry.changed.max(Some(version));
                    } else if entry.wanted {
                        self.enqueue(&name);
                    } else {
                        // What is held is no longer good for who wants it next.
                        (entry.told, entry.earlier) = (None, None);
                    }
                }
            }
            AskingEvent::BusBack => {
                let silent: Vec<SecretName> = self
                    .entries
                    .iter_mut()
                    .filter(|(_, entry)| entry.wanted && entry.due.is_some() && !is_settled(entry))
                    .map(|(name, entry)| {
                        entry.failed = 0;
                        name.clone()
                    })
                    .collect();
                for name in &silent {
                    self.enqueue(name);
                }
            }
            AskingEvent::Woke => {
                let is_due = |entry: &Entry| entry.wanted && entry.due.is_some_and(|due| due <= now.mono);
                let due: Vec<SecretName> = self
                    .entries
                    .iter()
                    .filter(|(_, entry)| is_due(entry))
                    .map(|(name, _)| name.clone())
                    .collect();
                for name in &due {
                    self.enqueue(name);
                }
            }
        }
        self.ask_next(&mut effects);
        let next = self.entries.values().filter(|entry| entry.wanted).filter_map(|entry| entry.due).min();
        effects.extend(next.map(AskingEffect::WakeAt));
        effects
    }

    fn want(&mut self, wants: &BTreeMap<SecretName, u64>) {
        for (name, entry) in &mut self.entries {
            entry.wanted &= wants.contains_key(name);
        }
        for (name, revision) in wants {
            let entry = self.entries.entry(name.clone()).or_default();
            let is_newly_wanted = !std::mem::replace(&mut entry.wanted, true);
            let is_newer_plan = *revision > entry.revision;
            entry.revision = entry.revision.max(*revision);
            // A refusal may have been about the older plan. What is held is not asked for again, unless nobody wanted it for a while:
            // the vault tells only those who may have a value that it changed, so what is held may be an older one by now.
            if is_newly_wanted && matches!(entry.told, Some(Found::Here(_))) {
                entry.earlier = entry.told.take();
            }
            let is_refused = matches!(entry.told, Some(Found::Refused { .. }));
            let is_worth_it = is_newly_wanted || (is_refused && is_newer_plan);
            match (is_worth_it, entry.open) {
                (true, true) => entry.again |= is_newer_plan,
                (true, false) => self.enqueue(name),
                (false, _) => {}
            }
        }
        let entries = &self.entries;
        self.queue.retain(|name| entries.get(name).is_some_and(|entry| entry.wanted));
        for entry in self.entries.values_mut().filter(|entry| !entry.wanted) {
            entry.queued = false;
        }
    }

    fn enqueue(&mut self, name: &SecretName) {
        if let Some(entry) = self.entries.get_mut(name).filter(|entry| !entry.open && !entry.queued) {
            (entry.queued, entry.due) = (true, None);
            self.queue.push_back(name.clone());
        }
    }

    fn ask_next(&mut self, effects: &mut Vec<AskingEffect>) {
        while self.open < MAX_OPEN
            && let Some(name) = self.queue.pop_front()
        {
            if let Some(entry) = self.entries.get_mut(&name) {
                (entry.queued, entry.open) = (false, true);
                self.open += 1;
                effects.push(AskingEffect::Ask(name, entry.revision));
            }
        }
    }

    fn answered(&mut self, now: Moment, name: &SecretName, answer: Answer, effects: &mut Vec<AskingEffect>) {
        let Some(entry) = self.entries.get_mut(name).filter(|entry| entry.open) else { return };
        entry.open = false;
        self.open = self.open.saturating_sub(1);
        // The word of a change may be slower than the answer that already has it.
        let is_behind = match (&answer, entry.changed.take()) {
            (Answer::Value(_, version), Some(changed)) => *version < changed,
            (_, changed) => changed.is_some(),
        };
        // The value that is held serves on where the vault has nothing better, and so does the one that was held earlier.
        let is_held = matches!(entry.told, Some(Found::Here(_)));
        let earlier = entry.earlier.take();
        let (found, backoff) = match answer {
            Answer::Value(value, version) => {
                if let Some(held) = entry.version.filter(|held| version < *held) {
                    effects.push(AskingEffect::Older { name: name.clone(), version, held });
                    match earlier {
                        None if !is_held => (Some(Found::Missing(Why::NoAnswer)), Some(Backoff::NO_ANSWER)),
                        earlier => (earlier, None),
                    }
                } else {
                    entry.version = Some(version);
                    (Some(Found::Here(Stored::Secret(value))), None)
                }
            }
            Answer::Absent => (Some(Found::Missing(Why::Absent)), Some(Backoff::ABSENT)),
            Answer::Refused(reason) => {
                let delay = Backoff::REFUSED.delay(0, &mut self.jitter);
                let retry_at = Some(now.wall_at(now.mono + delay));
                (Some(Found::Refused { reason, retry_at }), Some(Backoff::REFUSED))
            }
            Answer::Nothing => {
                let found = earlier.or_else(|| (!is_held).then_some(Found::Missing(Why::NoAnswer)));
                (found, Some(Backoff::NO_ANSWER))
            }
        };
        entry.due = backoff.map(|backoff| now.mono + backoff.delay(entry.failed, &mut self.jitter));
        entry.failed = if backoff.is_some() { entry.failed + 1 } else { 0 };
        if let Some(found) = found
            && entry.told.as_ref() != Some(&found)
        {
            entry.told = Some(found.clone());
            effects.push(AskingEffect::Tell(name.clone(), found));
        }
        if (std::mem::take(&mut entry.again) || is_behind) && entry.wanted {
            self.enqueue(name);
        }
    }

    /// The names that are asked for now, for people.
    pub fn open(&self) -> BTreeSet<&SecretName> {
        self.entries.iter().filter(|(_, entry)| entry.open).map(|(name, _)| name).collect()
    }
}

/// True when the vault gave an answer that only itself, or time, will change.
const fn is_settled(entry: &Entry) -> bool {
    matches!(entry.told, Some(Found::Refused { .. } | Found::Missing(Why::Absent)))
}

#[cfg(test)]
mod tests;
