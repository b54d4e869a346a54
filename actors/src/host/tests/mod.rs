//! The cycle as a conversation with a made-up host.
mod cases;
mod resuming;
mod world;
