//! A running fleet: settings in, a handle out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::choria::identity::{Identity, IdentityError};
use serde::Serialize;
use tokio::sync::{Barrier, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::{ConnectError, DIALS, Dialer};
use super::csr::KeyPool;
use super::fault::FaultPlan;
use super::group::{Group, Order, Subscriptions, Task};
use super::ledger::{FleetStats, Ledger};
use super::network::Network;
use super::profile::Profile;
use super::record::{Phase, ServerRecord};
use super::server::Server;
use crate::clock;

/// Orders that may wait for one connection's task.
const ORDERS: usize = 1024;

/// Everything about a fleet. Start from [`FleetSettings::new`] and change what matters.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// The network the servers live in.
    pub network: Network,
    /// The brokers, as NATS URLs.
    pub brokers: Vec<String>,
    /// TLS, unverified as real servers do it; false for clear text.
    pub tls: bool,
    /// How many servers.
    pub servers: usize,
    /// How many connections they share; as many as servers for a connection each, as in reality.
    pub connections: usize,
    /// Their names: `{}` is the number, from 1, `{:05}` the number in five digits.
    pub identity_format: String,
    /// The facts, as the text of a JSON object.
    pub facts: String,
    /// Their version.
    pub version: String,
    /// The directory their configuration pretends to be in.
    pub config_dir: String,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// Added to every reply.
    pub reply_delay: Duration,
    /// Replaces the delays of restart and shutdown; none keeps the real ones (2 s and splay, 0 to 9 s).
    pub restart_delay: Option<Duration>,
    /// How long a provisioning lock is held for its owner; the real ones: 2 minutes.
    pub lock_time: Duration,
    /// User and password at the broker, instead of those of the provisioning token.
    pub user: Option<(String, String)>,
    /// Time between pings on a silent connection, and the limit of one attempt to connect.
    pub patience: Duration,
    /// Start the servers evenly over this long; zero for all at once.
    pub ramp: Duration,
    /// Announce nobody before all connections are up.
    pub together: bool,
    /// Start none: each stays down until [`FleetHandle::power_on`].
    pub powered_off: bool,
    /// Repeats keys, delays and faults.
    pub seed: u64,
    /// RSA keys shared by all certificate requests; as many as servers for a key each.
    pub rsa_keys: usize,
}

impl FleetSettings {
    /// `servers` honest servers on one connection to `broker`.
    pub fn new(network: Network, broker: impl Into<String>, servers: usize) -> Self {
        Self {
            network,
            brokers: vec![broker.into()],
            tls: true,
            servers,
            connections: 1,
            identity_format: "node{}.example.net".to_owned(),
            facts: r#"{"cores":2,"role":"web"}"#.to_owned(),
            version: "0.29.4".to_owned(),
            config_dir: "/etc/choria".to_owned(),
            faults: FaultPlan::default(),
            reply_delay: Duration::ZERO,
            restart_delay: None,
            lock_time: Duration::from_mins(2),
            user: None,
            patience: Duration::from_secs(10),
            ramp: Duration::ZERO,
            together: false,
            powered_off: false,
            seed: 1,
            rsa_keys: 4,
        }
    }
}

impl FleetSettings {
    /// What the servers share.
    pub(super) fn profile(&self) -> Profile {
        Profile {
            generation: self.network.generation(),
            token: self.network.claims.cht.clone(),
            jwt: self.network.jwt.clone(),
            hostile_jwts: self.network.hostile_jwts(clock::now()),
            upgradable: self.network.claims.update,
            version: self.version.clone(),
            facts: self.facts.clone(),
            config_dir: self.config_dir.clone(),
            hop: self.brokers.first().cloned().unwrap_or_default(),
            reply_delay: self.reply_delay,
            restart_delay: self.restart_delay,
            lock_time: self.lock_time,
            server_key: self.network.server_key.clone(),
            keys: KeyPool::new(self.rsa_keys),
            seed: self.seed,
        }
    }
}

/// Why a fleet could not be started, or did not get where it should.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The identity format gives names no server can have.
    #[error("`{name}` cannot be the name of a server")]
    Identity {
        /// The name.
        name: String,
        /// Why.
        #[source]
        source: IdentityError,
    },
    /// The identity format has no place for the number.
    #[error(
        "the identity format `{format}` gives every server the same name: write {{}} where the number goes"
    )]
    SameName {
        /// The format.
        format: String,
    },
    /// The facts are no JSON object.
    #[error("the facts are no JSON object")]
    Facts(#[source] serde_json::Error),
    /// No brokers were given.
    #[error("no broker was given")]
    NoBroker,
    /// A connection could not be made.
    #[error("a connection of the fleet has ended")]
    Connection(#[source] ConnectError),
    /// What was waited for did not come.
    #[error("not reached within {waited:?}: {stats:?}; for example {examples:?}")]
    TimedOut {
        /// How long was waited.
        waited: Duration,
        /// How things stood then.
        stats: Box<FleetStats>,
        /// Some servers that were not provisioned, with phase and last error.
        examples: Vec<String>,
    },
}

/// Starts fleets.
#[derive(Debug)]
pub struct Fleet;

impl Fleet {
    /// Starts the fleet on the present Tokio runtime. The servers connect, subscribe and announce themselves in the
    /// background; a broker that is not there yet is waited for.
    #[expect(clippy::unused_async, reason = "must be called inside a runtime, and callers await the start")]
    pub async fn start(settings: FleetSettings) -> Result<FleetHandle, FleetError> {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&settings.facts)
            .map_err(FleetError::Facts)?;
        if settings.brokers.is_empty() {
            return Err(FleetError::NoBroker);
        }
        let identities = identities(&settings.identity_format, settings.servers)?;
        let claims = &settings.network.claims;
        let profile = Arc::new(settings.profile());
        let ledger = Arc::new(Ledger::new(settings.servers));
        let of_token = (!claims.chusr.is_empty() && !claims.chpwd.is_empty())
            .then(|| (claims.chusr.clone(), claims.chpwd.clone()));
        let user = settings.user.clone().or(of_token);
        let dialer = Dialer {
            brokers: settings.brokers.clone().into(),
            tls: settings.tls,
            jwt: settings.network.jwt.as_str().into(),
            user,
            patience: settings.patience,
            ledger: Arc::clone(&ledger),
            turns: Arc::new(Semaphore::new(DIALS)),
        };
        let connections = settings.connections.clamp(1, settings.servers.max(1));
        let own = connections == settings.servers;
        let subscriptions =
            if connections == 1 && !own { Subscriptions::Wildcard } else { Subscriptions::Exact };
        let mut shares: Vec<Vec<Server>> = (0..connections).map(|_| Vec::new()).collect();
        for (number, identity) in identities.into_iter().enumerate() {
            let afflictions = settings.faults.draw(settings.seed, identity.as_str());
            let server = Server::new(identity, Arc::clone(&profile), afflictions);
            if let Some(share) = shares.get_mut(number % connections) {
                share.push(server);
            }
        }
        let stop = CancellationToken::new();
        let mut groups = Vec::with_capacity(connections);
        let mut tasks = JoinSet::new();
        let together = settings.together.then(|| Arc::new(Barrier::new(connections)));
        for (number, servers) in shares.into_iter().enumerate() {
            let (order, orders) = mpsc::channel(ORDERS);
            let group = Arc::new(Group::new(servers, order));
            groups.push(Arc::clone(&group));
            // With a connection for each server, the ramp spreads the connections, or what comes after them.
            let (delay, ramp) = if own {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                let count = u32::try_from(connections).unwrap_or(u32::MAX).max(1);
                (settings.ramp * number / count, Duration::ZERO)
            } else {
                (Duration::ZERO, settings.ramp)
            };
            let task = Task {
                group,
                ledger: Arc::clone(&ledger),
                dialer: dialer.clone(),
                subscriptions,
                own,
                delay,
                ramp,
                together: together.clone(),
                powered_off: settings.powered_off,
                orders,
                stop: stop.clone(),
            };
            tasks.spawn(async move { Box::pin(task.run()).await });
        }
        Ok(FleetHandle { groups, ledger, tasks, stop })
    }
}

/// The names of a fleet's servers.
fn identities(format: &str, servers: usize) -> Result<Vec<Identity>, FleetError> {
    let name = |number: usize| -> Option<String> {
        let (before, rest) = format.split_once('{')?;
        let (spec, after) = rest.split_once('}')?;
        let width = if spec.is_empty() { 0 } else { spec.strip_prefix(":0")?.parse().ok()? };
        Some(format!("{before}{number:0width$}{after}"))
    };
    (1..=servers)
        .map(|number| {
            let name = match name(number) {
                Some(name) => name,
                None if servers == 1 => format.to_owned(),
                None => return Err(FleetError::SameName { format: format.to_owned() }),
            };
            Identity::parse(&name).map_err(|source| FleetError::Identity { name, source })
        })
        .collect()
}

/// A running fleet. Dropping it ends the fleet.
#[derive(Debug)]
pub struct FleetHandle {
    groups: Vec<Arc<Group>>,
    ledger: Arc<Ledger>,
    tasks: JoinSet<Result<(), ConnectError>>,
    stop: CancellationToken,
}

/// One server in a report.
#[derive(Debug, Clone, Serialize)]
pub struct ServerReport {
    /// Its history.
    #[serde(flatten)]
    pub record: ServerRecord,
    /// `configure` calls beyond the first that no relapse explains.
    pub duplicate_configures: u32,
    /// The faults it was given, as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// The whole fleet, server by server.
#[derive(Debug, Clone, Serialize)]
pub struct FleetReport {
    /// The counters.
    pub totals: FleetStats,
    /// Sum over all servers.
    pub duplicate_configures: u64,
    /// Median milliseconds from a server's first provisioning request to its restart request.
    pub median_cycle_ms: Option<u64>,
    /// Milliseconds from the start of the first server to the latest `configure`.
    pub worked_ms: Option<u64>,
    /// Each server by name.
    pub servers: BTreeMap<String, ServerReport>,
}

impl FleetHandle {
    /// The counters now.
    pub fn stats(&self) -> FleetStats {
        self.ledger.stats()
    }

    /// The median time from a server's first provisioning request to its restart request.
    pub fn median_cycle(&self) -> Option<Duration> {
        self.ledger.median_cycle()
    }

    /// The time from the start of the first server to the latest `configure`; none before that.
    pub fn worked(&self) -> Option<Duration> {
        self.ledger.worked()
    }

    /// The time from the first request to any server to the latest `configure`; none before that.
    pub fn served(&self) -> Option<Duration> {
        self.ledger.served()
    }

    /// One server, by name.
    pub fn server(&self, identity: &str) -> Option<ServerReport> {
        self.groups.iter().find_map(|group| group.one(identity, server_report))
    }

    /// Takes the power from a server, whatever it is doing, and gives it back after `down`; none: never. False when there is
    /// no such server, or too many orders wait.
    pub fn cut_power(&self, identity: &str, down: Option<Duration>) -> bool {
        self.groups.iter().any(|group| group.order(identity, Order::CutPower { down }))
    }

    /// Starts a server that has not been started yet. False as with [`Self::cut_power`].
    pub fn power_on(&self, identity: &str) -> bool {
        self.groups.iter().any(|group| group.order(identity, Order::PowerOn))
    }

    /// Every server.
    pub fn report(&self) -> FleetReport {
        let mut servers = BTreeMap::new();
        for group in &self.groups {
            group.each(|server| {
                servers.insert(server.identity().to_string(), server_report(server));
            });
        }
        FleetReport {
            totals: self.stats(),
            duplicate_configures: servers.values().map(|server| u64::from(server.duplicate_configures)).sum(),
            median_cycle_ms: self.median_cycle().and_then(|median| u64::try_from(median.as_millis()).ok()),
            worked_ms: self.worked().and_then(|took| u64::try_from(took.as_millis()).ok()),
            servers,
        }
    }

    /// Writes [`Self::report`] to a file, replacing it in one step.
    pub fn write_report(&self, file: &Path) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.report())?;
        let temporary = file.with_extension("tmp");
        std::fs::write(&temporary, text)?;
        std::fs::rename(&temporary, file)
    }

    /// Waits until `reached` says yes, at most this long.
    pub async fn wait_until(
        &self,
        limit: Duration,
        reached: impl Fn(&FleetStats) -> bool,
    ) -> Result<FleetStats, FleetError> {
        let looking = async {
            loop {
                let changed = self.ledger.changed();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let stats = self.stats();
                if reached(&stats) {
                    return stats;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(limit, looking).await {
            Ok(stats) => Ok(stats),
            Err(_) => Err(FleetError::TimedOut {
                waited: limit,
                stats: Box::new(self.stats()),
                examples: self.unfinished(5),
            }),
        }
    }

    /// Waits until every server has sent its startup event. The broker reads it after the subscriptions, a moment later: who
    /// must not be earlier than the subscriptions waits for the event itself.
    pub async fn wait_until_announced(&self, limit: Duration) -> Result<FleetStats, FleetError> {
        self.wait_until(limit, |stats| stats.down == 0).await
    }

    /// Waits until every server is back as an ordinary server.
    pub async fn wait_until_all_provisioned(&self, limit: Duration) -> Result<FleetStats, FleetError> {
        self.wait_until(limit, |stats| stats.provisioned == stats.servers).await
    }

    /// Some servers that are not provisioned, each with phase and last error.
    pub fn unfinished(&self, most: usize) -> Vec<String> {
        let mut found = Vec::new();
        for group in &self.groups {
            group.each(|server| {
                let record = server.record();
                if record.phase != Phase::Provisioned && found.len() < most {
                    let error = record.last_error.as_deref().unwrap_or("no error");
                    found.push(format!("{}: {:?}, {error}", server.identity(), record.phase));
                }
            });
        }
        found
    }

    /// Completes when a connection has failed for good, with why. A healthy fleet never completes.
    pub async fn failed(&mut self) -> FleetError {
        while let Some(ended) = self.tasks.join_next().await {
            if let Ok(Err(error)) = ended {
                return FleetError::Connection(error);
            }
        }
        std::future::pending().await
    }

    /// Ends the fleet: all connections are dropped, nothing is announced.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Drop for FleetHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn server_report(server: &Server) -> ServerReport {
    ServerReport {
        record: server.record().clone(),
        duplicate_configures: server.record().duplicate_configures(),
        faults: server.afflictions().iter().map(|drawn| format!("{:?}", drawn.fault)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, expected: &str) {
        let names = identities(format, 12).map(|all| all.last().map(ToString::to_string).unwrap_or_default());
        assert_eq!(names.unwrap_or_else(|error| error.to_string()), expected);
    }

    #[test]
    fn names_are_numbered() {
        check("node{}.example.net", "node12.example.net");
        check("n{:05}.example.net", "n00012.example.net");
    }

    #[test]
    fn a_format_without_a_number_is_refused() {
        check(
            "node.example.net",
            "the identity format `node.example.net` gives every server the same name: write {} where the number goes",
        );
    }

    #[test]
    fn a_name_that_is_no_identity_is_refused() {
        check("bad name {}", "`bad name 1` cannot be the name of a server");
    }
}
