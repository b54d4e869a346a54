//! One host's provisioning cycle: `steps.rs` is the table of steps, `plan.rs` decides what comes next (pure), `actor.rs`
//! carries it out.
mod actor;
mod board;
mod error;
mod messages;
mod plan;
mod ports;
mod providing;
mod resume;
mod steps;
mod terms;
#[cfg(test)]
mod tests;

pub use actor::{HostProvisioner, HostSettings};
pub use board::{CycleBoard, StepProgress};
pub use error::{HostError, STEP_UNKNOWN};
pub use messages::{CycleStopAsked, Ending, HostAnswered, HostFinished, HostSilent, Kept};
pub use plan::Plan;
pub use ports::{
    Answer, Boxed, ClaimEnd, ClaimPort, ClaimedHost, CommitPort, HelperAnswer, HelperPort, HostCall,
    JournalPort, LinkPort, StepIntent, Tools, VaultPort,
};
pub use resume::{Material, Resume};
pub use steps::{Features, STEPS, Step, StepSpec};
pub use terms::{At, CallFailure, Effect, HelperFailure, Input, PlanSettings, SealedForHost, SiteSteps};
