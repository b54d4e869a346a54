//! What the pages are made of.

use std::fmt;
use std::sync::Arc;

use quartermaster_actors::control::RunStateReceiver;
use quartermaster_actors::metrics::MetricsHandle;

use super::desk::Desk;
use super::guard::AccessSettings;

/// Everything the listener needs.
#[derive(Clone)]
pub struct WebState {
    /// Renders the metrics.
    pub metrics: MetricsHandle,
    /// Answers everything else.
    pub desk: Arc<dyn Desk>,
    /// Wakes the live pages when it changes.
    pub run_state: RunStateReceiver,
    /// What is asked of visitors.
    pub access: AccessSettings,
}

impl fmt::Debug for WebState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebState").field("access", &self.access).finish_non_exhaustive()
    }
}
