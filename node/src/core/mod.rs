//! One module's life, decided in plain code: an event and the time go in, effects come out. It knows no clock, no channel and
//! no socket; whoever holds it carries out the effects and brings the events.
//!
//! Unplanned → Fetching → Gathering → Writing → Applied, with Failed beside them; docs/node.md says what each means.

mod content;
mod digest;
mod event;
mod gather;
mod module;
mod reports;
mod settle;
mod writing;

pub use digest::DigestKey;
pub use event::{
    ArchiveState, Assigned, ConsumerRef, Effect, EngineAnswer, Event, Found, Moment, Note, RegistryView,
    Stored, Timer,
};
pub use module::{ModuleCore, ModuleSettings, State};

#[cfg(test)]
mod tests;
