//! One leader among several instances, through the peer's own election (choria.md 7): whoever keeps writing one key of a
//! bucket leads. Instances of the peer may take part in the same election. A leader that stops tells the others of ours which
//! write to go on from, so that one of them leads without waiting for the key to expire.
mod actor;
mod handle;
mod messages;
mod plan;
mod sight;

#[cfg(test)]
mod tests;

#[cfg(test)]
use actor::wait_for;
pub use actor::{Elector, ElectorSettings, LeadSink};
pub use handle::ElectionHandle;
pub use messages::{ElectionSnapshot, ElectionState};
pub use sight::KnownLeader;
