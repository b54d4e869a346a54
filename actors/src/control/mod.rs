//! Control: whether this instance may work at all right now.
mod state;

pub use state::{PausedBy, RunState, RunStateReceiver};
