//! The keys about the helper: its command line, its limits, its environment.

use std::time::Duration;

use super::checked::{HelperCommand, HelperConfig, HelperProtocol};
use super::daemon::duration;
use super::fault::Faults;
use super::providers::ProviderConfig;
use super::raw::RawConfig;
use super::shell;

const DEFAULT_HELPER_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HELPER_TIMEOUT: Duration = Duration::from_hours(1);
const DEFAULT_HELPER_ENV: [&str; 5] = ["PATH", "LANG", "HOME", "TZ", "HELPER_*"];
/// The entry of `providers` that describes the helper, when it is one.
pub const HELPER_PROVIDER: &str = "helper";
/// Variables that hold our own credentials: no helper ever gets them.
const CREDENTIAL_VARIABLES: [&str; 4] = [
    "MCOLLECTIVE_NATS_USERNAME",
    "MCOLLECTIVE_NATS_PASSWORD",
    "MCOLLECTIVE_NATS_CREDENTIALS",
    "CREDENTIALS_DIRECTORY",
];

pub(super) fn check(raw: &RawConfig, providers: &[ProviderConfig], faults: &mut Faults) -> HelperConfig {
    let timeout = match duration(faults, "helper_timeout", raw.helper_timeout.as_ref()) {
        Some(timeout) if timeout.is_zero() || timeout > MAX_HELPER_TIMEOUT => {
            faults.error(
                "helper_timeout",
                "it must be more than nothing and at most an hour",
                "the default is 10s",
            );
            DEFAULT_HELPER_TIMEOUT
        }
        Some(timeout) => timeout,
        None => DEFAULT_HELPER_TIMEOUT,
    };
    let protocol = match raw.helper_protocol.as_deref().unwrap_or("exec") {
        "exec" => HelperProtocol::Exec,
        "provider" => HelperProtocol::Provider,
        other => {
            faults.error(
                "helper_protocol",
                format!("there is no protocol {other:?}"),
                "write `exec`, a process for each server, or `provider`, one that lives on",
            );
            HelperProtocol::Exec
        }
    };
    let described = providers.iter().find(|provider| provider.name == HELPER_PROVIDER);
    let command = match described.filter(|_| protocol == HelperProtocol::Provider) {
        Some(provider) => {
            if raw.helper.is_some() {
                faults.error(
                    "helper",
                    format!("providers.{HELPER_PROVIDER} names the program already"),
                    "remove one of the two",
                );
            }
            if provider.builtin.is_some() {
                let key = format!("providers.{HELPER_PROVIDER}.source");
                let help = "write `exec:` and the path of your helper";
                faults.error(&key, "a builtin provider cannot decide about servers", help);
            }
            let program = provider.program.to_string_lossy().into_owned();
            HelperCommand { program, arguments: Vec::new() }
        }
        None => command(raw, faults),
    };
    HelperConfig { command, timeout, protocol, env: helper_env(raw, faults) }
}

fn command(raw: &RawConfig, faults: &mut Faults) -> HelperCommand {
    const KEY: &str = "helper";
    let mut words = match shell::split(raw.helper.as_deref().unwrap_or_default()) {
        Ok(words) => words.into_iter(),
        Err(error) => {
            faults.error(KEY, error.to_string(), "close the quote, or put a backslash before it");
            return HelperCommand::default();
        }
    };
    match words.next() {
        Some(program) if !program.is_empty() => HelperCommand { program, arguments: words.collect() },
        _ => {
            let what = if raw.helper.is_none() { "it is not set" } else { "it names no program" };
            faults.error(
                KEY,
                what,
                "write the path of the site's helper; docs/helpers.md shows how to write one",
            );
            HelperCommand::default()
        }
    }
}

fn helper_env(raw: &RawConfig, faults: &mut Faults) -> Vec<String> {
    let Some(names) = &raw.helper_env else { return DEFAULT_HELPER_ENV.map(str::to_owned).to_vec() };
    for (index, name) in names.iter().enumerate() {
        let key = format!("helper_env[{index}]");
        let stem = name.strip_suffix('*').unwrap_or(name);
        let is_name = stem.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && stem.bytes().next().is_some_and(|b| !b.is_ascii_digit());
        let covers =
            |variable: &&&str| **variable == name || (name.ends_with('*') && variable.starts_with(stem));
        if !is_name {
            let help = "write a name such as TZ, or a prefix such as SITE_*";
            faults.error(&key, format!("{name:?} is no name of a variable"), help);
        } else if let Some(secret) = CREDENTIAL_VARIABLES.iter().find(covers) {
            let what = format!(
                "it covers {secret}, which holds credentials of this instance and never reaches a helper"
            );
            faults.error(&key, what, "name the variables one by one");
        }
    }
    names.clone()
}
