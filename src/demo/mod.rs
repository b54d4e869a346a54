//! `quartermaster demo`: broker, fleet, helper and provisioner on this machine in one command, watched live and summed up.

mod command;
mod summary;

pub use command::{Args, run};
