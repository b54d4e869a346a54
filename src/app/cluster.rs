//! Several instances beside each other: what a cluster adds to the wiring.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::control::{ControlHandle, Controller, LeadershipChanged, LeadingUntil};
use quartermaster_actors::election::{ElectionHandle, ElectorSettings};
use quartermaster_actors::link::LinkHandle;
use quartermaster_actors::metrics::Recorder;
use quartermaster_actors::supervise::{Owned, RestartPolicy, Slot, Ward};

use crate::config::Config;
use crate::operate::{ClusterView, election_view};

/// Takes part in the election; the Controller is told who leads.
pub fn election(
    config: &Config,
    link: &LinkHandle,
    control: &ControlHandle,
    leadership: Slot<Controller>,
    until: LeadingUntil,
    recorder: Recorder,
) -> ElectionHandle {
    let lead = Arc::new(move |leading| {
        if let Err(refused) = leadership.try_send(LeadershipChanged { leading }) {
            tracing::warn!("leadership could not be announced: {refused}");
        }
    });
    let identity = config.identity.as_str();
    ElectionHandle::new(ElectorSettings::peer(
        identity,
        link.clone(),
        control.subscribe(),
        lead,
        until,
        recorder,
    ))
}

/// What a cluster adds to an instance. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// With `cluster.mode: election`.
    pub election: Option<ElectionHandle>,
}

impl Cluster {
    /// The owners' records of its actors.
    pub fn wards(&self) -> Vec<Box<dyn Ward>> {
        let mut wards: Vec<Box<dyn Ward>> = Vec::new();
        if let Some(election) = &self.election {
            let (slot, factory) = (election.slot().clone(), election.factory());
            wards.push(Box::new(Owned::new(slot, RestartPolicy::standard(), factory)));
        }
        wards
    }

    /// The cluster as this instance sees it.
    pub fn view(&self) -> ClusterView {
        ClusterView { election: self.election.as_ref().map(|election| election_view(election.snapshot())) }
    }

    /// Gives everything away that others wait for.
    pub async fn leave(&self, limit: Duration) {
        let Some(election) = &self.election else { return };
        if !election.hand_over(limit).await {
            tracing::warn!(
                "the other members could not be told that they may lead; they wait until the key expires"
            );
        }
    }
}
