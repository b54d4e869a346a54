//! What is kept about each emulated server, for reports and tests.

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
}

/// Every phase, in the order of a server's life.
pub const PHASES: [Phase; 7] = [
    Phase::Down,
    Phase::Provisioning,
    Phase::Restarting,
    Phase::Provisioned,
    Phase::Stopping,
    Phase::Stopped,
    Phase::Vanished,
];

/// The history of one server.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ServerRecord {
    /// Where it stands.
    pub phase: Phase,
    /// Successful `configure` calls.
    pub configures: u32,
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
    /// Times it found fault with what it was given: a server token that does not verify, a key it cannot decrypt.
    pub complaints: u32,
    /// SHA-256 in hexadecimal of the configuration it was given last.
    pub config_digest: Option<String>,
    /// The last refusal or complaint, as text.
    pub last_error: Option<String>,
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
}
