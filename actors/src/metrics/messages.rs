//! What can be asked of the metrics keeper.

use super::MetricsError;

/// A question: the Prometheus text of all series now.
#[derive(Debug, Clone, Copy, actix::Message)]
#[rtype(result = "Result<Vec<u8>, MetricsError>")]
pub struct RenderMetrics;
