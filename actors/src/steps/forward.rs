//! The steps of a cycle, one after the other: conditions, attributes, calls. Pure: what was done already is in the ledger, so steps
//! that were cut off anywhere go on where their records end.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::provider::{Members, Value};

use super::call::{CallEnd, Input, Kind};
use super::expression::{Scope, Template};
use super::going::{About, At, Going, Move, Step, error_reason, reason};
use super::ledger::{EntryState, Ledger};
use super::record::Record;

/// One step of a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSpec {
    /// Its name.
    pub name: String,
    /// The local name of its provider.
    pub provider: String,
    /// Its action.
    pub action: String,
    /// Its attributes.
    pub attrs: Template,
    /// When it is done at all; none is always.
    pub when: Option<Template>,
    /// The limit of one call; none is the action's or the provider's own.
    pub timeout: Option<Duration>,
    /// How often a call is made at most that surely did nothing.
    pub tries: u32,
    /// Its failure is noted, and the next step is done.
    pub ignore_failure: bool,
}

/// How the steps ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every one of them was done, left out, or failed and may.
    AllDone,
    /// One failed that may not.
    Failed {
        /// Which.
        step: String,
        /// Why; nothing secret.
        error: String,
        /// Nobody knows whether it was done, and only an operator can tell.
        unknown: bool,
    },
    /// They were told to stop before the next one.
    Stopped,
}

/// The steps under way.
#[derive(Debug)]
pub struct Forward {
    specs: Arc<[StepSpec]>,
    roots: Members,
    next: usize,
    going: Option<Going>,
}

impl Forward {
    /// These steps; `roots` is what they refer to beside the outputs of earlier ones.
    pub const fn new(specs: Arc<[StepSpec]>, roots: Members) -> Self {
        Self { specs, roots, next: 0, going: None }
    }

    /// What to do about `input`; every record that it has to be written is in the `ledger` by the next time.
    pub fn handle(&mut self, ledger: &Ledger, input: Input, at: At) -> Move<Ended> {
        let Some(mut going) = self.going.take() else { return self.next_step(ledger, at) };
        match going.handle(input, at) {
            Step::Go(go) => {
                self.going = Some(going);
                go
            }
            Step::End(end) => self.ended(&going, end, at),
        }
    }

    fn next_step(&mut self, ledger: &Ledger, at: At) -> Move<Ended> {
        loop {
            let specs = Arc::clone(&self.specs);
            let Some(spec) = specs.get(self.next) else { return Move::Done(Ended::AllDone) };
            let known = ledger.entry(&spec.name).map(|entry| (&entry.state, entry.attempts));
            let (attempts, unknown) = match known {
                Some((EntryState::Done(..), _)) => {
                    self.next += 1;
                    continue;
                }
                Some((EntryState::Failed { .. }, _)) if spec.ignore_failure => {
                    self.next += 1;
                    continue;
                }
                Some((EntryState::Failed { error, .. }, _)) => {
                    let (step, error) = (spec.name.clone(), error.clone());
                    return Move::Done(Ended::Failed { step, error, unknown: false });
                }
                None if ledger.outputs().contains_key(&spec.name) => {
                    self.next += 1;
                    continue;
                }
                Some((EntryState::Sent, attempts)) => (attempts, true),
                None => (0, false),
            };
            if at.stop {
                return Move::Done(Ended::Stopped);
            }
            let begun = if unknown { Ok(again(ledger, spec)) } else { self.begin(ledger, spec) };
            let about = match begun {
                Ok(Some(about)) => about,
                Ok(None) => return Move::Write(Record::Skipped { step: spec.name.clone(), why: None }),
                // Nothing was sent; that it is left out is what the next one sees of it.
                Err(error) if spec.ignore_failure => {
                    return Move::Write(Record::Skipped { step: spec.name.clone(), why: Some(error) });
                }
                Err(error) => {
                    return Move::Done(Ended::Failed { step: spec.name.clone(), error, unknown: false });
                }
            };
            let mut going = Going::new(about, Kind::Step { tries: spec.tries }, attempts, unknown);
            return match going.handle(Input::Begin, at) {
                Step::Go(go) => {
                    self.going = Some(going);
                    go
                }
                Step::End(end) => self.ended(&going, end, at),
            };
        }
    }

    /// A step as it is to be done, none when its condition does not hold.
    fn begin(&self, ledger: &Ledger, spec: &StepSpec) -> Result<Option<About>, String> {
        let scope = Scope { roots: self.roots.clone(), steps: ledger.outputs() };
        if let Some(when) = &spec.when
            && !when.holds(&scope).map_err(|error| reason(&format!("when: {error}")))?
        {
            return Ok(None);
        }
        let evaluated = spec.attrs.evaluate(&scope).map_err(|error| reason(&format!("attrs: {error}")))?;
        let Value::Object(attrs) = evaluated.value else { return Err("attrs: no object".to_owned()) };
        Ok(Some(About {
            step: spec.name.clone(),
            provider: spec.provider.clone(),
            action: spec.action.clone(),
            key: format!("{}/{}", ledger.run(), spec.name),
            attrs: Some(attrs),
            index: None,
            timeout: spec.timeout,
        }))
    }

    fn ended(&mut self, going: &Going, end: CallEnd, at: At) -> Move<Ended> {
        let step = going.about().step.clone();
        match end {
            CallEnd::Done(done) => Move::Write(Record::Ok {
                step,
                ms: going.ms(at.now),
                outputs: Some(done.outputs),
                undo: Some(done.undo),
            }),
            // What comes of it is read from the ledger.
            CallEnd::Clean(error) => Move::Write(going.failed_record(error_reason(&error), true, Vec::new())),
            CallEnd::Failed(error) => {
                Move::Write(going.failed_record(error_reason(&error), false, error.more.undo.clone()))
            }
            CallEnd::Unknown { why, later } => {
                let ignore = self.specs.get(self.next).is_some_and(|spec| spec.ignore_failure);
                if ignore {
                    self.next += 1;
                    return Move::Wait(Duration::ZERO);
                }
                Move::Done(Ended::Failed { step, error: reason(&why), unknown: !later })
            }
        }
    }
}

/// A step that was sent in an earlier life.
fn again(ledger: &Ledger, spec: &StepSpec) -> Option<About> {
    let entry = ledger.entry(&spec.name)?;
    Some(About {
        step: entry.step.clone(),
        provider: entry.provider.clone(),
        action: entry.action.clone(),
        key: entry.key.clone(),
        attrs: entry.attrs.clone(),
        index: None,
        timeout: spec.timeout,
    })
}
