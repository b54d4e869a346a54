//! Steps that providers do for a run, and how they are taken back when it fails.
//!
//! `record.rs` is what is written down, `ledger.rs` its fold, `call.rs` the tries of one call and the settling of one whose outcome
//! is not known, `forward.rs` does them one after the other, `walk.rs` takes everything back, newest first, and `expression` is how
//! their values are written. All of that is pure and knows neither hosts nor files; `desk.rs` carries it out.
mod call;
mod desk;
mod expression;
mod forward;
mod going;
mod ledger;
mod log;
mod port;
mod record;
mod retry;
mod scope;
#[cfg(test)]
mod tests;
mod walk;

pub use call::{CallEnd, Input, Kind};
pub use desk::{Desk, Stops, Told, WriteRecord};
pub use expression::{EvalError, Evaluated, Scope, Template, TypeScope};
pub use forward::{Ended, Forward, StepSpec};
pub use going::{About, At, Going, Move, Step, StepCall};
pub use ledger::{Entry, EntryState, Ledger, Left, LeftWhy, UndoEntry, UndoState, Undos};
pub use log::StepLog;
pub use port::{Boxed, Providers, StepPort};
pub use record::Record;
pub use retry::Retry;
pub use scope::{mask, pruned};
pub use walk::{Taken, Walk};
