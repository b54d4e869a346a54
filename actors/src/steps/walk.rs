//! Taking back what the steps of a run have done: newest first, each call tried several times, what cannot be done left and named,
//! steps of unknown outcome settled first (provider.md D18, F7). Pure: the ledger says what there is to do, so a walk that was cut
//! off anywhere goes on where its records end.

use std::collections::BTreeSet;

use super::call::{CallEnd, Input, Kind};
use super::going::{About, At, Going, Move, Step, error_reason};
use super::ledger::{Entry, EntryState, Ledger, Left, UndoEntry, UndoState};
use super::record::Record;

/// What came of a walk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// How many calls took something back.
    pub undone: usize,
    /// What is left.
    pub left: Vec<Left>,
    /// Among what is left is something only an operator can tell about: another walk would end the same.
    pub asks_operator: bool,
    /// It was told to stop before its end.
    pub stopped: bool,
}

/// A call that takes back, or the settling of a step: its step, and which call.
type Target = (String, Option<usize>);

/// One walk through a ledger.
#[derive(Debug)]
pub struct Walk {
    why: String,
    tries: u32,
    tried: BTreeSet<Target>,
    asks_operator: bool,
    undone: usize,
    going: Option<Going>,
}

impl Walk {
    /// A walk that tries each call so often; `why` is written down as what led to it.
    pub const fn new(why: String, tries: u32) -> Self {
        Self { why, tries, tried: BTreeSet::new(), asks_operator: false, undone: 0, going: None }
    }

    /// What to do about `input`; every record that it has to be written is in the `ledger` by the next time.
    pub fn handle(&mut self, ledger: &Ledger, input: Input, at: At) -> Move<Taken> {
        let Some(mut going) = self.going.take() else { return self.next(ledger, at) };
        match going.handle(input, at) {
            Step::Go(go) => {
                self.going = Some(going);
                go
            }
            Step::End(end) => match self.ended(&going, end, at) {
                Some(record) => Move::Write(record),
                None => self.next(ledger, at),
            },
        }
    }

    fn next(&mut self, ledger: &Ledger, at: At) -> Move<Taken> {
        if ledger.taking_back().is_none() && !ledger.is_empty() {
            return Move::Write(Record::TakingBack { why: self.why.clone() });
        }
        let found = ledger.entries().iter().rev().find_map(|entry| self.work_on(entry));
        let Some(mut going) = found else { return self.done(ledger, false) };
        if at.stop {
            return self.done(ledger, true);
        }
        match going.handle(Input::Begin, at) {
            Step::Go(go) => {
                self.going = Some(going);
                go
            }
            Step::End(_) => self.done(ledger, true),
        }
    }

    fn done(&self, ledger: &Ledger, stopped: bool) -> Move<Taken> {
        let left = ledger.left();
        let asks_operator = self.asks_operator && !left.is_empty();
        Move::Done(Taken { undone: self.undone, left, asks_operator, stopped })
    }

    /// What there is to do about this step in this walk, if anything.
    fn work_on(&mut self, entry: &Entry) -> Option<Going> {
        let about = |action: &str, key: String, attrs, index| About {
            step: entry.step.clone(),
            provider: entry.provider.clone(),
            action: action.to_owned(),
            key,
            attrs,
            index,
            timeout: None,
        };
        let undos = match &entry.state {
            EntryState::Sent => {
                if self.tried.contains(&(entry.step.clone(), None)) {
                    return None;
                }
                let about = about(&entry.action, entry.key.clone(), entry.attrs.clone(), None);
                return Some(Going::new(about, Kind::Settle, entry.attempts, true));
            }
            EntryState::Done(_, Some(undos)) | EntryState::Failed { undo: Some(undos), .. } => undos,
            EntryState::Done(_, None) | EntryState::Failed { clean: false, undo: None, .. } => {
                self.asks_operator = true;
                return None;
            }
            EntryState::Failed { undo: None, .. } => return None,
        };
        // They are done in their order, so one that was not done holds up those behind it.
        let (index, undo) = undos.iter().enumerate().find(|(_, undo)| undo.state != UndoState::Done)?;
        if self.tried.contains(&(entry.step.clone(), Some(index))) {
            return None;
        }
        let UndoEntry { call, state, attempts } = undo;
        let key = format!("{}/undo/{index}", entry.key);
        let about = about(&call.action, key, Some(call.attrs.clone()), Some(index));
        Some(Going::new(about, Kind::Undo { tries: self.tries }, *attempts, *state == UndoState::Sent))
    }

    /// What has to be written down of the end of a call; none when nothing is known that was not before.
    fn ended(&mut self, going: &Going, end: CallEnd, at: At) -> Option<Record> {
        let About { step, index, .. } = going.about();
        let target = (step.clone(), *index);
        match (end, index) {
            (CallEnd::Done(_), Some(index)) => {
                self.undone += 1;
                Some(Record::Undone { step: step.clone(), index: *index })
            }
            (CallEnd::Done(done), None) => Some(Record::Ok {
                step: step.clone(),
                ms: going.ms(at.now),
                outputs: Some(done.outputs),
                undo: Some(done.undo),
            }),
            (CallEnd::Clean(error), _) => {
                self.tried.insert(target);
                Some(going.failed_record(error_reason(&error), true, Vec::new()))
            }
            (CallEnd::Failed(error), _) => {
                if index.is_some() {
                    self.tried.insert(target);
                }
                Some(going.failed_record(error_reason(&error), false, error.more.undo.clone()))
            }
            (CallEnd::Unknown { later, .. }, _) => {
                self.tried.insert(target);
                self.asks_operator |= !later;
                None
            }
        }
    }
}
