//! What the pages read.

use quartermaster_actors::metrics::MetricsHandle;

use crate::operate::Operator;

/// Handles that answer at once.
#[derive(Debug, Clone)]
pub struct WebState {
    /// Renders the metrics.
    pub metrics: MetricsHandle,
    /// Everything else.
    pub operator: Operator,
}
