//! What is kept about each emulated server, for reports and tests.

use quartermaster_proto::choria::envelope::Request;
use quartermaster_proto::time::WallClock;
use serde::Serialize;

/// Where a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Not started yet.
    #[default]
    Down,
    /// In provisioning mode, waiting for a provisioner.
    Provisioning,
    /// Told to restart and not down yet: still answers discovery.
    Restarting,
    /// Runs as an ordinary server.
    Provisioned,
    /// Told to shut down and not down yet.
    Stopping,
    /// Shut down for good, as told.
    Stopped,
    /// Gone without being told.
    Vanished,
    /// Without power, and back later with what is on its disk.
    Off,
}

/// Every phase, in the order of a server's life.
pub const PHASES: [Phase; 8] = [
    Phase::Down,
    Phase::Provisioning,
    Phase::Restarting,
    Phase::Provisioned,
    Phase::Stopping,
    Phase::Stopped,
    Phase::Vanished,
    Phase::Off,
];

/// One successful `configure`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Configured {
    /// The id of the request.
    pub request: String,
    /// Who sent it: the identity of the provisioner.
    pub by: String,
    /// When it was sent, by its sender, Unix milliseconds; protocol 1 tells whole seconds.
    pub sent_ms: i64,
    /// When it was done, Unix milliseconds by a clock that is right.
    pub at_ms: i64,
    /// The reply was withheld, or made unreadable, by a fault.
    pub reply_lost: bool,
    /// The server found fault with what it was given, so that it would not get far with it.
    pub complaint: bool,
    /// Relapses before it: a `configure` after a relapse is no repetition.
    pub relapses: u32,
}

/// The history of one server.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ServerRecord {
    /// Where it stands.
    pub phase: Phase,
    /// Successful `configure` calls.
    pub configures: u32,
    /// Each of them.
    pub configured: Vec<Configured>,
    /// Restarts, those of upgrades included.
    pub restarts: u32,
    /// Times it came back in provisioning mode although it had been configured.
    pub relapses: u32,
    /// Successful upgrades.
    pub updates: u32,
    /// Calls refused because somebody else held the lock.
    pub lock_refusals: u32,
    /// Calls refused for a wrong token.
    pub token_refusals: u32,
    /// Replies sent.
    pub replies: u64,
    /// Replies to work that was done which a fault withheld or made unreadable.
    pub lost_replies: u32,
    /// Times it lost its power and had it again.
    pub power_cuts: u32,
    /// Times it found fault with what it was given: a server token that does not verify, a key it cannot decrypt.
    pub complaints: u32,
    /// SHA-256 in hexadecimal of the configuration it was given last.
    pub config_digest: Option<String>,
    /// The last refusal or complaint, as text.
    pub last_error: Option<String>,
    /// The action of the last call that arrived.
    #[serde(skip)]
    pub last_action: Option<String>,
    /// The first provisioning request of the present round.
    #[serde(skip)]
    pub first_request: Option<WallClock>,
    /// Milliseconds from that request to the restart request.
    pub cycle_ms: Option<u64>,
}

impl ServerRecord {
    /// `configure` calls beyond the first, not counting those that a relapse made necessary.
    pub fn duplicate_configures(&self) -> u32 {
        self.configures.saturating_sub(1).saturating_sub(self.relapses)
    }

    /// Each `configure` that follows another of the same round which was good and whose reply went out: `(the earlier one, the
    /// later one)`. The network may have lost that reply; the server did not.
    pub fn repetitions(&self) -> impl Iterator<Item = (&Configured, &Configured)> {
        self.configured.iter().zip(self.configured.iter().skip(1)).filter(|(earlier, later)| {
            earlier.relapses == later.relapses && !earlier.reply_lost && !earlier.complaint
        })
    }

    pub(super) fn note_configured(
        &mut self,
        request: &Request,
        at: WallClock,
        reply_lost: bool,
        complaint: bool,
    ) {
        self.configured.push(Configured {
            request: request.id.clone(),
            by: request.sender.clone(),
            sent_ms: request.time.nanos() / 1_000_000,
            at_ms: at.nanos() / 1_000_000,
            reply_lost,
            complaint,
            relapses: self.relapses,
        });
    }
}
