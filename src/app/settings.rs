//! From the configuration to what each actor is told: the one place that knows both.

use std::num::NonZeroUsize;
use std::time::Duration;

use quartermaster_actors::fleet::{RetryError, RetryPolicy, RosterSettings};
use quartermaster_actors::helper::{HelperSettings, allowed_environment};
use quartermaster_actors::host::{Features, PlanSettings};
use quartermaster_actors::link::{LinkSettings, ServerAddress, Servers};
use quartermaster_proto::choria::Generation;

use crate::config::{BrokerAddress, COLLECTIVE, Config, Security, ServerSource};

/// How long a provisioned server is held back, as by the peer; its return is awaited as long.
const HOLD: Duration = Duration::from_secs(60);
/// How long a server keeps its provisioning lock for one provisioner (choria.md 4.3).
const LOCK_WINDOW: Duration = Duration::from_secs(120);
/// Cycles more that may wait for servers which have not answered yet: a waiting call costs next to nothing.
const SILENT: usize = 4096;

/// The roster's bounds.
pub fn roster(config: &Config) -> Result<RosterSettings, RetryError> {
    Ok(RosterSettings {
        queue: config.queue.get(),
        in_flight: config.in_flight.get(),
        silent: SILENT,
        interval: config.interval,
        hold: HOLD,
        busy: LOCK_WINDOW,
        retry: RetryPolicy::new(config.retry.first, config.retry.cap, config.retry.give_up_after)?,
    })
}

/// What every cycle has in common.
pub fn plan(config: &Config) -> PlanSettings {
    let repository = &config.upgrades.repository;
    PlanSettings {
        features: Features {
            pki: config.features.pki,
            jwt: config.features.jwt,
            ed25519: config.features.ed25519,
            upgrades: config.features.upgrades,
        },
        token: config.token.clone(),
        deny: config.enroll.deny_list.clone(),
        upgrades_repository: (!repository.is_empty()).then(|| repository.clone()),
        upgrades_optional: config.upgrades.optional,
    }
}

/// The helper and its limits. Its queue has room for every cycle there can be, so it is never what refuses.
pub fn helper(config: &Config) -> HelperSettings {
    let command = &config.helper.command;
    let mut settings = HelperSettings::new(command.program.clone(), command.arguments.clone());
    settings.slots = config.workers;
    settings.queue = config.in_flight.get().saturating_add(SILENT);
    settings.timeout = config.helper.timeout;
    let allowed: Vec<_> = config
        .helper
        .env
        .names
        .iter()
        .cloned()
        .chain(config.helper.env.prefixes.iter().map(|prefix| format!("{prefix}*")))
        .collect();
    settings.environment = allowed_environment(std::env::vars_os(), &allowed);
    settings
}

/// The protocol generation that goes with the security provider.
pub const fn generation(config: &Config) -> Generation {
    match config.security {
        Security::Choria { .. } => Generation::V2,
        Security::Insecure { .. } | Security::X509 { .. } => Generation::V1,
    }
}

/// The connection, but for its subscriptions.
pub fn link(config: &Config) -> LinkSettings {
    let mut settings = LinkSettings::new(servers(config), config.identity.clone(), generation(config));
    settings.require_tls = !matches!(config.security, Security::Insecure { .. });
    COLLECTIVE.clone_into(&mut settings.collective);
    settings.ttl = config.broker.ttl.get();
    settings.connect_timeout = config.broker.connect_timeout;
    settings.discovery_timeout = config.broker.discovery_timeout;
    settings.max_pending = config.in_flight.get().saturating_add(SILENT).saturating_mul(2);
    settings
}

fn servers(config: &Config) -> Servers {
    let address = |broker: &BrokerAddress| ServerAddress::new(broker.host.clone(), broker.port);
    match &config.broker.servers {
        ServerSource::List(list) => Servers::List(list.iter().map(address).collect()),
        ServerSource::Srv { domain, services, fallback } => Servers::Srv {
            domain: domain.clone().unwrap_or_default(),
            services: services.clone(),
            fallback: vec![address(fallback)],
        },
    }
}

/// Threads for signatures: half the cores, at least one, since signing comes in bursts beside everything else.
pub fn signing_threads() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores.div_ceil(2)).unwrap_or(NonZeroUsize::MIN)
}
