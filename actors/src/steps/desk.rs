//! Carries out what the pure part decides for one host's steps, and nothing else.

use std::sync::Arc;

use quartermaster_proto::provider::Mask;
use rand::RngExt as _;
use tokio::time::Instant;

use super::call::Input;
use super::going::{At, Move};
use super::ledger::Ledger;
use super::log::StepLog;
use super::port::{Boxed, StepPort};
use super::record::Record;

/// Writes a record where it survives; ends when it is on the disk, or when there is none.
pub type WriteRecord = Arc<dyn Fn(Record) -> Boxed<()> + Send + Sync>;
/// Asked before anything new is begun.
pub type Stops = Arc<dyn Fn() -> bool + Send + Sync>;
/// Told of every record, once it is written.
pub type Told = Arc<dyn Fn(&Record, &Ledger) + Send + Sync>;

/// What the steps of one cycle are done with.
#[derive(Clone)]
pub struct Desk {
    /// The providers.
    pub port: Arc<dyn StepPort>,
    /// The host's ledger.
    pub log: StepLog,
    /// The cycle, which must be the log's owner.
    pub owner: u64,
    /// The journal.
    pub write: WriteRecord,
    /// Whether nothing new is to be begun.
    pub stops: Stops,
    /// Who hears of records.
    pub told: Told,
    /// What no error may show.
    pub mask: Mask,
    /// The wall clock, Unix milliseconds.
    pub wall_ms: fn() -> i64,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Desk {
    /// Writes a record down; false when the log is another cycle's by now, and nothing may be done any more.
    pub async fn write(&self, record: Record) -> bool {
        if !self.log.write(self.owner, &record) {
            return false;
        }
        (self.write)(record.clone()).await;
        self.log.look(|ledger| (self.told)(&record, ledger));
        self.log.is_of(self.owner)
    }

    /// Carries out every move until the last one; none when the log is another cycle's by now.
    pub async fn carry_out<D>(&self, mut handle: impl FnMut(&Ledger, Input, At) -> Move<D>) -> Option<D> {
        let mut input = Input::Begin;
        loop {
            let at = At {
                now: Instant::now().into_std(),
                wall_ms: (self.wall_ms)(),
                luck: rand::rng().random(),
                stop: (self.stops)(),
            };
            input = match self.log.look(|ledger| handle(ledger, input, at)) {
                Move::Write(record) => {
                    if !self.write(record).await {
                        return None;
                    }
                    Input::Written
                }
                Move::Execute(call) => {
                    let answer = self.port.execute(call).await;
                    Input::Answered(answer.map_err(|error| error.with_texts(|text| self.mask.text(text))))
                }
                Move::Lookup { provider, key } => {
                    let found = self.port.lookup(provider, key).await;
                    Input::Found(found.map_err(|error| error.with_texts(|text| self.mask.text(text))))
                }
                Move::AskRepeatable { provider, action } => {
                    Input::Repeatable(self.port.repeatable(provider, action).await)
                }
                Move::Wait(wait) => {
                    tokio::time::sleep(wait).await;
                    Input::Due
                }
                Move::Done(done) => return Some(done),
            };
        }
    }
}
