//! The section `control`: the service that running instances answer on, and its own login where it needs one.

use std::path::PathBuf;

use secrecy::SecretString;

use super::checked::{BrokerAddress, TlsFiles};
use super::fault::Faults;
use super::network::parse_address;
use super::raw::RawConfig;

const DEFAULT_PREFIX: &str = "quartermaster";
/// Longer ones would leave little of a subject.
const MAX_PREFIX: usize = 100;

/// The control service over NATS (`control`).
#[derive(Debug, Clone)]
pub struct ControlConfig {
    /// On by default.
    pub enabled: bool,
    /// First part of its subjects.
    pub subject_prefix: String,
    /// A connection of its own, for a broker or account other than that of provisioning; `None` = the daemon's link.
    pub login: Option<ControlLogin>,
}

/// The login of a connection for control alone.
#[derive(Debug, Clone, Default)]
pub struct ControlLogin {
    /// The brokers (`control.server`); `None` = those of provisioning.
    pub servers: Option<Vec<BrokerAddress>>,
    /// A NATS credentials file (`control.credentials`).
    pub credentials: Option<PathBuf>,
    /// User name (`control.user`).
    pub user: Option<String>,
    /// Its password (`control.password`).
    pub password: Option<SecretString>,
    /// `control.ca`, `control.certificate` and `control.key`.
    pub tls: TlsFiles,
}

pub(super) fn check(raw: &RawConfig, faults: &mut Faults) -> ControlConfig {
    let prefix = raw.control.subject_prefix.clone().unwrap_or_else(|| DEFAULT_PREFIX.to_owned());
    let is_token = |token: &str| {
        !token.is_empty()
            && token.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'*' | b'>' | b'.'))
            && !token.starts_with('$')
    };
    if !prefix.split('.').all(is_token) || prefix.len() > MAX_PREFIX {
        let help = "write words separated by dots, without wildcards, white space or a leading `$`";
        faults.error("control.subject_prefix", format!("{prefix:?} cannot begin a subject"), help);
    }
    ControlConfig {
        enabled: raw.control.enabled.unwrap_or(true),
        subject_prefix: prefix,
        login: login(raw, faults),
    }
}

fn login(raw: &RawConfig, faults: &mut Faults) -> Option<ControlLogin> {
    let text = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
    let path = |value: &Option<String>| text(value).map(PathBuf::from);
    let control = &raw.control;
    let servers = text(&control.server).map(|list| {
        let addresses = list.split(',').map(str::trim).filter(|one| !one.is_empty());
        addresses.filter_map(|one| server(one, faults)).collect::<Vec<_>>()
    });
    let login = ControlLogin {
        servers,
        credentials: path(&control.credentials),
        user: text(&control.user),
        password: text(&control.password).map(SecretString::from),
        tls: TlsFiles {
            certificate: path(&control.certificate),
            key: path(&control.key),
            ca: path(&control.ca),
        },
    };
    if login.user.is_some() != login.password.is_some() {
        let (key, other) = if login.user.is_some() {
            ("control.user", "control.password")
        } else {
            ("control.password", "control.user")
        };
        faults.error(key, format!("it needs {other}"), "set both or none");
    }
    let TlsFiles { certificate, key, ca } = &login.tls;
    if certificate.is_some() != key.is_some() {
        let key = if certificate.is_some() { "control.certificate" } else { "control.key" };
        faults.error(key, "a certificate and its key go together", "set both or none");
    } else if certificate.is_some() && ca.is_none() {
        let help = "set control.ca to the authority that signed the broker's certificate";
        faults.error("control.certificate", "it needs control.ca", help);
    }
    let is_own = login.servers.is_some()
        || login.credentials.is_some()
        || login.user.is_some()
        || login.password.is_some()
        || login.tls != TlsFiles::default();
    is_own.then_some(login)
}

/// One broker, of a scheme that a NATS client knows.
fn server(text: &str, faults: &mut Faults) -> Option<BrokerAddress> {
    const KEY: &str = "control.server";
    match parse_address(text) {
        Ok(address) if ["nats", "tls"].contains(&address.scheme.as_str()) => Some(address),
        Ok(address) => {
            let what = format!("the scheme {:?} is unknown", address.scheme);
            faults.error(KEY, what, "write nats://host:port, or tls://host:port");
            None
        }
        Err(what) => {
            faults.error(KEY, what, "write nats://host:port, several separated by commas");
            None
        }
    }
}
