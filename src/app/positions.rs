//! The actors' positions, for whoever watches a running instance from inside the process, and how closely they are watched.

use std::time::Duration;

use quartermaster_actors::control::Controller;
use quartermaster_actors::discovery::Discoverer;
use quartermaster_actors::fleet::{FleetKeeper, HOST_PING_EVERY};
use quartermaster_actors::helper::HelperRunner;
use quartermaster_actors::link::BrokerLink;
use quartermaster_actors::metrics::MetricsKeeper;
use quartermaster_actors::supervise::{OverseerSettings, Slot};
use quartermaster_actors::vault::VaultKeeper;

/// Time between two looks of the watchdog at the overseer.
const WATCHDOG_EVERY: Duration = Duration::from_secs(10);
/// How many looks in a row may find no progress.
const WATCHDOG_PATIENCE: u32 = 6;

/// How closely the actors are watched. The default is meant for a busy machine; tests want to see a hang noticed sooner.
#[derive(Debug, Clone, Copy)]
pub struct Watching {
    /// The overseer's looks at the actors.
    pub overseer: OverseerSettings,
    /// The fleet keeper's looks at the actors of hosts.
    pub hosts_every: Duration,
    /// The watchdog's looks at the overseer.
    pub overseer_every: Duration,
    /// How many looks in a row may find no progress of the overseer before the process ends.
    pub overseer_patience: u32,
}

impl Default for Watching {
    fn default() -> Self {
        Self {
            overseer: OverseerSettings::default(),
            hosts_every: HOST_PING_EVERY,
            overseer_every: WATCHDOG_EVERY,
            overseer_patience: WATCHDOG_PATIENCE,
        }
    }
}

/// Where each actor is to be found, over its restarts.
#[derive(Debug, Clone)]
pub struct Positions {
    /// The run state.
    pub control: Slot<Controller>,
    /// The metrics.
    pub metrics: Slot<MetricsKeeper>,
    /// Keys and tokens.
    pub vault: Slot<VaultKeeper>,
    /// The connection.
    pub link: Slot<BrokerLink>,
    /// The site's helper.
    pub helper: Slot<HelperRunner>,
    /// The roster and the hosts' actors.
    pub fleet: Slot<FleetKeeper>,
    /// The search for hosts.
    pub discovery: Slot<Discoverer>,
}
