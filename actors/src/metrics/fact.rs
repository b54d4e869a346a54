//! Everything worth a log line and a number, as one closed list.

use std::time::Duration;

use super::steps::StepFact;

/// How a host was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// By broadcast discovery.
    Discovery,
    /// By its own startup event.
    Event,
}

/// How a helper run ended, for the label of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperOutcome {
    /// It answered with a usable reply.
    Answered,
    /// It failed in any way: start, exit status, deadline, output.
    Failed,
}

/// One fact. `host` is always the identity as text; it goes into the log line, never into a label. Text that came from
/// elsewhere needs no care here: whatever is recorded is escaped and bounded on its way into the log.
#[derive(Debug, Clone)]
pub enum Fact {
    /// Something of a provider's step.
    Step(StepFact),
    /// A host was taken onto the list (peer: `Adding <id> to the provision list after …`).
    HostFound {
        /// The identity.
        host: String,
        /// How it was found.
        by: Found,
    },
    /// A broadcast discovery ended.
    DiscoveryRan {
        /// Distinct hosts that answered.
        found: usize,
        /// Its whole duration.
        took: Duration,
    },
    /// A broadcast discovery failed.
    DiscoveryFailed {
        /// What went wrong.
        error: String,
    },
    /// Discovery was skipped because the instance is paused (peer: `Skipping discovery while paused`).
    DiscoverySkipped,
    /// A lifecycle event could not be used.
    EventRejected {
        /// Why.
        error: String,
    },
    /// An event or sighting was dropped because a lane was full; the next discovery heals it.
    SightingDropped {
        /// Which lane: `discovery`, `events` or `queue`.
        lane: &'static str,
    },
    /// One try of one remote call ended.
    RpcFinished {
        /// The identity.
        host: String,
        /// The agent; with the action one of the fixed `agent#action` labels.
        agent: &'static str,
        /// The action.
        action: &'static str,
        /// From the sending of the request to its end.
        took: Duration,
        /// None when the host answered.
        error: Option<String>,
    },
    /// A helper run ended.
    HelperRan {
        /// The identity.
        host: String,
        /// The whole duration, from before the start of the process.
        took: Duration,
        /// How long it waited for its turn before that.
        waited: Duration,
        /// How.
        outcome: HelperOutcome,
        /// What went wrong, when it failed.
        error: Option<String>,
    },
    /// The helper asked for the host's shutdown and the host agreed.
    ShutdownRequested {
        /// The identity.
        host: String,
        /// What the helper says about it; may be empty.
        msg: String,
    },
    /// A cycle began (peer: `Provisioning <id>`).
    CycleStarted {
        /// The identity.
        host: String,
        /// Counts from 1.
        attempt: u32,
        /// From admission to the queue until now.
        waited: Duration,
    },
    /// A cycle ended with the host configured and restarting (peer: `Provisioned <id>`).
    HostProvisioned {
        /// The identity.
        host: String,
        /// The duration of the cycle.
        took: Duration,
    },
    /// After its restart the host came up as an ordinary server.
    HostConfirmed {
        /// The identity.
        host: String,
        /// From the end of the cycle until its startup event.
        took: Duration,
    },
    /// After its restart the host was not seen as an ordinary server within the limit (some networks do not show it).
    HostUnconfirmed {
        /// The identity.
        host: String,
    },
    /// A cycle ended with the host told to update itself (the peer counts it as provisioned).
    HostUpdating {
        /// The identity.
        host: String,
        /// The duration of the cycle.
        took: Duration,
    },
    /// A cycle ended with the host told to shut down (the peer counts it as provisioned).
    HostShutDown {
        /// The identity.
        host: String,
        /// The duration of the cycle.
        took: Duration,
    },
    /// A cycle ended because the host is an ordinary server already.
    HostServing {
        /// The identity.
        host: String,
    },
    /// A host was not seen for two intervals and left the roster.
    HostAgedOut {
        /// The identity.
        host: String,
    },
    /// A cycle ended between two steps because this instance was paused or is stopping.
    HostInterrupted {
        /// The identity.
        host: String,
    },
    /// A cycle ended without provisioning the host (peer: `Could not provision <id>: <e>`).
    HostFailed {
        /// The identity.
        host: String,
        /// One of the fixed causes; anything else is counted as `other`.
        cause: &'static str,
        /// The whole reason.
        error: String,
        /// Counts from 1.
        attempt: u32,
        /// None when it is given up.
        retry_in: Option<Duration>,
    },
    /// The helper put the host off. Ends the cycle, and counts as a provisioning error as it does with the peer.
    HostDeferred {
        /// The identity.
        host: String,
        /// The helper's words.
        msg: String,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// Someone else holds the host's provisioning lock. Ends the cycle.
    HostBusy {
        /// The identity.
        host: String,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// Two different replies to one request arrived.
    ReplyConflict {
        /// The identity.
        host: String,
        /// The agent asked.
        agent: &'static str,
        /// The action asked for.
        action: &'static str,
    },
    /// A reply that cannot count arrived.
    ReplyRejected {
        /// Who it claims to be from.
        host: String,
        /// Why it cannot count.
        reason: String,
    },
    /// A line that a helper wrote to stderr.
    HelperSaid {
        /// The identity.
        host: String,
        /// The line, without its end.
        line: String,
    },
    /// The fleet's numbers now; sets the gauges.
    FleetCounted {
        /// Hosts known and not yet provisioned.
        waiting: usize,
        /// Hosts in the queue.
        queued: usize,
        /// Hosts in a cycle.
        busy: usize,
    },
    /// The run state changed.
    Paused {
        /// True while paused by an operator or on standby.
        paused: bool,
    },
    /// This instance leads (peer: `Became leader after winning election`).
    LeadershipWon,
    /// This instance no longer leads (peer: `Lost leadership`).
    LeadershipLost,
    /// This instance stops and has given the leadership away.
    LeadershipHandedOver,
    /// Somebody was heard renewing the lead; twice a second, so only a change is logged.
    LeaderHeard {
        /// Its identity.
        name: String,
        /// Whether somebody else led before, or nobody.
        anew: bool,
        /// Since when it is known to lead.
        since: tokio::time::Instant,
        /// Until when it may lead if it is not heard again.
        until: tokio::time::Instant,
    },
    /// An attempt to win or to keep the leadership was begun; numbers only, there are two a second while leading.
    Campaigned {
        /// True when this instance holds the leadership and renews it.
        leading: bool,
    },
    /// When the next such attempt is due; numbers only.
    CampaignDue {
        /// The wait.
        after: Duration,
    },
    /// A host was to be claimed and another instance had it; ends the cycle before its first call.
    ClaimContended {
        /// The identity.
        host: String,
    },
    /// A claim ended before its cycle did; the cycle ends at its next safe point.
    ClaimLost {
        /// The identity.
        host: String,
    },
    /// The claims of this instance now; sets the gauges.
    ClaimsCounted {
        /// Hosts claimed.
        held: usize,
        /// Hosts that are another instance's first, kept in mind.
        kept: usize,
        /// Instances that are there, this one included.
        members: usize,
    },
    /// An actor ended and its owner decided what to do.
    ActorEnded {
        /// The name of its position; one of the fixed names, else counted as `other`.
        actor: &'static str,
        /// How it ended, by the words of `ExitCause`.
        cause: &'static str,
        /// The owner's decision, as a sentence.
        decision: String,
    },
    /// A batch of entries of the journal is on the disk; numbers only.
    JournalCommitted {
        /// How many writes.
        entries: usize,
        /// How long it took.
        took: Duration,
    },
    /// The journal could not be written.
    JournalFailed {
        /// Why.
        error: String,
    },
    /// Whether the journal is on a disk; numbers only.
    JournalDurable {
        /// False when it is in memory only.
        durable: bool,
    },
    /// The link's state changed.
    LinkChanged {
        /// True when logged in to a broker.
        connected: bool,
        /// Which broker, or why not.
        detail: String,
    },
}
