//! One leader among several instances, through the peer's own election (choria.md 7): whoever keeps writing one key of a
//! bucket leads. Instances of the peer may take part in the same election.
mod actor;
mod handle;
mod messages;
mod plan;

#[cfg(test)]
mod tests;

#[cfg(test)]
use actor::wait_for;
pub use actor::{Elector, ElectorSettings, LeadSink};
pub use handle::ElectionHandle;
pub use messages::{ElectionSnapshot, ElectionState};
