//! `quartermaster plan`, `apply` and `undo`: steps of providers in a file of their own (docs/plan-apply-undo.md).
//!
//! In reading order: `read` makes a [`document`] of the text, `check` works it out with variables and schemas, `schedule` says what
//! runs when; all of that is pure. `record` is what is written down, `apply` and `undo` carry out.

mod check;
mod document;
mod fault;
mod graph;
mod read;
mod read_action;
mod schedule;
mod secrets;
mod variables;
mod world;

#[cfg(test)]
mod tests;
