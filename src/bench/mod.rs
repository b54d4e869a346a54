//! `quartermaster bench`: broker, fleet and provisioner on this machine, each a process of its own; measured, summed up,
//! and compared with another provisioner.

mod args;
mod chart;
mod command;
mod contender;
mod figures;
mod latency;
mod machine;
mod measure;
mod probe;
mod provide;
mod ratio;
mod report;
mod setting;
mod sign;
mod soak;
mod sweep;

pub use args::Args;
pub use command::run;
