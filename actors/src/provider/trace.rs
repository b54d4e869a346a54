//! Every frame that passes, for whoever looks for a fault (provider.md F21).

use std::sync::Arc;
use std::time::Duration;

use super::effect::ProcessId;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLine {
    /// Since the runner's start.
    pub at: Duration,
    /// Whose it is.
    pub process: ProcessId,
    /// True when we wrote it.
    pub ours: bool,
    /// The frame, without its end; secrets are covered.
    pub frame: String,
}

/// Where frames go. Called on the runner's thread; must not block for long.
pub type TraceSink = Arc<dyn Fn(TraceLine) + Send + Sync>;
