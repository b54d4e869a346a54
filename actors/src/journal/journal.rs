//! The fold: entries in, state out. Pure. It also says what has to be written so that the same state can be read again; who
//! writes it, and when, is not known here.

use std::collections::BTreeMap;

use quartermaster_proto::choria::identity::Identity;

use super::entry::{Began, Entry, Intent, Standing, StoredPause, Unfinished};
use super::history::{History, HistoryLimits};
use super::provided::Provided;
use super::record::AttemptRecord;

/// The step after whose intent a host may be configured.
const CONFIGURE: &str = "configure";
/// What is told of a step whose host may have taken it.
const NO_REPLY: &str = "no reply to it is known";
/// The step that ends a cycle.
const RESTART: &str = "restart";

/// What has to be written, or has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// An entry of a cycle in flight; entries of one cycle count from 0.
    Cycle {
        /// The cycle.
        cycle: u64,
        /// Its place.
        number: u32,
        /// The entry.
        text: String,
    },
    /// A cycle is over: its entries may go.
    DropCycle {
        /// The cycle.
        cycle: u64,
        /// How many there are.
        entries: u32,
    },
    /// What the roster remembers of a host.
    Standing {
        /// The host.
        host: Identity,
        /// As JSON; none when that is nothing.
        text: Option<String>,
    },
    /// An attempt that is over.
    Attempt {
        /// Its cycle.
        cycle: u64,
        /// The host.
        host: Identity,
        /// As JSON.
        text: String,
    },
    /// An attempt is forgotten.
    DropAttempt {
        /// Its cycle.
        cycle: u64,
    },
    /// What `configure` sends to a host, sealed; none when it is no longer needed.
    Material {
        /// The host.
        host: Identity,
        /// The sealed bytes.
        sealed: Option<Vec<u8>>,
    },
    /// A record of what a provider did for a host; those of one host count from 0.
    Step {
        /// The host.
        host: Identity,
        /// Its place.
        number: u32,
        /// The record, what is secret in it sealed.
        text: String,
    },
    /// What providers did for a host is over: its records may go.
    DropSteps {
        /// The host.
        host: Identity,
        /// How many there are.
        entries: u32,
    },
    /// The operator's pause, as JSON; none when there is none.
    Pause(Option<String>),
}

/// An entry of a cycle in flight, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
enum CycleEntry {
    Began { host: Identity, began: Began },
    Intended(Intent),
    Done { step: String },
}

/// A cycle in flight.
#[derive(Debug, Clone)]
struct Cycle {
    host: Identity,
    began: Began,
    intent: Option<Intent>,
    done: Option<String>,
    written: Vec<String>,
}

impl Cycle {
    /// What would have to be made good if the instance ended now.
    fn unfinished(&self) -> Option<Unfinished> {
        let done = |step: &str| self.done.as_deref() == Some(step);
        match self.intent.as_ref().map(|intent| intent.step.as_str()) {
            Some(CONFIGURE) if done(CONFIGURE) => Some(Unfinished::Restart),
            Some(CONFIGURE) => Some(Unfinished::Configure),
            Some(RESTART) => Some(Unfinished::Restarted),
            // Nothing of this cycle has touched the host; what an earlier one left stands.
            _ => self.began.standing.unfinished,
        }
    }

    /// The attempt that it is when `what` ends under it.
    fn lost(&self, cycle: u64, what: &str) -> AttemptRecord {
        let (mut steps, helper) = self.intent.as_ref().map_or_else(Default::default, |intent| {
            let (steps, helper) = (&intent.steps, &intent.helper);
            (steps.clone(), helper.clone())
        });
        if let (Some(intent), Some(last)) = (&self.intent, steps.last_mut())
            && self.done.as_ref() != Some(&intent.step)
        {
            last.error.get_or_insert_with(|| NO_REPLY.to_owned());
        }
        // Steps are written with the intent of the first one that changes the host.
        let unknown = if self.intent.is_none() { "; which steps it had taken is not recorded" } else { "" };
        let last_ms = self.intent.as_ref().map_or(self.began.at_ms, |intent| intent.at_ms);
        AttemptRecord {
            attempt: self.began.attempt,
            cycle,
            began_ms: self.began.at_ms,
            took_ms: u64::try_from(last_ms.saturating_sub(self.began.at_ms)).unwrap_or(0),
            ending: "lost".to_owned(),
            cause: None,
            error: Some(format!("{what} ended under it{unknown}")),
            steps,
            helper,
        }
    }
}

/// A host whose cycle was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOff {
    /// What is known of the attempt.
    pub attempt: AttemptRecord,
    /// The last step with an effect that was intended, and when.
    pub touched: Option<(String, i64)>,
}

/// Everything that is remembered.
#[derive(Debug)]
pub struct Journal {
    standings: BTreeMap<Identity, Standing>,
    cycles: BTreeMap<u64, Cycle>,
    materials: BTreeMap<Identity, Vec<u8>>,
    history: History,
    provided: Provided,
    paused: Option<StoredPause>,
    next_cycle: u64,
}

impl Journal {
    /// An empty journal.
    pub fn new(limits: HistoryLimits) -> Self {
        Self {
            standings: BTreeMap::new(),
            cycles: BTreeMap::new(),
            materials: BTreeMap::new(),
            history: History::new(limits),
            provided: Provided::default(),
            paused: None,
            next_cycle: 1,
        }
    }

    /// The operator's pause.
    pub const fn paused(&self) -> Option<&StoredPause> {
        self.paused.as_ref()
    }

    /// The number no cycle has had yet.
    pub const fn next_cycle(&self) -> u64 {
        self.next_cycle
    }

    /// Every host that is remembered, with what the roster knew of it.
    pub fn standings(&self) -> impl Iterator<Item = (&Identity, &Standing)> {
        self.standings.iter()
    }

    /// What `configure` sent to a host, sealed.
    pub fn material(&self, host: &Identity) -> Option<&[u8]> {
        self.materials.get(host).map(Vec::as_slice)
    }

    /// The attempts that are over.
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// The hosts for which providers did something that is not over.
    pub fn provided_hosts(&self) -> impl Iterator<Item = &Identity> {
        self.provided.hosts()
    }

    /// The records of what providers did for a host, in their order.
    pub fn provided(&self, host: &Identity) -> impl Iterator<Item = &str> {
        self.provided.of(host)
    }

    /// How many entries of cycles in flight there are.
    pub fn open_entries(&self) -> usize {
        self.cycles.values().map(|cycle| cycle.written.len()).sum()
    }

    /// Takes an entry in; answers what has to be written for it.
    pub fn apply(&mut self, entry: Entry, now_ms: i64) -> Vec<Write> {
        let mut writes = Vec::new();
        match entry {
            Entry::Began { host, began } => self.began(host, began, &mut writes),
            Entry::Intended { cycle, intent, material } => {
                if let Some(material) = material
                    && let Some(open) = self.cycles.get(&cycle)
                {
                    self.materials.insert(open.host.clone(), material.clone());
                    writes.push(Write::Material { host: open.host.clone(), sealed: Some(material) });
                }
                self.advance(cycle, CycleEntry::Intended(intent), &mut writes);
            }
            Entry::Done { cycle, step } => self.advance(cycle, CycleEntry::Done { step }, &mut writes),
            Entry::Ended { host, attempt, standing } => {
                if let Some(open) = self.cycles.remove(&attempt.cycle) {
                    let entries = u32::try_from(open.written.len()).unwrap_or(u32::MAX);
                    writes.push(Write::DropCycle { cycle: attempt.cycle, entries });
                }
                self.add_attempt(&host, &attempt, now_ms, &mut writes);
                self.stand(host, standing, &mut writes);
            }
            Entry::Lost { cycle, host, standing } => {
                if let Some(open) = self.cycles.remove(&cycle) {
                    let attempt = open.lost(cycle, "the part that led it");
                    let entries = u32::try_from(open.written.len()).unwrap_or(u32::MAX);
                    writes.push(Write::DropCycle { cycle, entries });
                    self.add_attempt(&host, &attempt, now_ms, &mut writes);
                }
                self.stand(host, standing, &mut writes);
            }
            Entry::Stands { host, standing } => self.stand(host, standing, &mut writes),
            Entry::Step { host, text } => self.provided.add(host, text, &mut writes),
            Entry::StepsOver { host } => self.provided.clear(&host, &mut writes),
            Entry::Forgotten { host } => {
                let gone = self.history.forget(&host);
                writes.extend(gone.into_iter().map(|cycle| Write::DropAttempt { cycle }));
                let open: Vec<_> = self
                    .cycles
                    .iter()
                    .filter(|(_, open)| open.host == host)
                    .map(|(cycle, _)| *cycle)
                    .collect();
                for cycle in open {
                    let entries = self.cycles.remove(&cycle).map_or(0, |open| open.written.len());
                    let entries = u32::try_from(entries).unwrap_or(u32::MAX);
                    writes.push(Write::DropCycle { cycle, entries });
                }
                self.provided.clear(&host, &mut writes);
                self.stand(host, None, &mut writes);
            }
            Entry::Paused(pause) => {
                writes.push(Write::Pause(pause.as_ref().and_then(text)));
                self.paused = pause;
            }
        }
        writes
    }

    fn began(&mut self, host: Identity, began: Began, writes: &mut Vec<Write>) {
        let cycle = began.cycle;
        self.next_cycle = self.next_cycle.max(cycle.saturating_add(1));
        let entry = CycleEntry::Began { host: host.clone(), began: began.clone() };
        self.cycles.insert(cycle, Cycle { host, began, intent: None, done: None, written: Vec::new() });
        self.advance(cycle, entry, writes);
    }

    fn advance(&mut self, cycle: u64, entry: CycleEntry, writes: &mut Vec<Write>) {
        // An entry of a cycle that is over, or was never begun, changes nothing.
        let Some(open) = self.cycles.get_mut(&cycle) else { return };
        let Some(text) = text(&entry) else { return };
        let number = u32::try_from(open.written.len()).unwrap_or(u32::MAX);
        open.written.push(text.clone());
        match entry {
            CycleEntry::Began { .. } => {}
            CycleEntry::Intended(intent) => open.intent = Some(intent),
            CycleEntry::Done { step } => {
                if step == CONFIGURE && self.materials.remove(&open.host).is_some() {
                    writes.push(Write::Material { host: open.host.clone(), sealed: None });
                }
                open.done = Some(step);
            }
        }
        writes.push(Write::Cycle { cycle, number, text });
    }

    fn add_attempt(
        &mut self,
        host: &Identity,
        attempt: &AttemptRecord,
        now_ms: i64,
        writes: &mut Vec<Write>,
    ) {
        self.next_cycle = self.next_cycle.max(attempt.cycle.saturating_add(1));
        let gone = self.history.add(host, attempt, now_ms);
        if let Some(text) = self.history.stored(attempt.cycle) {
            let (cycle, text) = (attempt.cycle, text.to_owned());
            writes.push(Write::Attempt { cycle, host: host.clone(), text });
        }
        writes.extend(gone.into_iter().map(|cycle| Write::DropAttempt { cycle }));
    }

    fn stand(&mut self, host: Identity, standing: Option<Standing>, writes: &mut Vec<Write>) {
        let needs_material =
            standing.as_ref().is_some_and(|now| now.unfinished == Some(Unfinished::Configure));
        if !needs_material && self.materials.remove(&host).is_some() {
            writes.push(Write::Material { host: host.clone(), sealed: None });
        }
        match standing {
            Some(standing) => {
                writes.push(Write::Standing { host: host.clone(), text: text(&standing) });
                self.standings.insert(host, standing);
            }
            None if self.standings.remove(&host).is_some() => {
                writes.push(Write::Standing { host, text: None });
            }
            None => {}
        }
    }

    /// Puts back what was written. Answers with the reason when it cannot be understood.
    pub fn restore(&mut self, written: Write) -> Result<(), String> {
        match written {
            Write::Cycle { cycle, text, .. } => {
                let entry: CycleEntry = parse("an entry of a cycle", &text)?;
                let mut ignored = Vec::new();
                match entry {
                    CycleEntry::Began { host, began } => self.began(host, began, &mut ignored),
                    entry => self.advance(cycle, entry, &mut ignored),
                }
            }
            Write::Standing { host, text: Some(text) } => {
                self.standings.insert(host, parse("the state of a server", &text)?);
            }
            Write::Attempt { cycle, host, text } => {
                let attempt: AttemptRecord = parse("an attempt", &text)?;
                self.next_cycle = self.next_cycle.max(cycle.saturating_add(1));
                self.history.put(&host, cycle, attempt.began_ms, text);
            }
            Write::Material { host, sealed: Some(sealed) } => {
                self.materials.insert(host, sealed);
            }
            Write::Step { host, number, text } => self.provided.put(host, number, text),
            Write::Pause(Some(text)) => self.paused = Some(parse("the pause", &text)?),
            Write::DropCycle { .. }
            | Write::DropAttempt { .. }
            | Write::DropSteps { .. }
            | Write::Standing { text: None, .. }
            | Write::Material { sealed: None, .. }
            | Write::Pause(None) => {}
        }
        Ok(())
    }

    /// Drops attempts that are too old; answers what has to be written.
    pub fn expire(&mut self, now_ms: i64) -> Vec<Write> {
        self.history.expire(now_ms).into_iter().map(|cycle| Write::DropAttempt { cycle }).collect()
    }

    /// Everything that has to be written for a file that holds nothing yet.
    pub fn all(&self) -> Vec<Write> {
        let mut writes = Vec::new();
        for (cycle, open) in &self.cycles {
            for (number, text) in (0..).zip(&open.written) {
                writes.push(Write::Cycle { cycle: *cycle, number, text: text.clone() });
            }
        }
        for (host, standing) in &self.standings {
            writes.push(Write::Standing { host: host.clone(), text: text(standing) });
        }
        for (cycle, host, json) in self.history.all() {
            writes.push(Write::Attempt { cycle, host: host.clone(), text: json.to_owned() });
        }
        for (host, sealed) in &self.materials {
            writes.push(Write::Material { host: host.clone(), sealed: Some(sealed.clone()) });
        }
        writes.extend(self.provided.all());
        writes.push(Write::Pause(self.paused.as_ref().and_then(text)));
        writes
    }

    /// Ends the cycles that were in flight when the instance ended: each becomes an attempt that was lost, and its host
    /// stands with what the next cycle has to make good. Answers what was cut off, by host, and what has to be written.
    pub fn cut_off(&mut self, now_ms: i64) -> (BTreeMap<Identity, CutOff>, Vec<Write>) {
        let mut cut = BTreeMap::new();
        let mut writes = Vec::new();
        for (number, open) in std::mem::take(&mut self.cycles) {
            let unfinished = open.unfinished();
            let attempt = open.lost(number, "the instance");
            let Cycle { host, began, intent, written, .. } = open;
            let touched = intent.map(|intent| (intent.step, intent.at_ms));
            let entries = u32::try_from(written.len()).unwrap_or(u32::MAX);
            writes.push(Write::DropCycle { cycle: number, entries });
            self.add_attempt(&host, &attempt, now_ms, &mut writes);
            let lost = began.standing.lost.saturating_add(1);
            self.stand(host.clone(), Some(Standing { lost, unfinished, ..began.standing }), &mut writes);
            cut.insert(host, CutOff { attempt, touched });
        }
        (cut, writes)
    }
}

fn text(value: &impl serde::Serialize) -> Option<String> {
    // These shapes hold strings and numbers only, so this cannot fail.
    serde_json::to_string(value).ok()
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{what} is not readable: {error}"))
}
