//! The cycle as a conversation with a made-up host.
mod cases;
mod late;
mod providing;
mod resuming;
mod world;
