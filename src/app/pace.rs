//! How long the network is waited for.

use std::time::Duration;

use quartermaster_actors::link::{AgentDeadlines, LinkSettings};
use quartermaster_proto::choria::Generation;

/// Waits for the network that no configuration names. The default is what every instance has; tests of many faults in a row
/// want them shorter.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Time between pings on an idle connection.
    pub ping_interval: Duration,
    /// Factor on the waits between rounds of connecting.
    pub backoff_scale: f64,
    /// How long the answers of agents are waited for.
    pub deadlines: AgentDeadlines,
    /// How much longer requests are waited for whose connection ended.
    pub lost_grace: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let LinkSettings { ping_interval, backoff_scale, deadlines, lost_grace, .. } =
            LinkSettings::new(quartermaster_actors::link::Servers::List(Vec::new()), "", Generation::V1);
        Self { ping_interval, backoff_scale, deadlines, lost_grace }
    }
}

impl Pace {
    /// Tells the link.
    pub(super) const fn set(self, link: &mut LinkSettings) {
        link.ping_interval = self.ping_interval;
        link.backoff_scale = self.backoff_scale;
        link.deadlines = self.deadlines;
        link.lost_grace = self.lost_grace;
    }
}
