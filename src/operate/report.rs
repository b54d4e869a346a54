//! What an instance tells of itself, as JSON for the pages, the control service and scripts, and the one place that fills it.

use quartermaster_actors::claim::ClaimSnapshot;
use quartermaster_actors::control::RunState;
use quartermaster_actors::election::{ElectionSnapshot, ElectionState};
use quartermaster_actors::fleet::FleetSnapshot;
use quartermaster_actors::link::{LinkSnapshot, LinkState};
use quartermaster_actors::supervise::{ChildSnapshot, ExitCause};
use serde::Serialize;
use utoipa::ToSchema;

use crate::telemetry::plain_text;

/// `/healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HealthView {
    /// True while the process makes progress.
    pub live: bool,
    /// Why not; empty when live.
    pub reasons: Vec<String>,
}

/// `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadyView {
    /// True when this instance does its part: it works, or stands by, or is paused on purpose.
    pub ready: bool,
    /// `leading`, `sharing` (the work with other instances), `standby`, `paused` or `draining`.
    pub role: &'static str,
    /// Who leads the cluster, in an election and as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<LeaderView>,
    /// Why it is not ready; empty when it is.
    pub reasons: Vec<String>,
}

/// A leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LeaderView {
    /// Its identity.
    pub name: String,
    /// Whether that is this instance.
    pub own: bool,
    /// Whole seconds for which it is known to lead; it may have led before this instance heard of it.
    pub for_seconds: u64,
    /// Whole seconds since its last sign of life.
    pub silent_seconds: u64,
}

/// This instance's part in the election.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ElectionView {
    /// `candidate`, `winning` or `leader`.
    pub state: &'static str,
    /// Its attempts to become the leader.
    pub campaigns: u64,
    /// Who leads, if anybody was heard.
    pub leader: Option<LeaderView>,
    /// What keeps the election from working; that somebody else leads is no trouble.
    pub trouble: Option<String>,
}

/// The cluster as one instance sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// With `cluster.mode: election`.
    pub election: Option<ElectionView>,
    /// With `cluster.mode: shared`.
    pub claims: Option<ClaimsView>,
}

/// This instance's part in the shared work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ClaimsView {
    /// The instances that share the work, this one included.
    pub members: Vec<String>,
    /// Hosts that this instance has claimed now.
    pub held: usize,
    /// Hosts noticed here that are another instance's first.
    pub elsewhere: usize,
    /// What keeps claims from working.
    pub trouble: Option<String>,
}

/// Everything about one instance: `/api/v1/status` and the control service's `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct StatusReport {
    /// This instance's identity.
    pub instance: String,
    /// Its site; may be empty.
    pub site: String,
    /// `off`, `election` or `shared`.
    pub cluster: &'static str,
    /// The version of this program.
    pub version: &'static str,
    /// Whole seconds since the start.
    pub uptime_seconds: u64,
    /// As `/readyz`.
    pub ready: ReadyView,
    /// Whether this instance may work.
    pub run_state: RunStateView,
    /// The connection to the broker.
    pub link: LinkView,
    /// The election, when there is one.
    pub election: Option<ElectionView>,
    /// The claims, when the work is shared.
    pub claims: Option<ClaimsView>,
    /// Hosts by state.
    pub fleet: FleetView,
    /// The actors, in the order they are started.
    pub actors: Vec<ActorView>,
}

impl StatusReport {
    /// All of it as one short line, for a service manager.
    pub fn to_line(&self) -> String {
        let FleetView { in_flight, queued, provisioned_total, failed_total, .. } = self.fleet;
        let broker = if self.link.connected { "connected" } else { "not connected" };
        let line = format!(
            "{}; {broker}; {in_flight} in flight, {queued} waiting, {provisioned_total} provisioned, {failed_total} failed",
            self.run_state.says
        );
        plain_text(&line, false)
    }
}

/// The run state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunStateView {
    /// The operator's pause, if one is in force.
    pub paused: Option<PauseView>,
    /// False on standby.
    pub leading: bool,
    /// True once a stop or drain was asked for.
    pub draining: bool,
    /// All of it as a sentence for people: `paused by ann@ops since 2026-03-01T08:00:00Z because of the move`.
    pub says: String,
}

/// An operator's pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PauseView {
    /// The operator, as they named themselves.
    pub who: String,
    /// Their reason.
    pub why: String,
    /// Since when, Unix seconds.
    pub since: i64,
}

/// The link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LinkView {
    /// True while logged in.
    pub connected: bool,
    /// The broker, when connected.
    pub server: Option<String>,
    /// What the last attempt ended with, when not connected.
    pub last_error: Option<String>,
    /// True when the broker refused the last login.
    pub login_refused: bool,
    /// Whole seconds in this state.
    pub since_seconds: u64,
    /// Connections made.
    pub connects: u64,
    /// Logins refused.
    pub refused_logins: u64,
    /// Requests awaiting a reply now.
    pub pending: u64,
    /// Requests sent.
    pub requests: u64,
    /// Replies that counted.
    pub replies: u64,
    /// Replies that could not count.
    pub rejected: u64,
    /// Requests with two different replies.
    pub conflicts: u64,
    /// Sightings that a full lane turned away.
    pub dropped: u64,
}

/// The fleet: hosts by state now, and totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct FleetView {
    /// In the queue.
    pub queued: usize,
    /// In a cycle.
    pub in_flight: usize,
    /// Known, but turned away by a full queue until the next sighting.
    pub turned_away: usize,
    /// Held back after success.
    pub held: usize,
    /// Waiting for the next attempt after a failure.
    pub cooling: usize,
    /// Left alone after too many attempts.
    pub gave_up: usize,
    /// Hosts of whom something that providers did could not be taken back yet.
    pub not_taken_back: usize,
    /// Of those, the ones that wait for an operator's `retry` or `forget`.
    pub undecided: usize,
    /// Cycles that ended with the host provisioned.
    pub provisioned_total: u64,
    /// Cycles that failed.
    pub failed_total: u64,
}

/// One actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ActorView {
    /// Its name.
    pub name: &'static str,
    /// `starting`, `running`, `waiting` (to be restarted), `owner down`, `retired` or `gave up`.
    pub state: &'static str,
    /// How many lives it has had.
    pub lives: u64,
    /// Lives ended, by cause.
    pub endings: EndingsView,
    /// The last decision of its owner, as a sentence; empty before the first.
    pub last_decision: String,
}

/// Lives ended, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct EndingsView {
    /// By themselves.
    pub stopped: u64,
    /// By a panic.
    pub panicked: u64,
    /// Replaced because they made no progress.
    pub stuck: u64,
    /// With a reason of their own.
    pub failed: u64,
}

/// The run state as shown to people and machines.
pub fn run_state_view(state: &RunState) -> RunStateView {
    let paused = state.paused.as_ref().map(|paused| PauseView {
        who: paused.who.clone(),
        why: paused.why.clone(),
        since: paused.since,
    });
    let leading = state.leading && !state.has_lapsed();
    RunStateView { paused, leading, draining: state.draining, says: sentence(state) }
}

fn sentence(state: &RunState) -> String {
    let mut parts = Vec::new();
    if state.draining {
        parts.push("draining, nothing new is taken on".to_owned());
    }
    if let Some(paused) = &state.paused {
        parts.push(format!("paused by {} since {} because {}", paused.who, moment(paused.since), paused.why));
    }
    if !state.leading || state.has_lapsed() {
        parts.push("standing by, another member of the cluster leads".to_owned());
    }
    if parts.is_empty() {
        parts.push("working".to_owned());
    }
    parts.join("; ")
}

/// Unix seconds as RFC 3339 in UTC.
pub fn moment(seconds: i64) -> String {
    let known = time::OffsetDateTime::from_unix_timestamp(seconds).ok();
    let shown = known.and_then(|at| at.format(&time::format_description::well_known::Rfc3339).ok());
    shown.unwrap_or_else(|| format!("second {seconds}"))
}

/// The election as one instance sees it.
pub fn election_view(election: ElectionSnapshot) -> ElectionView {
    let now = tokio::time::Instant::now();
    let leader = election.leader.filter(|leader| leader.is_current(now)).map(|leader| LeaderView {
        own: leader.own,
        for_seconds: now.saturating_duration_since(leader.since).as_secs(),
        silent_seconds: now.saturating_duration_since(leader.heard).as_secs(),
        name: leader.name,
    });
    let state = match election.state {
        ElectionState::Candidate => "candidate",
        ElectionState::Winning => "winning",
        ElectionState::Leader => "leader",
    };
    ElectionView { state, campaigns: election.campaigns, leader, trouble: election.trouble }
}

/// The claims of one instance.
pub fn claims_view(claims: ClaimSnapshot) -> ClaimsView {
    let ClaimSnapshot { held, kept, members, trouble } = claims;
    ClaimsView { members, held, elsewhere: kept, trouble }
}

/// The numbers of the fleet.
pub const fn fleet_view(numbers: &FleetSnapshot) -> FleetView {
    let FleetSnapshot { counts, provisioned, failed, .. } = *numbers;
    FleetView {
        queued: counts.waiting,
        in_flight: counts.in_flight,
        turned_away: counts.known,
        held: counts.held,
        cooling: counts.cooling,
        gave_up: counts.gave_up,
        not_taken_back: counts.not_taken_back,
        undecided: counts.undecided,
        provisioned_total: provisioned,
        failed_total: failed,
    }
}

pub(super) fn link_view(link: LinkSnapshot) -> LinkView {
    let (server, last_error, login_refused) = match link.state {
        LinkState::Connected { server, .. } => (Some(server), None, false),
        LinkState::Connecting { last_error, refused, .. } => (None, Some(last_error), refused),
    };
    LinkView {
        connected: server.is_some(),
        server,
        last_error,
        login_refused,
        since_seconds: link.since.as_secs(),
        connects: link.connects,
        refused_logins: link.refused_logins,
        pending: link.pending,
        requests: link.requests,
        replies: link.replies,
        rejected: link.rejected,
        conflicts: link.conflicts,
        dropped: link.dropped,
    }
}

pub(super) fn actor_view(child: ChildSnapshot) -> ActorView {
    let count = |cause: ExitCause| child.endings.get(cause.index()).copied().unwrap_or(0);
    ActorView {
        name: child.child.name,
        state: child.state.as_str(),
        lives: child.child.generation,
        endings: EndingsView {
            stopped: count(ExitCause::Stopped),
            panicked: count(ExitCause::Panicked),
            stuck: count(ExitCause::Stuck),
            failed: count(ExitCause::Failed),
        },
        last_decision: child.last_decision,
    }
}

pub(super) fn readiness(
    health: &HealthView,
    run: &RunState,
    link: &LinkState,
    cluster: ClusterView,
) -> ReadyView {
    let role = match run {
        RunState { draining: true, .. } => "draining",
        RunState { paused: Some(_), .. } => "paused",
        RunState { leading: false, .. } => "standby",
        run if run.has_lapsed() => "standby",
        RunState { .. } if cluster.claims.is_some() => "sharing",
        RunState { .. } => "leading",
    };
    let mut reasons = health.reasons.clone();
    if run.draining {
        reasons.push("draining: nothing new is taken on".to_owned());
    }
    if let LinkState::Connecting { last_error, refused, .. } = link {
        reasons.push(match (last_error.as_str(), refused) {
            ("", _) => "not connected to a broker yet".to_owned(),
            (error, true) => format!("the broker refused the login: {error}"),
            (error, false) => format!("not connected to a broker: {error}"),
        });
    }
    let mut leader = None;
    if let Some(election) = cluster.election {
        leader = election.leader;
        // Without a connection the election cannot work, which was said already.
        if let Some(trouble) = election.trouble.filter(|_| link.is_connected()) {
            reasons.push(format!("the election does not work: {trouble}"));
        }
    }
    if let Some(trouble) = cluster.claims.and_then(|claims| claims.trouble).filter(|_| link.is_connected()) {
        reasons.push(format!("hosts cannot be claimed: {trouble}"));
    }
    ReadyView { ready: reasons.is_empty(), role, leader, reasons }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(trouble: Option<&str>) -> ReadyView {
        let health = HealthView { live: true, reasons: Vec::new() };
        let standby = RunState { leading: false, ..RunState::working() };
        let link = LinkState::Connected { server: "b:4222".into(), server_name: "b".into(), max_payload: 1 };
        let leader =
            LeaderView { name: "p1.example.net".into(), own: false, for_seconds: 90, silent_seconds: 0 };
        let election = ElectionView {
            state: "candidate",
            campaigns: 3,
            leader: Some(leader),
            trouble: trouble.map(str::to_owned),
        };
        readiness(&health, &standby, &link, ClusterView { election: Some(election), claims: None })
    }

    #[test]
    fn a_standby_is_ready_and_names_the_leader() {
        let ready = ready(None);
        assert!(ready.ready && ready.role == "standby");
        assert_eq!(
            ready.leader.map(|leader| (leader.name, leader.for_seconds)),
            Some(("p1.example.net".into(), 90))
        );
    }

    #[test]
    fn a_standby_that_could_not_take_over_is_not_ready() {
        let ready = ready(Some("nobody answers for bucket B"));
        assert_eq!(ready.reasons, ["the election does not work: nobody answers for bucket B"]);
        assert!(!ready.ready);
    }
}
