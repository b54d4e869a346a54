//! How actors are owned, restarted and watched.
//!
//! Every actor has one owner. The owner holds a factory, a [`RestartPolicy`] and the record of past endings ([`Owned`]);
//! everybody else holds a [`Slot`], the name of a position that survives restarts. A field of type [`ExitNotice`] in the
//! child reports its end, panic included; a child that reports nothing any more is found by [`Ping`] and replaced.
//! The [`Overseer`] owns the actors of the whole process, and a [`Watchdog`] thread watches the overseer.
mod actor;
mod cause;
#[cfg(feature = "testing")]
mod endings;
mod handle;
mod messages;
mod notice;
mod owned;
mod policy;
mod pulse;
mod slot;
mod snapshot;
mod watchdog;

#[cfg(test)]
mod tests;

pub use actor::{Observer, Overseer, OverseerSettings};
pub use cause::ExitCause;
#[cfg(feature = "testing")]
pub use endings::{Ending, Force, force, release_blocked_threads};
pub use handle::OverseerHandle;
pub use messages::{ChildExited, Ping, Stop};
pub use notice::{ChildId, ExitNotice};
pub use owned::{ArbiterChoice, Birth, Ended, Owned, PingOutcome, Ward};
pub use policy::{Decision, History, PolicyError, RestartPolicy};
pub use pulse::{Liveness, Pulse, RestartPermit, RestartPool};
pub use slot::{AskError, SendRefused, Slot};
pub use snapshot::{ActorEnding, ChildSnapshot, ChildState, SupervisionSnapshot};
pub use watchdog::{Fatal, Vital, Watchdog};
