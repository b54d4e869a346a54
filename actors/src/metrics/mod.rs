//! What happened, as typed facts; each becomes its log line and its metric in one place.
//!
//! Anybody may hold a [`Recorder`] and record a [`Fact`]; the numbers are atomics in it, so recording never waits and
//! nothing is lost when an actor restarts. The [`MetricsKeeper`] only renders them.
mod actor;
mod claims;
mod election;
mod fact;
mod handle;
mod keeping;
mod labels;
mod messages;
mod process;
mod providers;
mod rate;
mod recorder;
mod steps;
mod store;
mod summary;

pub use actor::MetricsKeeper;
pub use fact::{Fact, Found, HelperOutcome};
pub use handle::{MetricsHandle, RenderError};
pub use labels::{ACTORS, CYCLE_ENDS, EXIT_CAUSES, LANES, OTHER, RPCS, STEP_RESULTS};
pub use messages::RenderMetrics;
#[cfg(feature = "testing")]
pub use recorder::FactLog;
pub use recorder::Recorder;
pub use steps::{StepFact, StepNews};
pub use store::MetricsError;
