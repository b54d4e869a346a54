//! How far a cycle has come: written by its actor, read by its owner and by whoever wants to know, also after the actor's
//! end. Only plain data lies here, and nobody holds it for longer than a copy takes.

use quartermaster_proto::time::whole_ms;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::steps::Step;
use crate::journal::{HelperRecord, StepRecord};
use crate::steps::Record;

/// Steps kept of one cycle; there are fewer in the table, and each is entered once.
const MAX_STEPS: usize = 32;
/// What is kept of what providers did in one cycle.
const MAX_PROVIDED: usize = 160;
/// What the name of a provider's step begins with, and that of its taking back.
const STEP: &str = "steps.";
const UNDO: &str = "undo.";

/// One step's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepProgress {
    /// The step.
    pub step: Step,
    /// How often it was tried.
    pub tries: u32,
    /// When it was entered.
    pub began: Instant,
    /// How long it took; none while it is under way.
    pub took: Option<Duration>,
    /// What the last failed try ended with.
    pub error: Option<String>,
}

/// What a provider did or took back.
#[derive(Debug)]
struct Provided {
    name: String,
    tries: u32,
    began: Instant,
    took: Option<Duration>,
    error: Option<String>,
}

#[derive(Debug, Default)]
struct Progress {
    steps: Vec<StepProgress>,
    /// What providers did, and what was taken back.
    provided: Vec<Provided>,
    helper: Option<HelperRecord>,
}

/// A cycle's board; clones share it.
#[derive(Debug, Clone, Default)]
pub struct CycleBoard(Arc<Mutex<Progress>>);

impl CycleBoard {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cycle is in this step, in this try, at `now`; `error` is what its last failed try ended with.
    pub fn note(&self, step: Step, tries: u32, error: Option<&str>, now: Instant) {
        let mut progress = self.progress();
        match progress.steps.last_mut() {
            Some(last) if last.step == step && last.took.is_none() => {
                last.tries = tries;
                last.error = error.map(ToOwned::to_owned);
                return;
            }
            Some(last) => last.took = last.took.or_else(|| Some(now.duration_since(last.began))),
            None => {}
        }
        if progress.steps.len() < MAX_STEPS {
            let error = error.map(ToOwned::to_owned);
            progress.steps.push(StepProgress { step, tries, began: now, took: None, error });
        }
    }

    /// The current step has ended at `now`, and with it the cycle; `error` when it failed.
    pub fn close(&self, error: Option<&str>, now: Instant) {
        if let Some(last) = self.progress().steps.last_mut()
            && last.took.is_none()
        {
            last.took = Some(now.duration_since(last.began));
            last.error = error.map(ToOwned::to_owned).or_else(|| last.error.take());
        }
    }

    /// Something was written down of a provider's step.
    pub fn note_record(&self, record: &Record, now: Instant) {
        let (prefix, step, ended, error) = match record {
            Record::Sent { step, .. } => (STEP, step, false, None),
            Record::Ok { step, .. } => (STEP, step, true, None),
            Record::Failed { step, error, .. } => (STEP, step, true, Some(error)),
            Record::UndoSent { step, .. } => (UNDO, step, false, None),
            Record::Undone { step, .. } => (UNDO, step, true, None),
            Record::UndoFailed { step, error, .. } => (UNDO, step, true, Some(error)),
            Record::Began { .. } | Record::Skipped { .. } | Record::TakingBack { .. } | Record::Decided => {
                return;
            }
        };
        let name = format!("{prefix}{step}");
        let mut progress = self.progress();
        let is_full = progress.provided.len() >= MAX_PROVIDED;
        let known = progress.provided.iter_mut().rev().find(|provided| provided.name == name);
        match known {
            Some(known) => {
                known.tries += u32::from(!ended);
                known.took = ended.then(|| now.duration_since(known.began));
                known.error = error.cloned().or_else(|| known.error.take());
            }
            None if !is_full => {
                let (tries, took) = (u32::from(!ended), ended.then_some(Duration::ZERO));
                progress.provided.push(Provided { name, tries, began: now, took, error: error.cloned() });
            }
            None => {}
        }
    }

    /// The helper has run.
    pub fn note_helper(&self, helper: Option<HelperRecord>) {
        self.progress().helper = helper;
    }

    /// The step under way.
    pub fn current(&self) -> Option<StepProgress> {
        self.progress().steps.last().filter(|last| last.took.is_none()).cloned()
    }

    /// The helper run.
    pub fn helper(&self) -> Option<HelperRecord> {
        self.progress().helper.clone()
    }

    /// All steps, as the journal keeps them; `wall_ms` is the wall clock at `now`.
    pub fn records(&self, now: Instant, wall_ms: i64) -> Vec<StepRecord> {
        let progress = self.progress();
        let record = |step: &StepProgress| StepRecord {
            step: step.step.name().to_owned(),
            tries: step.tries,
            began_ms: wall_ms.saturating_sub(signed_ms(now.duration_since(step.began))),
            took_ms: whole_ms(step.took.unwrap_or_else(|| now.duration_since(step.began))),
            error: step.error.clone(),
        };
        let provided = |step: &Provided| StepRecord {
            step: step.name.clone(),
            tries: step.tries,
            began_ms: wall_ms.saturating_sub(signed_ms(now.duration_since(step.began))),
            took_ms: whole_ms(step.took.unwrap_or_else(|| now.duration_since(step.began))),
            error: step.error.clone(),
        };
        let mut records: Vec<StepRecord> = progress.steps.iter().map(record).collect();
        if !progress.provided.is_empty() {
            records.extend(progress.provided.iter().map(provided));
            records.sort_by_key(|record| record.began_ms);
        }
        records
    }
}

fn signed_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
