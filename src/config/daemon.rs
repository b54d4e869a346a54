//! The part of the configuration that comes from the YAML file, checked (choria.md 12.2 and our additions).

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;

use super::checked::{
    Config, EnrollConfig, Features, LogConfig, LogLevel, LogTarget, RetryConfig, UpgradesConfig,
    VerifyKeySource,
};
use super::duration::{parse_duration, show_duration};
use super::fault::Faults;
use super::network::Network;
use super::raw::RawConfig;
use super::surroundings::Surroundings;
use super::{cluster, control, deny_list, helper, providers, steps, web};

const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);
const DEFAULT_COMPONENT: &str = "provision_mode_server";
const DEFAULT_VALIDITY: Duration = Duration::from_hours(365 * 24);
const IN_FLIGHT_PER_WORKER: usize = 32;
const DEFAULT_QUEUE: usize = 50_000;
const MAX_WORKERS: usize = 10_000;
const MAX_COUNT: usize = 10_000_000;
const DEFAULT_RETRY: RetryConfig =
    RetryConfig { first: Duration::from_mins(1), cap: Duration::from_mins(15), give_up_after: None };

pub(super) fn check(
    yaml: &Path,
    choria: &Path,
    raw: &RawConfig,
    network: Network,
    around: &Surroundings<'_>,
    faults: &mut Faults,
) -> Option<Config> {
    let workers = count(faults, "workers", raw.workers, MAX_WORKERS).unwrap_or(around.cpus);
    let in_flight = count(faults, "in_flight", raw.in_flight, MAX_COUNT).unwrap_or_else(|| {
        workers.saturating_mul(NonZeroUsize::MIN.saturating_add(IN_FLIGHT_PER_WORKER - 1))
    });
    let queue = count(faults, "queue", raw.queue, MAX_COUNT);
    if raw.choria_insecure == Some(true) {
        faults.warning(
            "choria_insecure",
            "this instance connects without TLS and signs nothing; stock Choria brokers accept servers in provisioning mode over TLS only, \
             so the two do not meet there",
            "remove it unless the broker was set up for it",
        );
    }
    let listen = web::listen(raw, faults);
    let control = control::check(raw, faults);
    let yaml_file = around.absolute(yaml);
    let providers = providers::check(&yaml_file, raw, faults);
    let helper = helper::check(raw, &providers, faults);
    let config = Config {
        steps: steps::check(raw, &providers, faults),
        providers,
        providers_dir: providers::folder(&yaml_file, raw),
        providers_allow: providers::allowed(raw, faults),
        yaml_file,
        choria_file: around.absolute(choria),
        workers,
        interval: interval(raw, faults),
        log: log(raw, faults),
        helper,
        token: SecretString::from(raw.token.clone().unwrap_or_default()),
        lifecycle_component: component(raw, faults),
        site: raw.site.clone().unwrap_or_default(),
        features: features(raw, faults),
        enroll: enroll(raw, around, faults),
        upgrades: upgrades(raw, faults),
        broker: network.broker,
        security: network.security,
        listen,
        web: web::check(raw, listen, network.identity.as_ref(), faults),
        in_flight,
        queue: queue.or(NonZeroUsize::new(DEFAULT_QUEUE)).unwrap_or(NonZeroUsize::MIN),
        retry: retry(raw, faults),
        state_dir: state_dir(raw, around, faults),
        claims: cluster::claims(raw, &control, faults),
        control,
        cluster: cluster::mode(raw, faults),
        strict: raw.strict == Some(true),
        // Last, so that everything else was checked even when there is no identity.
        identity: network.identity?,
    };
    Some(config)
}

/// A count: `None` when unset or zero.
fn count(faults: &mut Faults, key: &str, value: Option<i64>, max: usize) -> Option<NonZeroUsize> {
    let value = value?;
    match usize::try_from(value) {
        Ok(count) if count <= max => NonZeroUsize::new(count),
        _ => {
            faults.error(key, format!("{value} is not between 0 and {max}"), "0 stands for the default");
            None
        }
    }
}

pub(super) fn duration(faults: &mut Faults, key: &str, text: Option<&String>) -> Option<Duration> {
    match parse_duration(text?) {
        Ok(duration) => Some(duration),
        Err(error) => {
            faults.error(
                key,
                format!("it is no duration: {error}"),
                "write for example 90s, 10m, 1h30m, 2w or 1y",
            );
            None
        }
    }
}

fn interval(raw: &RawConfig, faults: &mut Faults) -> Duration {
    match duration(faults, "interval", raw.interval.as_ref()) {
        Some(interval) if interval < DEFAULT_INTERVAL => {
            faults.error(
                "interval",
                format!("{} is shorter than a minute", show_duration(interval)),
                "write 1m or more",
            );
            DEFAULT_INTERVAL
        }
        Some(interval) => interval,
        None => DEFAULT_INTERVAL,
    }
}

fn log(raw: &RawConfig, faults: &mut Faults) -> LogConfig {
    let target = match raw.logfile.as_deref().unwrap_or_default() {
        "" => LogTarget::Stdout,
        name if name.eq_ignore_ascii_case("stdout") => LogTarget::Stdout,
        name if name.eq_ignore_ascii_case("stderr") => LogTarget::Stderr,
        name if name.eq_ignore_ascii_case("discard") => LogTarget::Discard,
        path => LogTarget::File(PathBuf::from(path)),
    };
    let level = match raw.loglevel.as_deref().unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "info" => LogLevel::Info,
        "debug" => LogLevel::Debug,
        "warn" => LogLevel::Warn,
        "error" | "fatal" => LogLevel::Error,
        other => {
            let what = format!("there is no level {other:?}; warn is used, as Choria does");
            faults.warning("loglevel", what, "write debug, info, warn, error or fatal");
            LogLevel::Warn
        }
    };
    LogConfig { target, level }
}

fn component(raw: &RawConfig, faults: &mut Faults) -> String {
    let name = raw
        .lifecycle_component
        .clone()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| DEFAULT_COMPONENT.to_owned());
    if name.contains(|c: char| matches!(c, '.' | '>' | '*') || c.is_whitespace() || c.is_control()) {
        let help = "it is one word of a subject; the default is provision_mode_server";
        faults.error("lifecycle_component", format!("{name:?} holds a dot, a wildcard or white space"), help);
    }
    name
}

fn features(raw: &RawConfig, faults: &mut Faults) -> Features {
    let on = |value: Option<bool>| value == Some(true);
    let ed25519 = on(raw.features.ed25519);
    let features = Features {
        pki: on(raw.features.pki),
        jwt: on(raw.features.jwt) || ed25519,
        ed25519,
        upgrades: on(raw.features.upgrades),
    };
    if features.pki && ed25519 {
        let help = "turn one of the two off: pki is for x509 networks, ed25519 for issuer networks";
        faults.error("features.pki", "it cannot be on together with features.ed25519", help);
    }
    if features.jwt && raw.jwt_verify_cert.as_deref().unwrap_or_default().is_empty() {
        let key = if on(raw.features.jwt) { "features.jwt" } else { "features.ed25519" };
        faults.error(
            key,
            "it needs jwt_verify_cert, without which no server's token can be verified and every server fails",
            "set jwt_verify_cert to the public key or certificate that verifies provisioning.jwt",
        );
    }
    if ed25519 && raw.jwt_signing_key.as_deref().unwrap_or_default().is_empty() {
        faults.error(
            "features.ed25519",
            "it needs jwt_signing_key, without which no server JWT can be issued and every server fails",
            "set jwt_signing_key to the key that signs server JWTs",
        );
    }
    features
}

fn enroll(raw: &RawConfig, around: &Surroundings<'_>, faults: &mut Faults) -> EnrollConfig {
    let path = |value: &Option<String>| value.clone().filter(|path| !path.is_empty()).map(PathBuf::from);
    let validity = match duration(faults, "server_jwt_validity", raw.server_jwt_validity.as_ref()) {
        Some(Duration::ZERO) => {
            faults.error("server_jwt_validity", "zero is no validity", "the default is 1y");
            DEFAULT_VALIDITY
        }
        Some(validity) => validity,
        None => DEFAULT_VALIDITY,
    };
    EnrollConfig {
        jwt_verify: path(&raw.jwt_verify_cert).and_then(|source| verify_key(&source, around, faults)),
        jwt_signing_key: path(&raw.jwt_signing_key),
        jwt_signing_token: path(&raw.jwt_signing_token),
        server_jwt_validity: validity,
        deny_list: deny_list::compile(raw.cert_deny_list.as_deref().unwrap_or_default(), faults),
    }
}

/// A file if there is one, else the key itself.
fn verify_key(source: &Path, around: &Surroundings<'_>, faults: &mut Faults) -> Option<VerifyKeySource> {
    if around.absolute(source).exists() {
        return Some(VerifyKeySource::File(source.to_owned()));
    }
    let mut key = [0_u8; 32];
    if hex::decode_to_slice(source.to_string_lossy().trim(), &mut key).is_ok() {
        return Some(VerifyKeySource::Key(key));
    }
    let what = format!(
        "`{}` is neither a file that exists nor a public key of 64 hexadecimal digits",
        source.display()
    );
    faults.missing(
        "jwt_verify_cert",
        what,
        "name the certificate or public key that verifies provisioning.jwt",
    );
    None
}

fn upgrades(raw: &RawConfig, faults: &mut Faults) -> UpgradesConfig {
    let upgrades = UpgradesConfig {
        repository: raw.upgrades_repository.clone().unwrap_or_default(),
        optional: raw.upgrades_optional == Some(true),
    };
    if raw.features.upgrades == Some(true) && upgrades.repository.is_empty() {
        let what = if upgrades.optional {
            "it has no effect without upgrades_repository"
        } else {
            "without upgrades_repository every server whose helper asks for an upgrade fails"
        };
        faults.warning("features.upgrades", what, "set upgrades_repository");
    }
    upgrades
}

fn retry(raw: &RawConfig, faults: &mut Faults) -> RetryConfig {
    let give_up = raw.retry.give_up_after.as_ref().filter(|text| !text.eq_ignore_ascii_case("never"));
    let first = duration(faults, "retry.first", raw.retry.first.as_ref()).unwrap_or(DEFAULT_RETRY.first);
    let cap = duration(faults, "retry.cap", raw.retry.cap.as_ref());
    let give_up_after = duration(faults, "retry.give_up_after", give_up);
    if first.is_zero() {
        faults.error("retry.first", "zero would try a failing server without rest", "the default is 1m");
    }
    if cap.is_some_and(|cap| cap < first) {
        faults.error("retry.cap", "it is shorter than retry.first", "the wait grows from first to cap");
    }
    RetryConfig { first, cap: cap.unwrap_or(DEFAULT_RETRY.cap).max(first), give_up_after }
}

fn state_dir(raw: &RawConfig, around: &Surroundings<'_>, faults: &mut Faults) -> Option<PathBuf> {
    let configured = raw.state_dir.clone().filter(|path| !path.is_empty()).map(PathBuf::from);
    // systemd names several folders in one variable when a unit has several.
    let given = || {
        let folders = around.env.get("STATE_DIRECTORY")?;
        folders.split(':').next().filter(|path| !path.is_empty()).map(PathBuf::from)
    };
    let folder = around.absolute(&configured.or_else(given)?);
    if folder.exists() && !folder.is_dir() {
        let help = "name a folder of its own for each instance; it is made if it is missing";
        faults.error("state_dir", format!("{} is no folder", folder.display()), help);
    }
    Some(folder)
}
