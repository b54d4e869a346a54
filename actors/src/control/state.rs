//! The run state: a watch value that everybody reads before each step, on a lane that data cannot fill.

use std::sync::Arc;

use super::until::LeadingUntil;

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
    /// How long the lead lasts without being renewed; none without an election. Whoever reads the run state honours it, so
    /// that a process that was frozen does nothing on the strength of an old lead before anybody has told it.
    pub leading_until: Option<LeadingUntil>,
    /// True once a stop or drain was asked for: nothing new is admitted.
    pub draining: bool,
    /// True once what is in flight has had its time: no helper is started any more, whoever waits for one.
    pub ending: bool,
}

impl RunState {
    /// The state of a single instance that works.
    pub const fn working() -> Self {
        Self { paused: None, leading: true, leading_until: None, draining: false, ending: false }
    }

    /// True while no helper, remote call or discovery may start: paused by an operator, or another member leads. (The
    /// peer calls both "paused", and so does the gauge `choria_provisioner_paused`.)
    pub fn is_paused(&self) -> bool {
        self.paused.is_some() || !self.leading || self.has_lapsed()
    }

    /// True once the lead, won at some time, was not renewed for so long that another member may have it. Then nothing is
    /// sent, not even what a cycle between configure and restart has left to do.
    pub fn has_lapsed(&self) -> bool {
        self.leading_until.as_ref().is_some_and(LeadingUntil::has_passed)
    }

    /// True when a helper may be started.
    pub fn starts_helpers(&self) -> bool {
        !self.is_paused() && !self.ending
    }

    /// True when a host that was left between configure and restart may be finished: it is nothing new, so an operator's
    /// pause does not keep it there.
    pub fn finishes(&self) -> bool {
        self.leading && !self.has_lapsed() && !self.draining
    }

    /// True when a new host may be taken on.
    pub fn admits(&self) -> bool {
        !self.is_paused() && !self.draining
    }
}

/// The reading end of the run state.
pub type RunStateReceiver = tokio::sync::watch::Receiver<RunState>;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

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

    #[tokio::test(start_paused = true)]
    async fn a_lead_that_nobody_renews_ends_by_itself() {
        let until = LeadingUntil::new();
        let leader = RunState { leading_until: Some(until.clone()), ..RunState::working() };
        assert!(leader.is_paused(), "it was never won");
        until.extend(Instant::now() + Duration::from_secs(45));
        assert!(!leader.is_paused() && leader.admits());
        tokio::time::advance(Duration::from_secs(44)).await;
        assert!(!leader.has_lapsed());
        until.extend(Instant::now() + Duration::from_secs(45));
        tokio::time::advance(Duration::from_secs(44)).await;
        assert!(!leader.has_lapsed());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(leader.has_lapsed() && !leader.admits() && !leader.starts_helpers());
    }
}
