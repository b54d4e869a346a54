//! The environment of a provider's processes (provider.md D11).

use std::ffi::OsString;

use crate::child::allowed_environment;

/// What a provider gets in a service: nothing of ours but these.
pub const CLEAN: [&str; 17] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];

/// What no provider gets in either mode, whatever is asked for: variables that hold or lead to this process's own secrets, and those
/// by which a service manager speaks to this process. A name that ends in `*` stands for all with that prefix.
const OURS: [&str; 10] = [
    "QUARTERMASTER_*",
    "QM_*",
    "CHORIA_*",
    "MCOLLECTIVE_*",
    "NATS_*",
    "CREDENTIALS_DIRECTORY",
    "NOTIFY_SOCKET",
    "WATCHDOG_*",
    "LISTEN_*",
    "X_PROVIDER_*",
];

/// How much of our environment a provider gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherit {
    /// All but our own secrets: on the command line.
    All,
    /// The list [`CLEAN`]: in a service.
    Clean,
}

/// What to hand on and to set besides.
#[derive(Debug, Clone)]
pub struct EnvironmentRules {
    /// Where to begin.
    pub inherit: Inherit,
    /// More names to hand on; a `*` at the end stands for all with that prefix.
    pub pass: Vec<String>,
    /// Variables to set; no secret should be here, since other users' processes may see environments.
    pub set: Vec<(OsString, OsString)>,
    /// Names of variables that hold our own secrets, beyond those known.
    pub remove: Vec<String>,
}

/// The environment that these rules make of `variables`.
pub fn environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    rules: &EnvironmentRules,
) -> Vec<(OsString, OsString)> {
    let passed: Vec<(OsString, OsString)> = match rules.inherit {
        Inherit::All => variables.into_iter().collect(),
        Inherit::Clean => {
            let names: Vec<&str> = CLEAN.into_iter().chain(rules.pass.iter().map(String::as_str)).collect();
            allowed_environment(variables, &names)
        }
    };
    let ours: Vec<&str> = OURS.into_iter().chain(rules.remove.iter().map(String::as_str)).collect();
    let removed: Vec<OsString> =
        allowed_environment(passed.clone(), &ours).into_iter().map(|(name, _)| name).collect();
    let mut environment: Vec<(OsString, OsString)> = passed
        .into_iter()
        .filter(|(name, _)| !removed.contains(name) && !rules.set.iter().any(|(set, _)| set == name))
        .collect();
    environment.extend(rules.set.iter().cloned());
    environment
}
