//! `quartermaster demo`: broker, fleet, helper and provisioner on this machine in one command, watched live and summed up.

mod child;
mod command;
mod scrape;
mod summary;
mod view;

pub use command::{Args, run};
