//! The cycle as a conversation with a made-up host.
mod cases;
mod late;
mod resuming;
mod world;
