//! The operator's arm inside of one instance.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quartermaster_actors::control::{ControlHandle, RunState};
use quartermaster_actors::fleet::{FleetHandle, FleetOverview, Forgot, HostQuery};
use quartermaster_actors::journal::JournalHandle;
use quartermaster_actors::link::LinkSnapshot;
use quartermaster_actors::supervise::{OverseerHandle, SendRefused};
use quartermaster_proto::choria::Identity;
use serde_json::Value;
use tokio::sync::{Mutex, watch};

use super::audit::{Audit, AuditRecord};
use super::change::{Change, ChangeReport};
use super::hosts::{HostReport, HostsReport};
use super::report::{self, ClusterView, HealthView, ReadyView, StatusReport, fleet_view, run_state_view};
use super::{OperateError, moment};

/// An overseer silent for longer than this is not live. It beats every few seconds; the watchdog's patience is longer.
const SILENT_LIMIT: Duration = Duration::from_secs(30);
/// How long a change waits for the one before it.
const TURN_LIMIT: Duration = Duration::from_secs(10);

/// What an instance is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its identity.
    pub instance: String,
    /// Its site; may be empty.
    pub site: String,
    /// `off`, `election` or `shared`.
    pub cluster: &'static str,
}

/// What an operator needs.
pub struct OperatorParts {
    /// What this instance is called.
    pub about: About,
    /// The configuration in force, without its secrets.
    pub config: Value,
    /// The run state.
    pub control: ControlHandle,
    /// The roster.
    pub fleet: FleetHandle,
    /// What has happened to hosts.
    pub journal: JournalHandle,
    /// Asks for a look for hosts now.
    pub look: Arc<dyn Fn() -> Result<(), SendRefused> + Send + Sync>,
    /// The link now.
    pub link: Arc<dyn Fn() -> LinkSnapshot + Send + Sync>,
    /// The cluster as this instance sees it.
    pub cluster: Arc<dyn Fn() -> ClusterView + Send + Sync>,
    /// The state of every actor, and signs of life.
    pub overseer: OverseerHandle,
    /// Where changes are recorded.
    pub audit: Audit,
    /// When the instance started.
    pub started: Instant,
}

/// Asks and tells one instance, for whoever is allowed to. Cheap to clone.
#[derive(Clone)]
pub struct Operator(Arc<Inner>);

struct Inner {
    parts: OperatorParts,
    /// Changes are made one after the other, so that what one reports is not another's doing.
    turn: Mutex<()>,
    drain: watch::Sender<bool>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("about", &self.0.parts.about).finish_non_exhaustive()
    }
}

impl Operator {
    /// An operator with these means.
    pub fn new(parts: OperatorParts) -> Self {
        Self(Arc::new(Inner { parts, turn: Mutex::new(()), drain: watch::Sender::new(false) }))
    }

    fn parts(&self) -> &OperatorParts {
        &self.0.parts
    }

    /// What this instance is called.
    pub fn about(&self) -> &About {
        &self.parts().about
    }

    /// The run state now.
    pub fn run_state(&self) -> RunState {
        self.parts().control.state()
    }

    /// Live: the overseer makes progress and nothing has ended for good.
    pub fn health(&self) -> HealthView {
        let vital = self.parts().overseer.vital();
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
    pub fn ready(&self) -> ReadyView {
        let parts = self.parts();
        report::readiness(&self.health(), &self.run_state(), &(parts.link)().state, (parts.cluster)())
    }

    /// Everything, from published snapshots: it never waits for an actor.
    pub fn status(&self) -> StatusReport {
        let OperatorParts { about, fleet, link, cluster, overseer, started, .. } = self.parts();
        let cluster = cluster();
        StatusReport {
            instance: about.instance.clone(),
            site: about.site.clone(),
            cluster: about.cluster,
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: started.elapsed().as_secs(),
            ready: self.ready(),
            run_state: run_state_view(&self.run_state()),
            link: report::link_view(link()),
            election: cluster.election,
            claims: cluster.claims,
            fleet: fleet_view(&fleet.snapshot()),
            actors: overseer.snapshot().children.into_iter().map(report::actor_view).collect(),
        }
    }

    /// The configuration in force, without its secrets.
    pub fn config(&self) -> Value {
        self.parts().config.clone()
    }

    /// One page of hosts.
    pub async fn hosts(&self, query: HostQuery) -> Result<HostsReport, OperateError> {
        let page = self.parts().fleet.hosts(query).await?;
        Ok(HostsReport { instance: self.about().instance.clone(), page })
    }

    /// What deserves a look now; at most so many failures.
    pub async fn overview(&self, failures: usize) -> Result<FleetOverview, OperateError> {
        Ok(self.parts().fleet.overview(failures).await?)
    }

    /// One host and everything that happened to it.
    pub async fn host(&self, name: &str) -> Result<HostReport, OperateError> {
        let identity = host_name(name)?;
        let OperatorParts { fleet, journal, about, .. } = self.parts();
        let now = fleet.host(identity.clone()).await?;
        let running = if now.is_some() { fleet.running(identity.clone()).await? } else { None };
        let history = journal.history(&identity);
        if now.is_none() && history.is_empty() {
            return Err(OperateError::UnknownHost { name: identity.to_string() });
        }
        let (instance, host) = (about.instance.clone(), identity.to_string());
        Ok(HostReport { instance, host, now, running, history })
    }

    /// Tries a host again now, whatever it waits for: its failures are forgotten.
    pub async fn retry(&self, name: &str, change: &Change) -> Result<ChangeReport, OperateError> {
        let identity = host_name(name)?;
        let host = identity.to_string();
        let retry = async {
            if self.parts().fleet.retry(identity).await? {
                return Ok(true);
            }
            Err(OperateError::UnknownHost { name: host.clone() })
        };
        self.make("retry", Some(&host), change, retry).await
    }

    /// Forgets a host and its history; a host that is still there is found again as a new one.
    pub async fn forget(&self, name: &str, change: &Change) -> Result<ChangeReport, OperateError> {
        let identity = host_name(name)?;
        let host = identity.to_string();
        let forget = async {
            let name = host.clone();
            match self.parts().fleet.forget(identity).await? {
                Forgot::Forgotten => Ok(true),
                Forgot::Unknown => Err(OperateError::UnknownHost { name }),
                Forgot::Committed => Err(OperateError::Committed { name }),
            }
        };
        self.make("forget", Some(&host), change, forget).await
    }

    /// No new host, no helper, no discovery until [`Operator::resume`]; cycles end at their next safe point. Who pauses a
    /// paused instance again takes the pause over.
    pub async fn pause(&self, change: &Change) -> Result<ChangeReport, OperateError> {
        self.make("pause", None, change, async { self.do_pause(change).await }).await
    }

    /// Works again, and looks for hosts at once.
    pub async fn resume(&self, change: &Change) -> Result<ChangeReport, OperateError> {
        self.make("resume", None, change, async { self.do_resume().await }).await
    }

    /// Pauses who works, resumes who is paused.
    pub async fn flip(&self, change: &Change) -> Result<ChangeReport, OperateError> {
        let flip = async {
            if self.run_state().paused.is_some() {
                self.do_resume().await
            } else {
                self.do_pause(change).await
            }
        };
        self.make("flip", None, change, flip).await
    }

    /// Takes nothing new, finishes what is in flight, and then ends the process with exit code 0.
    pub async fn drain(&self, change: &Change) -> Result<ChangeReport, OperateError> {
        let drain = async {
            let before = self.run_state().draining;
            self.parts().control.drain().await?;
            self.0.drain.send_replace(true);
            Ok(!before)
        };
        self.make("drain", None, change, drain).await
    }

    /// Looks for hosts now instead of at the next interval.
    pub async fn discover(&self, change: &Change) -> Result<ChangeReport, OperateError> {
        let discover = async {
            let state = self.run_state();
            if !state.admits() {
                return Err(OperateError::NotNow { state: run_state_view(&state).says });
            }
            (self.parts().look)()?;
            Ok(true)
        };
        self.make("discover", None, change, discover).await
    }

    /// Waits until somebody asked for a drain.
    pub async fn drain_asked(&self) {
        let mut asked = self.0.drain.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        drop(asked.wait_for(|asked| *asked).await);
    }

    /// Waits until the last change is recorded, at most for `limit`.
    pub async fn settled(&self, limit: Duration) {
        self.parts().audit.settled(limit).await;
    }

    async fn do_pause(&self, change: &Change) -> Result<bool, OperateError> {
        let before = self.run_state().paused;
        let same = before.is_some_and(|by| by.who == change.who() && by.why == change.why());
        if !same {
            let now = crate::clock::now().seconds();
            self.parts().control.pause(change.who().to_owned(), change.why().to_owned(), now).await?;
        }
        Ok(!same)
    }

    async fn do_resume(&self) -> Result<bool, OperateError> {
        let paused = self.run_state().paused.is_some();
        self.parts().control.resume().await?;
        Ok(paused)
    }

    /// Makes a change when it is its turn, and says and records what came of it.
    async fn make(
        &self,
        verb: &'static str,
        host: Option<&str>,
        change: &Change,
        doing: impl Future<Output = Result<bool, OperateError>>,
    ) -> Result<ChangeReport, OperateError> {
        let done = match tokio::time::timeout(TURN_LIMIT, self.0.turn.lock()).await {
            Ok(_turn) => doing.await,
            Err(_) => Err(OperateError::Busy),
        };
        let state = run_state_view(&self.run_state());
        let outcome = match &done {
            Ok(true) => "done",
            Ok(false) => "nothing_to_do",
            Err(error) => error.code(),
        };
        let About { instance, site, .. } = self.about().clone();
        let record = AuditRecord {
            time: moment(crate::clock::now().seconds()),
            id: uuid::Uuid::new_v4().to_string(),
            instance: instance.clone(),
            site,
            via: change.via().as_str(),
            verb,
            host: host.map(str::to_owned),
            who: change.who().to_owned(),
            why: change.why().to_owned(),
            outcome,
            run_state: state.says.clone(),
        };
        tracing::info!(
            component = "control",
            host = record.host,
            who = record.who,
            why = record.why,
            via = record.via,
            outcome,
            id = record.id,
            "{} asked for {verb}: {outcome}; now {}",
            record.who,
            record.run_state
        );
        self.parts().audit.record(&record).await;
        let changed = done?;
        Ok(ChangeReport {
            instance,
            verb,
            host: record.host,
            changed,
            run_state: state,
            in_flight: self.parts().fleet.snapshot().counts.in_flight,
        })
    }
}

fn host_name(name: &str) -> Result<Identity, OperateError> {
    Identity::parse(name)
        .map_err(|error| OperateError::BadInput { at: "/name".to_owned(), what: error.to_string() })
}
