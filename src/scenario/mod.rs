//! `quartermaster plan`, `apply` and `undo`: steps of providers in a file of their own (docs/plan-apply-undo.md).
//!
//! In reading order: `read` makes a document of the text, `check` works it out with variables and schemas, `schedule` says what
//! runs when; all of that is pure. `record` is what is written down, `apply` and `undo` carry out.

mod arguments;
mod carry;
mod check;
mod document;
mod event;
mod fault;
mod graph;
mod hosts;
mod prepare;
mod read;
mod read_action;
mod record;
mod reporter;
mod running;
mod schedule;
mod secrets;
mod show;
mod sources;
mod stop;
mod variables;
mod verb_apply;
mod verb_plan;
mod verb_undo;
mod world;

pub use verb_apply::{ApplyArgs, run as apply};
pub use verb_plan::{PlanArgs, run as plan};
pub use verb_undo::{UndoArgs, run as undo};

#[cfg(test)]
mod tests;
