//! The roster of hosts and who may be provisioned when: the FleetKeeper.
//!
//! `roster.rs` decides (pure), `actor.rs` acts: it starts one HostProvisioner per admitted host and owns it.
mod actor;
mod answers;
mod cycles;
mod entry;
mod handle;
mod messages;
#[cfg(test)]
mod operator_tests;
#[cfg(test)]
mod provided_tests;
#[cfg(test)]
mod restore_tests;
mod retry;
mod roster;
mod terms;
#[cfg(test)]
mod tests;
mod thread;
mod view;

pub use actor::{FleetKeeper, FleetSettings, HOST_PING_EVERY, Shelf};
pub use entry::{Entry, Failure, Phase, State};
pub use handle::FleetHandle;
#[cfg(feature = "testing")]
pub use messages::ForceHosts;
pub use messages::{
    EndCycles, FleetSnapshot, ForgetHost, HostNoticed, ObserveHost, ObserveHosts, ObserveOverview,
    ObserveTroubled, RetryHost, RunningAttempt,
};
pub use retry::{RetryError, RetryPolicy};
pub use roster::{Clocks, Roster};
pub use terms::{Admission, Counts, Noticed, Passed, RosterSettings, Sighting, Verdict};
pub use view::{
    FailureView, FleetOverview, Forgot, HostPage, HostQuery, HostView, MAX_PAGE, OldestWaiting, SlowestStep,
};
