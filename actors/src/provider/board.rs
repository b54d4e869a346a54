//! What the runner shows of itself; read by anybody without asking the actor.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plan::Plan;
use super::settings::ProviderSettings;

/// The runner at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ProviderSnapshot {
    /// The provider's local name.
    pub name: String,
    /// What it calls itself; empty before its first start.
    pub provider: String,
    /// Its version, likewise.
    pub version: String,
    /// Processes that are ready for calls.
    pub ready: usize,
    /// Calls that wait for their turn.
    pub queued: usize,
    /// Calls that a process has in its hands.
    pub open: usize,
    /// How many processes were started.
    pub started: u64,
    /// Why it is not started at present, if it has failed.
    pub failure: Option<String>,
}

/// The writing and the reading side of the snapshot; it outlives the actor.
#[derive(Debug)]
pub(super) struct Board {
    state: Mutex<ProviderSnapshot>,
}

impl Board {
    pub(super) fn new(settings: &ProviderSettings) -> Self {
        let name = settings.name.clone();
        Self { state: Mutex::new(ProviderSnapshot { name, ..ProviderSnapshot::default() }) }
    }

    pub(super) fn snapshot(&self) -> ProviderSnapshot {
        self.lock().clone()
    }

    pub(super) fn show(&self, plan: &Plan) {
        let mut state = self.lock();
        state.ready = plan.ready();
        state.queued = plan.queued();
        state.open = plan.open();
        state.started = plan.started_processes();
        if let Some(schema) = plan.schema().filter(|_| state.provider.is_empty()) {
            state.provider.clone_from(&schema.name);
            state.version.clone_from(&schema.version);
        }
        let failure = plan.failure().map(|error| error.error.to_string());
        if state.failure != failure {
            state.failure = failure;
        }
    }

    /// The runner has gone, and with it everything it had in its hands.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.ready = 0;
        state.queued = 0;
        state.open = 0;
    }

    fn lock(&self) -> MutexGuard<'_, ProviderSnapshot> {
        // Each change leaves the state right, so a panic elsewhere spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
