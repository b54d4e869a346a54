//! What one measurement is of.

use std::time::Duration;

use serde::Serialize;

use super::args::Args;

/// One point to be measured; everything but the contender.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Setting {
    /// Servers of the fleet.
    pub(super) servers: usize,
    /// Connections they share.
    pub(super) connections: usize,
    /// Workers of the provisioner.
    pub(super) workers: usize,
    /// `exec`, `provider` or a program.
    pub(super) helper: String,
    /// In addition to what the helper takes, ms.
    pub(super) helper_delay_ms: u128,
    /// `plain`, `issuer` or `x509`.
    pub(super) network: String,
    /// `events` or `discovery`.
    pub(super) announce: String,
    /// Before each reply, ms.
    pub(super) reply_delay_ms: u128,
    /// Instead of the real restart, ms.
    pub(super) restart_delay_ms: Option<u128>,
    /// From the first server's announcement to the last one's, ms.
    pub(super) ramp_ms: u128,
    /// Servers provisioned before.
    pub(super) warm_up: usize,
    /// Whether the provisioner keeps its state on the disk.
    pub(super) state: bool,
    /// Whether one more server announces itself last.
    pub(super) lone: bool,
    /// The broker that is started.
    pub(super) broker: String,
    /// When a run is given up.
    #[serde(skip)]
    pub(super) time_limit: Duration,
}

/// A program named by a path stays the same from any directory; one named by its name alone is looked for on the PATH.
pub(super) fn absolute(program: &str) -> String {
    if !program.contains('/') {
        return program.to_owned();
    }
    std::path::absolute(program)
        .map_or_else(|_| program.to_owned(), |path| path.to_string_lossy().into_owned())
}

impl Setting {
    /// What the command line asks for.
    pub(super) fn of(args: &Args, servers: usize) -> Self {
        let discovered = args.announce == "discovery";
        Self {
            servers,
            connections: args.connections,
            workers: args.workers,
            helper: absolute(&args.helper),
            helper_delay_ms: args.helper_delay.as_millis(),
            network: args.network.clone(),
            announce: args.announce.clone(),
            reply_delay_ms: args.reply_delay.as_millis(),
            restart_delay_ms: args.restart_delay.map(|delay| delay.as_millis()),
            ramp_ms: args.ramp.as_millis(),
            // Who is there when the provisioner starts is found together with whoever was to warm it up.
            warm_up: if discovered { 0 } else { args.warm_up.min(servers) },
            state: args.state,
            lone: args.lone,
            broker: args.broker.clone().unwrap_or_else(|| "nats-server".to_owned()),
            time_limit: args.time_limit,
        }
    }

    /// Servers a minute that workers can serve whose helper takes at least so long; none when it is not made slow.
    pub(super) fn helper_limit(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a small number of workers and of milliseconds")]
        let (workers, delay) = (self.workers as f64, self.helper_delay_ms as f64);
        (delay > 0.0).then(|| workers * 60_000.0 / delay)
    }

    /// Whether servers are there before the provisioner is.
    pub(super) fn discovered(&self) -> bool {
        self.announce == "discovery"
    }
}
