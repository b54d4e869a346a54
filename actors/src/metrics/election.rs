//! The series of the peer's election library, for an instance that takes part in an election.

use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

use super::Fact;

/// The name of the election, which is fixed (choria.md 7).
const ELECTION: &str = "provisioner";

/// Three families with the labels `election` and `identity`; like the peer's they carry no `site`.
#[derive(Debug)]
pub(super) struct Election {
    as_candidate: IntCounter,
    as_leader: IntCounter,
    leader: IntGauge,
    interval: Gauge,
}

impl Election {
    pub(super) fn new(registry: &Registry, identity: &str) -> prometheus::Result<Self> {
        let opts = |name: &str, help: &str| {
            Opts::new(name, help).const_label("election", ELECTION).const_label("identity", identity)
        };
        let help = "Attempts to win the leadership as a candidate or to keep it as the leader";
        let campaigns = IntCounterVec::new(opts("choria_election_campaigns", help), &["state"])?;
        let leader =
            IntGauge::with_opts(opts("choria_election_leader", "1 while this instance leads, else 0"))?;
        let help = "Seconds until the next attempt, as last decided";
        let interval = Gauge::with_opts(opts("choria_election_interval_seconds", help))?;
        registry.register(Box::new(campaigns.clone()))?;
        registry.register(Box::new(leader.clone()))?;
        registry.register(Box::new(interval.clone()))?;
        Ok(Self {
            as_candidate: campaigns.get_metric_with_label_values(&["candidate"])?,
            as_leader: campaigns.get_metric_with_label_values(&["leader"])?,
            leader,
            interval,
        })
    }

    /// Takes one fact about the election into the numbers.
    pub(super) fn update(&self, fact: &Fact) {
        match fact {
            Fact::Campaigned { leading: true } => self.as_leader.inc(),
            Fact::Campaigned { leading: false } => self.as_candidate.inc(),
            Fact::CampaignDue { after } => self.interval.set(after.as_secs_f64()),
            Fact::LeadershipWon => self.leader.set(1),
            Fact::LeadershipLost => self.leader.set(0),
            _ => {}
        }
    }
}
