//! Programs that are told of changes: units of the service manager, and commands.
mod command;
mod order;
mod runner;
mod shape;
mod systemctl;
mod systemd;

#[cfg(test)]
mod tests;

pub use command::Commands;
pub use order::in_order;
pub use runner::{Machine, Runner, Told};
pub use shape::Program;
