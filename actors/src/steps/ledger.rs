//! What was done by the steps of one run and what is still to be taken back: the fold of its records. Pure.

use std::collections::BTreeMap;

use quartermaster_proto::provider::{Invocation, Members, Value};

use super::record::Record;

/// The steps of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    run: String,
    scope: Option<Members>,
    taking_back: Option<String>,
    skipped: Vec<String>,
    /// In the order of their completion, those that have not answered at the end.
    entries: Vec<Entry>,
}

/// One step that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The step.
    pub step: String,
    /// The provider's local name.
    pub provider: String,
    /// Its action.
    pub action: String,
    /// The key under which the provider knows it.
    pub key: String,
    /// With what it was sent; none when that cannot be read any more.
    pub attrs: Option<Members>,
    /// How often it was sent.
    pub attempts: u32,
    /// How far it is.
    pub state: EntryState,
}

/// How far a step is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// Sent, and nothing is known of it.
    Sent,
    /// Done, with these outputs.
    Done(Option<Members>, Undos),
    /// Failed; it is sure that nothing was done when `clean`.
    Failed {
        /// Nothing was done.
        clean: bool,
        /// Why.
        error: String,
        /// What clears what was done.
        undo: Undos,
    },
}

/// The calls that take a step back, in their order; none when they cannot be read any more.
pub type Undos = Option<Vec<UndoEntry>>;

/// One call that takes a step back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoEntry {
    /// The call.
    pub call: Invocation,
    /// How far it is.
    pub state: UndoState,
    /// How often it was sent.
    pub attempts: u32,
}

/// How far such a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoState {
    /// To be made.
    Waiting,
    /// Sent, and nothing is known of it.
    Sent,
    /// Failed the last time, for this reason.
    Failed(String),
    /// Done.
    Done,
}

/// Something that was not taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The step.
    pub step: String,
    /// The provider's local name.
    pub provider: String,
    /// The step's action, or that of the call which should have taken it back.
    pub action: String,
    /// The key under which the provider knows the step.
    pub key: String,
    /// Why it is left.
    pub why: LeftWhy,
}

/// Why something was not taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftWhy {
    /// Nobody knows whether the step was done.
    Unknown,
    /// Nobody knows whether the call that takes it back was done.
    UndoUnknown,
    /// The call that takes it back failed for this reason; none before its first try.
    Failed(Option<String>),
    /// What takes it back cannot be read any more.
    Lost,
}

impl Left {
    /// Only an operator can tell what became of it.
    pub const fn asks_operator(&self) -> bool {
        matches!(self.why, LeftWhy::Unknown | LeftWhy::UndoUnknown | LeftWhy::Lost)
    }
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { step, provider, action, .. } = self;
        match &self.why {
            LeftWhy::Unknown => write!(f, "step {step}: whether {provider} did {action} is unknown"),
            LeftWhy::UndoUnknown => {
                write!(f, "step {step}: whether {provider} took it back with {action} is unknown")
            }
            LeftWhy::Failed(Some(error)) => {
                write!(f, "step {step}: {provider} did not take it back with {action}: {error}")
            }
            LeftWhy::Failed(None) => write!(f, "step {step}: {provider} has still to do {action}"),
            LeftWhy::Lost => {
                write!(f, "step {step}: what takes {action} of {provider} back is not readable any more")
            }
        }
    }
}

impl Ledger {
    /// The fold of these records.
    pub fn of<'r>(records: impl IntoIterator<Item = &'r Record>) -> Self {
        let mut ledger = Self::default();
        for record in records {
            ledger.apply(record);
        }
        ledger
    }

    /// Takes a record in. One about a step that was never sent changes nothing.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Began { run, scope } => {
                *self = Self { run: run.clone(), scope: scope.clone(), ..Self::default() };
            }
            Record::Sent { step, provider, action, key, attempt, attrs, .. } => {
                self.entries.retain(|entry| entry.step != *step);
                self.entries.push(Entry {
                    step: step.clone(),
                    provider: provider.clone(),
                    action: action.clone(),
                    key: key.clone(),
                    attrs: attrs.clone(),
                    attempts: *attempt,
                    state: EntryState::Sent,
                });
            }
            Record::Ok { step, outputs, undo, .. } => {
                let state = EntryState::Done(outputs.clone(), waiting(undo.as_deref()));
                if let Some(at) = self.entries.iter().position(|entry| entry.step == *step) {
                    // What takes back goes from the newest completion to the oldest.
                    let mut entry = self.entries.remove(at);
                    entry.state = state;
                    let open = |entry: &Entry| entry.state == EntryState::Sent;
                    let end = self.entries.iter().position(open).unwrap_or(self.entries.len());
                    self.entries.insert(end, entry);
                }
            }
            Record::Failed { step, clean, error, undo } => {
                let undo = waiting(undo.as_deref());
                if let Some(entry) = self.entry_mut(step) {
                    entry.state = EntryState::Failed { clean: *clean, error: error.clone(), undo };
                }
            }
            Record::Skipped { step, .. } => self.skipped.push(step.clone()),
            Record::TakingBack { why } => self.taking_back = Some(why.clone()),
            Record::UndoSent { step, index, attempt } => {
                if let Some(undo) = self.undo_mut(step, *index) {
                    undo.attempts = *attempt;
                    undo.state = UndoState::Sent;
                }
            }
            Record::Undone { step, index } => {
                if let Some(undo) = self.undo_mut(step, *index) {
                    undo.state = UndoState::Done;
                }
            }
            Record::UndoFailed { step, index, error } => {
                if let Some(undo) = self.undo_mut(step, *index) {
                    undo.state = UndoState::Failed(error.clone());
                }
            }
            Record::Decided => self.decide(),
        }
    }

    /// What an operator's word means: a step of unknown outcome was not done, or what it did was seen to; a call that takes
    /// back is made again; what cannot be read was seen to.
    fn decide(&mut self) {
        for entry in &mut self.entries {
            match &mut entry.state {
                EntryState::Sent
                | EntryState::Done(_, None)
                | EntryState::Failed { clean: false, undo: None, .. } => {
                    let error = "settled by an operator".to_owned();
                    entry.state = EntryState::Failed { clean: true, error, undo: Some(Vec::new()) };
                }
                EntryState::Done(_, Some(undos)) | EntryState::Failed { undo: Some(undos), .. } => {
                    for undo in undos.iter_mut().filter(|undo| undo.state == UndoState::Sent) {
                        undo.state = UndoState::Waiting;
                    }
                }
                EntryState::Failed { undo: None, .. } => {}
            }
        }
    }

    fn entry_mut(&mut self, step: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.step == step)
    }

    fn undo_mut(&mut self, step: &str, index: usize) -> Option<&mut UndoEntry> {
        match &mut self.entry_mut(step)?.state {
            EntryState::Done(_, undo) | EntryState::Failed { undo, .. } => undo.as_mut()?.get_mut(index),
            EntryState::Sent => None,
        }
    }

    /// The run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// What steps refer to beside the outputs of earlier ones.
    pub const fn scope(&self) -> Option<&Members> {
        self.scope.as_ref()
    }

    /// Why everything is taken back, once that is decided.
    pub fn taking_back(&self) -> Option<&str> {
        self.taking_back.as_deref()
    }

    /// Whether nothing was ever sent.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The steps that were sent, in the order of their completion.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// One step that was sent.
    pub fn entry(&self, step: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.step == step)
    }

    /// The outputs of every step that has ended, `null` for one that gave none because it was left out or failed.
    pub fn outputs(&self) -> BTreeMap<String, Value> {
        let skipped = self.skipped.iter().map(|step| (step.clone(), Value::Null));
        let done = self.entries.iter().filter_map(|entry| match &entry.state {
            EntryState::Done(outputs, _) => {
                let outputs = outputs.clone().map_or(Value::Null, Value::Object);
                Some((entry.step.clone(), outputs))
            }
            EntryState::Failed { .. } => Some((entry.step.clone(), Value::Null)),
            EntryState::Sent => None,
        });
        skipped.chain(done).collect()
    }

    /// Everything that is not taken back, in the order in which it is to be.
    pub fn left(&self) -> Vec<Left> {
        let mut left = Vec::new();
        for entry in self.entries.iter().rev() {
            let mut add = |action: &str, why| {
                left.push(Left {
                    step: entry.step.clone(),
                    provider: entry.provider.clone(),
                    action: action.to_owned(),
                    key: entry.key.clone(),
                    why,
                });
            };
            match &entry.state {
                EntryState::Sent => add(&entry.action, LeftWhy::Unknown),
                EntryState::Done(_, None) | EntryState::Failed { clean: false, undo: None, .. } => {
                    add(&entry.action, LeftWhy::Lost);
                }
                EntryState::Failed { undo: None, .. } => {}
                EntryState::Done(_, Some(undos)) | EntryState::Failed { undo: Some(undos), .. } => {
                    for undo in undos {
                        match &undo.state {
                            UndoState::Done => {}
                            UndoState::Waiting => add(&undo.call.action, LeftWhy::Failed(None)),
                            UndoState::Sent => add(&undo.call.action, LeftWhy::UndoUnknown),
                            UndoState::Failed(error) => {
                                add(&undo.call.action, LeftWhy::Failed(Some(error.clone())));
                            }
                        }
                    }
                }
            }
        }
        left
    }
}

fn waiting(calls: Option<&[Invocation]>) -> Undos {
    let entry = |call: &Invocation| UndoEntry { call: call.clone(), state: UndoState::Waiting, attempts: 0 };
    calls.map(|calls| calls.iter().map(entry).collect())
}
