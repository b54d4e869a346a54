//! Providers that are part of this program: each is an actor that takes the four messages of a provider's process.
//!
//! [`Builtin`] lists them, `work.rs` says what one has to do, [`serve()`] carries the messages over a pair of streams: the runner of a
//! provider speaks to a builtin as it speaks to a process, and `quartermaster provider builtin` serves it to any other host.
mod actor;
mod attrs;
mod catalog;
mod exec;
mod file;
mod folder;
mod handle;
mod messages;
mod serve;
mod work;

#[cfg(test)]
mod tests;

pub use actor::BuiltinProvider;
pub use catalog::Builtin;
pub use handle::BuiltinHandle;
pub use serve::{ServeError, serve};
pub use work::{Hands, Voice};
