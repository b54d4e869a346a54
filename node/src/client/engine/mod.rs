//! The client's side of the engine's socket.

mod lane;
mod session;

pub use lane::{EngineLane, EngineSettings};

#[cfg(test)]
mod tests;
