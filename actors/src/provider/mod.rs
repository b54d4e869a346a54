//! Hosts providers: long-lived child processes that answer JSON Lines, one [`ProviderRunner`] for each.
//!
//! `plan.rs` decides over a provider's queue and processes, `conversation` over what is said with one of them; `process.rs` and
//! `actor.rs` do it. [`probe()`] asks a program for its schema without more. What the frames look like is
//! [`quartermaster_proto::provider`]'s.
mod actor;
mod board;
mod conversation;
mod describe;
mod effect;
mod environment;
mod error;
mod fact;
mod frames;
mod handle;
mod inside;
mod masks;
mod messages;
mod open;
mod pin;
mod plan;
mod probe;
mod process;
mod relay;
mod settings;
mod stderr;
mod trace;

#[cfg(test)]
mod tests;

pub use actor::{ProviderParts, ProviderRunner};
pub use board::ProviderSnapshot;
pub use describe::probe_by_describe;
pub use effect::{Note, ProcessId};
pub use environment::{CLEAN, EnvironmentRules, Inherit, environment};
pub use error::{CallError, Outcome};
pub use fact::{CallEnded, Happening, Load, ProviderFact, ProviderSink};
pub use handle::ProviderHandle;
pub use messages::{Action, Answer, Ask, Call, ProgressSink, Relayed};
pub use pin::{Digest, Policy, Trust, TrustError, digest};
pub use probe::{Probed, SchemaOnly, probe};
pub use process::command;
pub use settings::{
    Compat, DEFAULT_IN_FLIGHT, DEFAULT_MAX_FRAME, DEFAULT_QUEUE, ProviderSettings, Restart, Timeouts,
};
pub use stderr::Said;
pub use trace::{TraceLine, TraceSink};
