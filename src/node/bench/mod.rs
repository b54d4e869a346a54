//! `quartermaster node bench`: broker, vault, engine and client of one machine with many modules, each a process of its own,
//! measured.

mod figures;
mod measure;
mod scene;
mod verb;

pub use verb::{NodeBenchArgs, bench};
