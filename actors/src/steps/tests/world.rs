//! A provider's world in memory, a journal, and a process that can be ended at any point between the two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use quartermaster_proto::provider::{
    ErrorCode, Executed, Found, HostCode, Invocation, Members, ProviderError, Value,
};

use super::super::*;
use crate::provider::{CallError, Outcome};

/// What the provider of a world can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skill {
    /// It can be asked what became of a key.
    Lookup,
    /// Its actions are safe to repeat.
    Idempotent,
    /// Neither.
    Plain,
}

/// The process ended here.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut;

pub struct World {
    pub skill: Skill,
    /// What exists: the key of the step that made it, and how often it was made.
    pub things: BTreeMap<String, usize>,
    /// Every effect in its order: `+key` and `-key`.
    pub log: Vec<String>,
    pub journal: Vec<Record>,
    /// Points passed, and the one at which the process ends.
    pub passed: usize,
    pub cut: Option<usize>,
    /// Undos answer `unavailable` this often.
    pub broken_undos: usize,
}

pub fn specs(names: &[&str]) -> Arc<[StepSpec]> {
    let spec = |name: &&str| StepSpec {
        name: (*name).to_owned(),
        provider: "p".to_owned(),
        action: "make".to_owned(),
        attrs: Template::read(&Value::empty()).unwrap(),
        when: None,
        timeout: None,
        tries: 1,
        ignore_failure: false,
    };
    names.iter().map(spec).collect()
}

impl World {
    pub fn new(skill: Skill) -> Self {
        Self {
            skill,
            things: BTreeMap::new(),
            log: Vec::new(),
            journal: Vec::new(),
            passed: 0,
            cut: None,
            broken_undos: 0,
        }
    }

    fn point(&mut self) -> Result<(), Cut> {
        self.passed += 1;
        if self.cut == Some(self.passed) { Err(Cut) } else { Ok(()) }
    }

    pub fn ledger(&self) -> Ledger {
        // What is read again went through text.
        let read = self.journal.iter().map(|record| {
            let (open, secret) = record.split();
            Record::join(&open, secret.as_ref().map(|secret| secret.as_str())).unwrap()
        });
        Ledger::of(&read.collect::<Vec<_>>())
    }

    fn drive<D>(&mut self, mut handle: impl FnMut(&Ledger, Input, At) -> Move<D>) -> Result<D, Cut> {
        let mut ledger = self.ledger();
        let mut input = Input::Begin;
        let at = At { now: Instant::now(), wall_ms: 1, luck: 0.5, stop: false };
        for _ in 0..1_000 {
            input = match handle(&ledger, input, at) {
                Move::Write(record) => {
                    self.point()?;
                    ledger.apply(&record);
                    self.journal.push(record);
                    self.point()?;
                    Input::Written
                }
                Move::Execute(call) => {
                    let answer = self.execute(&call);
                    self.point()?;
                    Input::Answered(answer)
                }
                Move::Lookup { key, .. } => Input::Found(self.lookup(&key)),
                Move::AskRepeatable { .. } => Input::Repeatable(Ok(self.skill == Skill::Idempotent)),
                Move::Wait(_) => {
                    self.point()?;
                    Input::Due
                }
                Move::Done(done) => return Ok(done),
            };
        }
        panic!("it does not end: {:?}", self.log);
    }

    /// What stands for this key: `r/a` for a step and for the calls that take it back.
    fn thing(key: &str) -> String {
        key.split("/undo/").next().unwrap().to_owned()
    }

    fn execute(&mut self, call: &StepCall) -> Result<Executed, CallError> {
        let thing = Self::thing(&call.key);
        if call.action == "make" {
            if thing.ends_with("/fails") {
                return Err(CallError::answered(ProviderError::new(ErrorCode::Denied, "no")));
            }
            assert!(call.undo, "an undo is asked for");
            let made = self.things.entry(thing.clone()).or_default();
            let again = *made > 0;
            if !(again && self.skill == Skill::Idempotent) {
                *made += 1;
                self.log.push(format!("+{thing}"));
            }
            let attrs: Members = [("id".to_owned(), Value::from(thing.as_str()))].into();
            let drop = |action: &str| Invocation { action: action.to_owned(), attrs: attrs.clone() };
            let undo =
                if thing.ends_with("/two") { vec![drop("half"), drop("drop")] } else { vec![drop("drop")] };
            return Ok(Executed { outputs: attrs.clone(), undo });
        }
        assert!(!call.undo && call.attrs["id"].as_str() == Some(&thing));
        if self.broken_undos > 0 {
            self.broken_undos -= 1;
            return Err(CallError::answered(ProviderError::new(ErrorCode::Unavailable, "later")));
        }
        if call.action == "half" {
            self.log.push(format!("~{thing}"));
            return Ok(Executed::default());
        }
        match self.things.remove(&thing) {
            Some(_) => {
                self.log.push(format!("-{thing}"));
                Ok(Executed::default())
            }
            None => Err(CallError::answered(ProviderError::new(ErrorCode::NotFound, "gone"))),
        }
    }

    fn lookup(&self, key: &str) -> Result<Found, CallError> {
        if self.skill != Skill::Lookup {
            return Err(CallError::refused(ErrorCode::UnknownMethod, "no such method"));
        }
        let thing = Self::thing(key);
        if key != thing {
            // Of a call that takes back: it was done if the thing is gone.
            let half = key.ends_with("/two/undo/0");
            let done = if half {
                self.log.contains(&format!("~{thing}"))
            } else {
                !self.things.contains_key(&thing)
            };
            return Ok(if done { Found::Done(Executed::default()) } else { Found::Absent });
        }
        if !self.things.contains_key(&thing) {
            return Ok(Found::Absent);
        }
        let attrs: Members = [("id".to_owned(), Value::from(thing.as_str()))].into();
        let drop = |action: &str| Invocation { action: action.to_owned(), attrs: attrs.clone() };
        let undo =
            if thing.ends_with("/two") { vec![drop("half"), drop("drop")] } else { vec![drop("drop")] };
        Ok(Found::Done(Executed { outputs: attrs.clone(), undo }))
    }

    /// One life: the steps, and when one fails, everything taken back.
    pub fn live(&mut self, names: &[&str]) -> Result<(Ended, Option<Taken>), Cut> {
        self.point()?;
        self.journal.push(Record::Began { run: "r".to_owned(), scope: Some(Members::new()) });
        self.point()?;
        let mut forward = Forward::new(specs(names), Members::new());
        let ended = self.drive(|ledger, input, at| forward.handle(ledger, input, at))?;
        let taken = if ended == Ended::AllDone { None } else { Some(self.take_back()?) };
        Ok((ended, taken))
    }

    pub fn take_back(&mut self) -> Result<Taken, Cut> {
        let mut walk = Walk::new("a test".to_owned(), 3);
        self.drive(|ledger, input, at| walk.handle(ledger, input, at))
    }

    /// The life after one that was cut off.
    pub fn recover(&mut self) -> Result<Taken, Cut> {
        self.cut = None;
        self.take_back()
    }
}

/// An error after which nobody knows.
pub fn lost() -> CallError {
    CallError::host(Outcome::Unknown, HostCode::Exited, "it ended")
}
