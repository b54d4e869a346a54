//! The run state: a watch value that everybody reads before each step, on a lane that data cannot fill.

use std::sync::Arc;

/// Who paused this instance, when and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedBy {
    /// The operator, as they named themselves.
    pub who: String,
    /// Their reason.
    pub why: String,
    /// Since when, Unix seconds.
    pub since: i64,
}

/// Whether this instance may work. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunState {
    /// Set while an operator's pause is in force.
    pub paused: Option<Arc<PausedBy>>,
    /// False while another member of the cluster leads; always true without an election.
    pub leading: bool,
    /// True once a stop or drain was asked for: nothing new is admitted.
    pub draining: bool,
    /// True once what is in flight has had its time: no helper is started any more, whoever waits for one.
    pub ending: bool,
}

impl RunState {
    /// The state of a single instance that works.
    pub const fn working() -> Self {
        Self { paused: None, leading: true, draining: false, ending: false }
    }

    /// True while no helper, remote call or discovery may start: paused by an operator, or another member leads. (The
    /// peer calls both "paused", and so does the gauge `choria_provisioner_paused`.)
    pub const fn is_paused(&self) -> bool {
        self.paused.is_some() || !self.leading
    }

    /// True when a helper may be started.
    pub const fn starts_helpers(&self) -> bool {
        !self.is_paused() && !self.ending
    }

    /// True when a new host may be taken on.
    pub const fn admits(&self) -> bool {
        !self.is_paused() && !self.draining
    }
}

/// The reading end of the run state.
pub type RunStateReceiver = tokio::sync::watch::Receiver<RunState>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_counts_as_paused_but_a_draining_instance_finishes_its_steps() {
        let standby = RunState { leading: false, ..RunState::working() };
        assert!(standby.is_paused() && !standby.admits());
        let draining = RunState { draining: true, ..RunState::working() };
        assert!(!draining.is_paused() && !draining.admits() && draining.starts_helpers());
        let ending = RunState { ending: true, ..draining };
        assert!(!ending.is_paused() && !ending.admits() && !ending.starts_helpers());
    }
}
