//! What the pages read.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quartermaster_actors::control::{RunState, RunStateReceiver};
use quartermaster_actors::link::LinkSnapshot;
use quartermaster_actors::metrics::MetricsHandle;
use quartermaster_actors::supervise::OverseerHandle;

use super::views::{
    FleetView, HealthView, ReadyView, StatusView, actor_view, link_view, readiness, run_state_view,
};

/// An overseer silent for longer than this is not live. It beats every few seconds; the watchdog's patience is longer.
const SILENT_LIMIT: Duration = Duration::from_secs(30);

/// Handles and closures, all of which answer at once.
#[derive(Clone)]
pub struct WebState {
    /// Renders the metrics.
    pub metrics: MetricsHandle,
    /// The state of every actor, and signs of life.
    pub overseer: OverseerHandle,
    /// Paused, leading, draining.
    pub run_state: RunStateReceiver,
    /// The link now.
    pub link: Arc<dyn Fn() -> LinkSnapshot + Send + Sync>,
    /// The fleet now.
    pub fleet: Arc<dyn Fn() -> FleetView + Send + Sync>,
    /// When the instance started.
    pub started: Instant,
}

impl fmt::Debug for WebState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebState").field("overseer", &self.overseer).finish_non_exhaustive()
    }
}

impl WebState {
    fn run_state(&self) -> RunState {
        self.run_state.borrow().clone()
    }

    /// Live: the overseer makes progress and nothing has ended for good.
    pub(super) fn health(&self) -> HealthView {
        let vital = self.overseer.vital();
        let silent = vital.silent_for();
        let mut reasons = Vec::new();
        if let Some(fatal) = vital.fatal() {
            reasons.push(fatal.to_string());
        }
        if silent > SILENT_LIMIT {
            reasons.push(format!("the overseer has made no progress for {} s", silent.as_secs()));
        }
        HealthView { live: reasons.is_empty(), reasons }
    }

    /// Ready: live, connected, not draining; as leader, on standby or paused.
    pub(super) fn ready(&self) -> ReadyView {
        readiness(&self.health(), &self.run_state(), &(self.link)().state)
    }

    /// Everything.
    pub(super) fn status(&self) -> StatusView {
        StatusView {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: self.started.elapsed().as_secs(),
            ready: self.ready(),
            run_state: run_state_view(&self.run_state()),
            link: link_view((self.link)()),
            fleet: (self.fleet)(),
            actors: self.overseer.snapshot().children.into_iter().map(actor_view).collect(),
        }
    }
}
