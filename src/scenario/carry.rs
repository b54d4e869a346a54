//! Carries out what the plans of steps ask for: writes, calls, waits.

use std::time::{Duration, Instant};

use quartermaster_actors::provider::{CallError, Outcome};
use quartermaster_actors::steps::{At, Input, Move, Record, StepCall, Taken, Walk};
use quartermaster_proto::provider::{HostCode, Value};
use tokio::sync::mpsc;

use super::event::Event;
use super::hosts::{Hosts, PROGRESS, masked_error};
use super::record::{Keeper, KeeperError, Line};
use super::reporter::Reporter;
use super::secrets::Secrets;
use super::stop::Stop;

/// How often a call that takes something back is made.
pub const UNDO_TRIES: u32 = 3;

/// Everything that is needed to carry something out.
#[derive(Debug, Clone, Copy)]
pub struct Carrier<'a> {
    /// The providers.
    pub hosts: &'a Hosts,
    /// The record.
    pub keeper: &'a Keeper,
    /// Where it is shown.
    pub reporter: &'a Reporter,
    /// What must not be shown.
    pub secrets: &'a Secrets,
}

impl Carrier<'_> {
    /// Does what is asked for and says what came of it; none when it is over.
    pub async fn perform<D>(&self, go: Move<D>, stop: &Stop) -> Result<Result<Input, D>, KeeperError> {
        let input = match go {
            Move::Done(done) => return Ok(Err(done)),
            Move::Write(record) => {
                self.keeper.write(&Line::Step(record, Vec::new())).await?;
                Input::Written
            }
            Move::Execute(call) => Input::Answered(self.execute(call, stop).await),
            Move::Lookup { provider, key } => {
                let found = self.hosts.lookup(&provider, &key).await;
                Input::Found(found.map_err(|error| masked_error(error, self.secrets)))
            }
            Move::AskRepeatable { .. } if stop.asked().is_some() => Input::Repeatable(Err(called_off())),
            Move::AskRepeatable { provider, action } => {
                let answer = self.hosts.is_repeatable(&provider, &action).await;
                Input::Repeatable(answer.map_err(|error| masked_error(error, self.secrets)))
            }
            Move::Wait(wait) => {
                wait_or_stop(wait, stop).await;
                Input::Due
            }
        };
        Ok(Ok(input))
    }

    /// Makes a call, showing how far it is.
    async fn execute(
        &self,
        call: StepCall,
        stop: &Stop,
    ) -> Result<quartermaster_proto::provider::Executed, CallError> {
        let whose = call.step.clone();
        let (sender, mut receiver) = mpsc::channel(PROGRESS);
        let mut called = std::pin::pin!(self.hosts.execute(call, Some(sender), stop));
        loop {
            tokio::select! {
                answer = &mut called => return answer.map_err(|error| masked_error(error, self.secrets)),
                Some(progress) = receiver.recv() => {
                    let number = |number: Option<quartermaster_proto::provider::Number>| number.and_then(|n| n.as_u64());
                    self.reporter.say(&Event::Progress {
                        step: whose.clone(),
                        done: number(progress.done),
                        total: number(progress.total),
                        message: progress.message,
                    });
                }
            }
        }
    }

    /// Takes back everything that the record says was done, newest first.
    pub async fn take_back(&self, why: &str, stop: &Stop) -> Result<Taken, KeeperError> {
        let mut walk = Walk::new(why.to_owned(), UNDO_TRIES);
        let mut input = Input::Begin;
        let mut began = Instant::now();
        loop {
            let ledger = self.keeper.ledger().await;
            let go = walk.handle(&ledger, input, at(stop));
            if let Move::Write(record) = &go {
                self.show_undo(record, &mut began, &ledger);
            }
            let go = match go {
                Move::Write(record @ Record::Undone { .. }) => {
                    let ms = Value::from(ms_since(began));
                    self.keeper.write(&Line::Step(record, vec![("ms", ms)])).await?;
                    input = Input::Written;
                    continue;
                }
                go => go,
            };
            match self.perform(go, stop).await? {
                Ok(next) => input = next,
                Err(taken) => return Ok(taken),
            }
        }
    }

    fn show_undo(&self, record: &Record, began: &mut Instant, ledger: &quartermaster_actors::steps::Ledger) {
        let event = match record {
            Record::TakingBack { why } => Event::Undoing(why.clone()),
            Record::UndoSent { step, index, .. } => {
                *began = Instant::now();
                let action =
                    ledger.entry(step).and_then(|entry| action_of(entry, *index)).unwrap_or_default();
                Event::UndoBegun { step: step.clone(), action }
            }
            Record::Undone { step, .. } => Event::Undone { step: step.clone(), ms: ms_since(*began) },
            Record::UndoFailed { step, error, .. } => {
                Event::UndoFailed { step: step.clone(), error: error.clone() }
            }
            _ => return,
        };
        self.reporter.say(&event);
    }
}

fn action_of(entry: &quartermaster_actors::steps::Entry, index: usize) -> Option<String> {
    use quartermaster_actors::steps::EntryState;
    match &entry.state {
        EntryState::Done(_, undos) | EntryState::Failed { undo: undos, .. } => {
            undos.as_ref()?.get(index).map(|undo| undo.call.action.clone())
        }
        EntryState::Sent => None,
    }
}

/// The circumstances of this moment.
pub fn at(stop: &Stop) -> At {
    At {
        now: Instant::now(),
        wall_ms: crate::clock::now().nanos() / 1_000_000,
        luck: rand::random(),
        stop: stop.asked().is_some(),
    }
}

/// Whole milliseconds since then.
pub fn ms_since(then: Instant) -> u64 {
    quartermaster_proto::time::whole_ms(then.elapsed())
}

async fn wait_or_stop(wait: Duration, stop: &Stop) {
    tokio::select! {
        () = tokio::time::sleep(wait) => {}
        () = stop.wait() => {}
    }
}

fn called_off() -> CallError {
    CallError::host(Outcome::NotSent, HostCode::Closed, "it was called off")
}
