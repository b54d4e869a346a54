//! Several instances beside each other: what a cluster adds to the wiring.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::claim::{ClaimHandle, ClaimSettings};
use quartermaster_actors::control::{ControlHandle, Controller, LeadershipChanged, LeadingUntil};
use quartermaster_actors::discovery::SeenSink;
use quartermaster_actors::election::{ElectionHandle, ElectorSettings};
use quartermaster_actors::fleet::FleetHandle;
use quartermaster_actors::host::ClaimPort;
use quartermaster_actors::link::{BucketSpec, LinkHandle};
use quartermaster_actors::metrics::Recorder;
use quartermaster_actors::supervise::{Owned, RestartPolicy, Slot, Ward};

use crate::config::{ClusterMode, Config};
use crate::operate::{ClusterView, claims_view, election_view};

/// This part of what can be in flight at once may be work that another instance has not begun with, each second.
const HELP_SHARE: usize = 4;
/// How long the broker may take to answer about a claim.
const ASK_WITHIN: Duration = Duration::from_secs(5);

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

/// With shared work: claims hosts in the bucket; those whose turn it is go to the fleet.
pub fn claims(
    config: &Config,
    link: &LinkHandle,
    control: &ControlHandle,
    fleet: &FleetHandle,
    recorder: Recorder,
) -> Option<ClaimHandle> {
    if config.cluster != ClusterMode::Shared {
        return None;
    }
    let (noticed, numbers, at_once) = (fleet.clone(), fleet.clone(), config.in_flight.get());
    let room = move || {
        let counts = numbers.snapshot().counts;
        at_once.saturating_sub(counts.waiting + counts.in_flight - counts.silent)
    };
    Some(ClaimHandle::new(ClaimSettings {
        identity: config.identity.to_string(),
        bucket: BucketSpec {
            name: config.claims.bucket.clone(),
            description: "Servers being provisioned, each claimed by one Quartermaster".to_owned(),
            lives: config.claims.ttl,
            replicas: config.claims.replicas,
        },
        link: link.clone(),
        run_state: control.subscribe(),
        fleet: Arc::new(move |seen| noticed.noticed(seen)),
        room: Arc::new(room),
        help: at_once.div_ceil(HELP_SHARE),
        most: config.queue.get(),
        interval: config.interval,
        limit: ASK_WITHIN,
        recorder,
    }))
}

/// What a cluster adds to an instance. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// With `cluster.mode: election`.
    pub election: Option<ElectionHandle>,
    /// With `cluster.mode: shared`.
    pub claims: Option<ClaimHandle>,
}

impl Cluster {
    /// The owners' records of its actors.
    pub fn wards(&self) -> Vec<Box<dyn Ward>> {
        let mut wards: Vec<Box<dyn Ward>> = Vec::new();
        if let Some(election) = &self.election {
            let (slot, factory) = (election.slot().clone(), election.factory());
            wards.push(Box::new(Owned::new(slot, RestartPolicy::standard(), factory)));
        }
        if let Some(claims) = &self.claims {
            let (slot, factory) = (claims.slot().clone(), claims.factory());
            wards.push(Box::new(Owned::new(slot, RestartPolicy::standard(), factory)));
        }
        wards
    }

    /// What cycles claim their hosts with.
    pub fn claim_port(&self) -> Option<Arc<dyn ClaimPort>> {
        let claims = self.claims.clone()?;
        Some(Arc::new(claims))
    }

    /// Where sightings go: to the fleet, by way of the claims when the work is shared.
    pub fn seen_sink(&self, fleet: &FleetHandle) -> SeenSink {
        let fleet = fleet.clone();
        match self.claims.clone() {
            Some(claims) => Arc::new(move |seen| claims.notice(seen)),
            None => Arc::new(move |seen| fleet.noticed(seen)),
        }
    }

    /// The cluster as this instance sees it.
    pub fn view(&self) -> ClusterView {
        ClusterView {
            election: self.election.as_ref().map(|election| election_view(election.snapshot())),
            claims: self.claims.as_ref().map(|claims| claims_view(claims.snapshot())),
        }
    }

    /// Gives everything away that others wait for.
    pub async fn leave(&self, limit: Duration) {
        if let Some(claims) = &self.claims
            && !claims.leave(limit).await
        {
            tracing::warn!("the other members could not be told that this one is gone; its claims expire");
        }
        let Some(election) = &self.election else { return };
        if !election.hand_over(limit).await {
            tracing::warn!(
                "the other members could not be told that they may lead; they wait until the key expires"
            );
        }
    }
}
