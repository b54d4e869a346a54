//! Who is out there: broadcast discovery every interval and the servers' own startup events. The Discoverer only ever
//! says "seen"; what that means is the fleet's to decide.
//!
//! `plan.rs` decides when to look (pure), `event.rs` reads an event (pure), `actor.rs` acts.
mod actor;
mod event;
mod messages;
mod plan;
#[cfg(test)]
mod tests;

pub use actor::{Discoverer, DiscoverySettings, Look, LookPort, Seen, SeenSink};
pub use event::{EventRefused, Noted, read_event};
pub use messages::{EventArrived, LookAgain};
pub use plan::{Effect, Input, Plan};
