//! `quartermaster check`: every fault of the configuration at once, for people and for machines.

mod command;
mod examine;
mod render;
mod schema;
mod steps;
mod web;

pub use command::{CheckArgs, Connect, load_and_examine, run};
pub use examine::examine;
pub use render::{Style, render};
pub use schema::examine_schema;
