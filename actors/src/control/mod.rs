//! Control: whether this instance may work at all right now. The Controller is the one writer of the run state.
mod actor;
mod handle;
mod messages;
mod state;
mod until;

pub use actor::Controller;
pub use handle::ControlHandle;
pub use messages::{DrainFleet, EndFleet, LeadershipChanged, PauseFleet, ResumeFleet};
pub use state::{PausedBy, RunState, RunStateReceiver};
pub use until::LeadingUntil;
