//! Everything worth a log line and a number, as one closed list.

use std::time::Duration;

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

/// One fact. `host` is always the identity as text; it goes into the log line, never into a label.
#[derive(Debug, Clone)]
pub enum Fact {
    /// A host was taken onto the list (peer: `Adding <id> to the provision list after …`).
    HostFound { host: String, by: Found },
    /// A broadcast discovery ended; `found` counts distinct hosts that answered.
    DiscoveryRan { found: usize, took: Duration },
    /// A broadcast discovery failed.
    DiscoveryFailed { error: String },
    /// Discovery was skipped because the instance is paused (peer: `Skipping discovery while paused`).
    DiscoverySkipped,
    /// A lifecycle event could not be used; the reason is bounded and escaped.
    EventRejected { error: String },
    /// An event or sighting was dropped because a lane was full; the next discovery heals it.
    SightingDropped { lane: &'static str },
    /// One try of one remote call ended. `error` is none when the host answered.
    RpcFinished {
        host: String,
        agent: &'static str,
        action: &'static str,
        took: Duration,
        error: Option<String>,
    },
    /// A helper run ended, with its whole duration.
    HelperRan { host: String, took: Duration, outcome: HelperOutcome, error: Option<String> },
    /// The helper asked for the host's shutdown and the host agreed.
    ShutdownRequested { host: String },
    /// A cycle began (peer: `Provisioning <id>`).
    CycleStarted { host: String, attempt: u32, waited: Duration },
    /// A cycle ended with the host configured and restarting (peer: `Provisioned <id>`).
    HostProvisioned { host: String, took: Duration },
    /// After its restart the host came up as an ordinary server.
    HostConfirmed { host: String, took: Duration },
    /// After its restart the host was not seen as an ordinary server within the limit (some networks do not show it).
    HostUnconfirmed { host: String },
    /// A cycle ended with the host told to update itself (the peer counts it as provisioned).
    HostUpdating { host: String, took: Duration },
    /// A cycle ended with the host told to shut down (the peer counts it as provisioned).
    HostShutDown { host: String, took: Duration },
    /// A cycle ended because the host is an ordinary server already.
    HostServing { host: String },
    /// A host was not seen for two intervals and left the roster.
    HostAgedOut { host: String },
    /// A cycle ended without provisioning the host; `retry_in` is none when it is given up.
    HostFailed { host: String, cause: &'static str, error: String, attempt: u32, retry_in: Option<Duration> },
    /// The helper put the host off.
    HostDeferred { host: String, msg: String, retry_in: Duration },
    /// Someone else holds the host's provisioning lock.
    HostBusy { host: String, retry_in: Duration },
    /// Two different replies to one request arrived.
    ReplyConflict { host: String, agent: &'static str, action: &'static str },
    /// A reply that cannot count arrived.
    ReplyRejected { host: String, reason: String },
    /// A line that a helper wrote to stderr.
    HelperSaid { host: String, line: String },
    /// The fleet's numbers now; sets the gauges.
    FleetCounted { waiting: usize, queued: usize, busy: usize },
    /// The run state changed.
    Paused { paused: bool },
    /// An actor ended and its owner decided what to do.
    ActorEnded { actor: &'static str, cause: &'static str, decision: String },
    /// The link's state changed.
    LinkChanged { connected: bool, detail: String },
}
