//! What the web server holds of the metrics keeper.

use std::time::Duration;

use crate::supervise::{AskError, Slot};

use super::{MetricsError, MetricsKeeper, RenderMetrics};

/// Renderings that may be waited for at once; scrapers beyond that are refused.
const MAX_RENDERINGS: usize = 8;
/// How long a rendering is waited for.
const RENDER_DEADLINE: Duration = Duration::from_secs(5);
/// How long a keeper that is just starting, or starting again, is waited for: a scrape that meets it there is no gap in a graph.
const START_DEADLINE: Duration = Duration::from_secs(2);

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The keeper did not answer.
    #[error("could not ask for the metrics")]
    Ask(#[from] AskError),
    /// The keeper could not render.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

/// A handle to the metrics keeper; clones are equal and survive its restarts.
#[derive(Debug, Clone)]
pub struct MetricsHandle {
    slot: Slot<MetricsKeeper>,
}

impl MetricsHandle {
    /// A handle whose position is still empty.
    pub fn new() -> Self {
        Self { slot: Slot::new("metrics", MAX_RENDERINGS) }
    }

    /// The position, for its owner.
    pub const fn slot(&self) -> &Slot<MetricsKeeper> {
        &self.slot
    }

    /// The Prometheus text of all series now; waits for it a few seconds at most.
    pub async fn render(&self) -> Result<Vec<u8>, RenderError> {
        // Whether it came up is said by the question itself.
        self.slot.up(START_DEADLINE).await;
        Ok(self.slot.ask(RenderMetrics, RENDER_DEADLINE).await??)
    }
}

impl Default for MetricsHandle {
    fn default() -> Self {
        Self::new()
    }
}
