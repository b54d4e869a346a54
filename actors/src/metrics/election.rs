//! The series of the peer's election library, for an instance that takes part in an election.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Opts, Registry};
use quartermaster_proto::text::escape_bounded;
use tokio::time::Instant;

use super::Fact;

/// The name of the election, which is fixed (choria.md 7).
const ELECTION: &str = "provisioner";

/// Name and help of the gauge of the leader.
const AGE: (&str, &str) =
    ("quartermaster_election_leader_age_seconds", "Seconds for which the named instance is known to lead");

/// The longest name of a leader in a label, in characters.
const MAX_NAME: usize = 255;

/// Three families with the labels `election` and `identity`; like the peer's they carry no `site`.
#[derive(Debug)]
pub(super) struct Election {
    as_candidate: IntCounter,
    as_leader: IntCounter,
    leader: IntGauge,
    interval: Gauge,
    heard: LeaderAge,
}

/// The leader that was heard last.
#[derive(Debug, Clone)]
struct Seen {
    name: String,
    since: Instant,
    until: Instant,
}

/// One gauge that names the leader and says how long it has led, counted at each scrape. Its one series is there from the
/// start; the label is empty while nobody is known to lead.
#[derive(Debug, Clone)]
struct LeaderAge {
    desc: Desc,
    site: String,
    seen: Arc<Mutex<Option<Seen>>>,
}

impl LeaderAge {
    fn new(site: &str) -> prometheus::Result<Self> {
        let labels = std::collections::HashMap::from([("site".to_owned(), site.to_owned())]);
        let desc = Desc::new(AGE.0.to_owned(), AGE.1.to_owned(), vec!["leader".to_owned()], labels)?;
        Ok(Self { desc, site: site.to_owned(), seen: Arc::default() })
    }

    fn set(&self, seen: Seen) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}

impl Collector for LeaderAge {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let seen = seen.filter(|seen| Instant::now() < seen.until);
        let (name, age) =
            seen.map_or((String::new(), 0.0), |seen| (seen.name, seen.since.elapsed().as_secs_f64()));
        let opts =
            Opts::new(AGE.0, AGE.1).const_label("site", self.site.as_str()).const_label("leader", name);
        let Ok(gauge) = Gauge::with_opts(opts) else { return Vec::new() };
        gauge.set(age);
        gauge.collect()
    }
}

impl Election {
    pub(super) fn new(registry: &Registry, site: &str, identity: &str) -> prometheus::Result<Self> {
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
        let heard = LeaderAge::new(site)?;
        registry.register(Box::new(heard.clone()))?;
        Ok(Self {
            heard,
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
            Fact::LeadershipLost | Fact::LeadershipHandedOver => self.leader.set(0),
            Fact::LeaderHeard { name, since, until, .. } => {
                self.heard.set(Seen { name: escape_bounded(name, MAX_NAME), since: *since, until: *until });
            }
            _ => {}
        }
    }
}
