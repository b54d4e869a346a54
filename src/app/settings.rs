//! From the configuration to what each actor is told: the one place that knows both.

use std::num::NonZeroUsize;
use std::time::Duration;

use quartermaster_actors::fleet::{RetryError, RetryPolicy, RosterSettings};
use quartermaster_actors::helper::{HelperSettings, allowed_environment};
use quartermaster_actors::host::{Features, PlanSettings, SiteSteps};
use quartermaster_actors::link::{Inbox, LinkSettings, ServerAddress, Servers};
use quartermaster_actors::provider::ProviderSettings;
use quartermaster_actors::vault::{self, ClientTls, TlsMode, VaultSettings};
use quartermaster_proto::choria::Generation;

use super::providers;
use crate::config::{
    BrokerAddress, COLLECTIVE, Config, ControlLogin, HELPER_PROVIDER, Security, ServerSource, TlsFiles,
    VerifyKeySource,
};

/// How long a provisioned server is held back, as by the peer; its return is awaited as long.
const HOLD: Duration = Duration::from_mins(1);
/// How long a server keeps its provisioning lock for one provisioner (choria.md 4.3).
const LOCK_WINDOW: Duration = Duration::from_mins(2);
/// Cycles more that may wait for servers which have not answered yet: a waiting call costs next to nothing.
const SILENT: usize = 4096;
/// How long a provider's process may have nothing to do (provider.md F16).
const IDLE_STOP: Duration = Duration::from_mins(5);
/// So long do crashes of a helper count together, and so long is one that crashed too often not tried again: hosts come back for
/// their next attempt before long.
const HELPER_WINDOW: Duration = Duration::from_mins(1);
/// Questions to the link of control at once: it publishes what was changed, and little else.
const CONTROL_CALLS: usize = 256;

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
pub fn plan(config: &Config, steps: SiteSteps) -> PlanSettings {
    let repository = &config.upgrades.repository;
    PlanSettings {
        features: Features {
            pki: config.features.pki,
            jwt: config.features.jwt,
            ed25519: config.features.ed25519,
            upgrades: config.features.upgrades,
            steps: !config.steps.is_empty(),
        },
        token: config.token.clone(),
        deny: config.enroll.deny_list.clone(),
        upgrades_repository: (!repository.is_empty()).then(|| repository.clone()),
        upgrades_optional: config.upgrades.optional,
        steps,
    }
}

/// The helper and its limits. Its queue has room for every cycle there can be, so it is never what refuses.
pub fn helper(config: &Config) -> HelperSettings {
    let command = &config.helper.command;
    let mut settings = HelperSettings::new(command.program.clone(), command.arguments.clone());
    settings.slots = config.workers;
    settings.queue = config.in_flight.get().saturating_add(SILENT);
    settings.timeout = config.helper.timeout;
    settings.environment = allowed_environment(std::env::vars_os(), &config.helper.env);
    settings
}

/// The helper as a provider: as many processes as it takes to have `workers` calls open. They start with the first call, since an
/// instance that is paused or on standby starts no helper, and end when there is nothing to do for a while.
pub fn helper_provider(config: &Config) -> ProviderSettings {
    let described = config.providers.iter().find(|provider| provider.name == HELPER_PROVIDER);
    let mut settings = if let Some(described) = described {
        let mut settings = providers::settings(config, described);
        settings.max_in_flight = described.max_in_flight.unwrap_or(config.workers).min(config.workers);
        settings
    } else {
        let command = &config.helper.command;
        let mut settings = ProviderSettings::new(HELPER_PROVIDER, command.program.clone());
        settings.arguments = command.arguments.iter().map(Into::into).collect();
        settings.environment = allowed_environment(std::env::vars_os(), &config.helper.env);
        settings.max_in_flight = config.workers;
        settings
    };
    // Whoever says how many processes there shall be is taken at their word.
    settings.at_once = Some(config.workers).filter(|_| settings.instances.get() == 1);
    settings.queue = helper(config).queue;
    settings.eager = false;
    settings.idle_stop = settings.idle_stop.or(Some(IDLE_STOP));
    if described.is_none_or(|described| described.restart.window.is_none()) {
        settings.restart.window = HELPER_WINDOW;
    }
    settings
}

/// Those of a helper's attributes that are there for each server.
pub fn helper_always(config: &Config) -> Vec<&'static str> {
    let features = config.features;
    let by_feature = [
        (true, "identity"),
        (true, "inventory"),
        (features.pki, "csr"),
        (features.ed25519, "ed25519_pubkey"),
        (features.jwt, "jwt"),
    ];
    by_feature.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect()
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
    let mut settings = LinkSettings::new(servers(config), config.identity.as_str(), generation(config));
    settings.require_tls = !matches!(config.security, Security::Insecure { .. });
    COLLECTIVE.clone_into(&mut settings.collective);
    settings.ttl = config.broker.ttl.get();
    settings.connect_timeout = config.broker.connect_timeout;
    settings.discovery_timeout = config.broker.discovery_timeout;
    settings.max_pending = config.in_flight.get().saturating_add(SILENT).saturating_mul(2);
    settings
}

/// The connection of control alone: no subscription but its own inboxes.
pub fn control_link(config: &Config, login: &ControlLogin) -> LinkSettings {
    let servers = match &login.servers {
        Some(list) => Servers::List(list.iter().filter_map(address).collect()),
        None => servers(config),
    };
    let daemon_tls = login.servers.is_none() && !matches!(config.security, Security::Insecure { .. });
    let mut settings = plain_link(servers, config.identity.as_str(), login);
    settings.require_tls |= daemon_tls;
    settings.connect_timeout = config.broker.connect_timeout;
    settings
}

/// A connection as any NATS client has it.
pub fn plain_link(servers: Servers, name: &str, login: &ControlLogin) -> LinkSettings {
    let wants_tls = matches!(&servers, Servers::List(list) if list.iter().any(ServerAddress::wants_tls))
        || has_tls(login);
    let mut settings = LinkSettings::new(servers, name, Generation::V1);
    settings.position = "control_link";
    settings.inbox = Inbox::Plain;
    settings.require_tls = wants_tls;
    settings.max_pending = CONTROL_CALLS;
    settings
}

/// A broker of control, whose scheme may ask for TLS.
pub fn address(broker: &BrokerAddress) -> Option<ServerAddress> {
    ServerAddress::parse(&broker.to_string()).ok()
}

fn has_tls(login: &ControlLogin) -> bool {
    login.tls != TlsFiles::default()
}

/// The login of control on a connection of its own; with the brokers of provisioning, their TLS unless it has its own.
pub fn control_vault(config: &Config, login: &ControlLogin) -> VaultSettings {
    let mut settings = plain_vault(config.identity.as_str(), login);
    if login.servers.is_none() && !has_tls(login) {
        let daemon = vault(config);
        settings.own_tls = Some(daemon.client_tls());
        settings.tls = daemon.tls;
    }
    settings
}

/// A login as any NATS client has it. Without TLS files a broker that wants TLS is verified with the machine's authorities.
pub fn plain_vault(name: &str, login: &ControlLogin) -> VaultSettings {
    let mut settings = VaultSettings::new(name);
    settings.position = "control_vault";
    settings.broker_user.clone_from(&login.user);
    settings.broker_password.clone_from(&login.password);
    settings.nats_credentials.clone_from(&login.credentials);
    settings.threads = NonZeroUsize::MIN;
    if has_tls(login) {
        let TlsFiles { certificate, key, ca } = login.tls.clone();
        settings.own_tls = Some(ClientTls { certificate, key, ca });
        settings.tls = TlsMode::Verify;
    }
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

/// Keys, tokens and passwords, as paths and secrets.
pub fn vault(config: &Config) -> VaultSettings {
    let certname = match &config.security {
        Security::Insecure { certname } | Security::X509 { certname, .. } => certname.clone(),
        Security::Choria { .. } => config.identity.to_string(),
    };
    let mut settings = VaultSettings::new(certname);
    (settings.security, settings.tls) = match &config.security {
        Security::Insecure { .. } => (vault::Security::Insecure, TlsMode::Off),
        Security::X509 { tls, .. } => {
            let TlsFiles { certificate, key, ca } = tls.clone();
            let security = vault::Security::File {
                certificate: certificate.unwrap_or_default(),
                key: key.unwrap_or_default(),
                ca: ca.unwrap_or_default(),
            };
            (security, TlsMode::Verify)
        }
        Security::Choria { token_file, seed_file, tls } => {
            let TlsFiles { certificate, key, ca } = tls.clone();
            // Without a CA the broker's certificate is not verified, as by the peer (choria.md 1.2).
            let mode = if ca.is_some() { TlsMode::Verify } else { TlsMode::Insecure };
            let security = vault::Security::Choria {
                token_file: token_file.clone(),
                seed_file: seed_file.clone(),
                tls: ClientTls { certificate, key, ca },
            };
            (security, mode)
        }
    };
    settings.broker_user.clone_from(&config.broker.user);
    settings.broker_password.clone_from(&config.broker.password);
    settings.provisioning_token = config.token.clone();
    settings.jwt_verify_cert = config.enroll.jwt_verify.as_ref().map(|source| match source {
        VerifyKeySource::File(path) => path.display().to_string(),
        VerifyKeySource::Key(key) => hex::encode(key),
    });
    settings.jwt_signing_key.clone_from(&config.enroll.jwt_signing_key);
    settings.jwt_signing_token.clone_from(&config.enroll.jwt_signing_token);
    settings.server_jwt_validity = config.enroll.server_jwt_validity;
    settings.threads = signing_threads();
    // Every cycle may want a signature at the same moment; none shall be refused for it.
    let cycles = config.in_flight.get().saturating_add(SILENT).saturating_mul(2);
    settings.queue = NonZeroUsize::new(cycles).unwrap_or(settings.queue);
    settings
}

/// Threads for signatures: half the cores, at least one, since signing comes in bursts beside everything else.
fn signing_threads() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores.div_ceil(2)).unwrap_or(NonZeroUsize::MIN)
}
