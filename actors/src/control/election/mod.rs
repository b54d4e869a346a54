//! One leader among several instances, through the peer's own election (choria.md 7): whoever keeps writing one key of a
//! bucket leads. Instances of the peer may take part in the same election.
mod actor;
mod plan;

#[cfg(test)]
mod tests;

pub use actor::{Elector, ElectorSettings, LeadSink};
pub use plan::{Ask, ElectionPlan, ElectionState, Input, Step};
