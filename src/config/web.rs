//! The web listener: where it listens, with which certificate, and what it asks of visitors.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use quartermaster_proto::choria::Identity;

use super::checked::{ListenAddress, ListenTls, WebConfig};
use super::fault::Faults;
use super::raw::RawConfig;

/// The longest list of names.
const MAX_NAMES: usize = 64;

pub(super) fn listen(raw: &RawConfig, faults: &mut Faults) -> Option<ListenAddress> {
    let port = u16::try_from(raw.monitor_port.unwrap_or_default()).unwrap_or_else(|_| {
        faults.error("monitor_port", "it is no port between 0 and 65535", "0 turns the listener off");
        0
    });
    let Some(text) = raw.listen.as_deref().filter(|text| !text.is_empty()) else {
        return (port > 0).then_some(ListenAddress::Everywhere { port });
    };
    let address = text.parse::<SocketAddr>().ok().or_else(|| on_loopback(text));
    if let Some(address) = address {
        if port > 0 && port != address.port() {
            let what = format!("its port {} is not that of monitor_port ({port})", address.port());
            faults.error("listen", what, "leave the port out of `listen`, or remove monitor_port");
        }
        return Some(ListenAddress::At(address));
    }
    let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() else {
        faults.error(
            "listen",
            format!("{text:?} is no address"),
            "write for example 127.0.0.1:9090 or [::1]:9090",
        );
        return None;
    };
    if port == 0 {
        faults.warning(
            "listen",
            "it has no port, so the listener stays off",
            "write the port after the address",
        );
        return None;
    }
    Some(ListenAddress::At(SocketAddr::new(ip, port)))
}

/// A port alone, with or without a colon before it, is one of the loopback address.
fn on_loopback(text: &str) -> Option<SocketAddr> {
    let port = text.strip_prefix(':').unwrap_or(text).parse().ok()?;
    Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
}

/// True when others than this machine can reach it.
const fn is_open(listen: ListenAddress) -> bool {
    match listen {
        ListenAddress::Everywhere { .. } => true,
        ListenAddress::At(address) => !address.ip().is_loopback(),
    }
}

pub(super) fn check(
    raw: &RawConfig,
    listen: Option<ListenAddress>,
    identity: Option<&Identity>,
    faults: &mut Faults,
) -> WebConfig {
    let path = |value: &Option<String>| value.clone().filter(|path| !path.is_empty()).map(PathBuf::from);
    let tls = match (path(&raw.listen_tls.certificate), path(&raw.listen_tls.key)) {
        (Some(certificate), Some(key)) => Some(ListenTls { certificate, key }),
        (None, None) => None,
        (Some(_), None) => {
            faults.error("listen_tls.key", "it is missing", "name the private key of the certificate");
            None
        }
        (None, Some(_)) => {
            faults.error("listen_tls.certificate", "it is missing", "name the certificate of the key");
            None
        }
    };
    let mut names = raw.web.names.clone().unwrap_or_default();
    if names.len() > MAX_NAMES {
        faults.error("web.names", format!("there are more than {MAX_NAMES}"), "name those that people use");
        names.truncate(MAX_NAMES);
    }
    for (index, name) in names.iter().enumerate() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if name.is_empty() || !name.chars().all(is_name) {
            let what = format!("{name:?} is no name of a machine");
            faults.error(
                &format!("web.names[{index}]"),
                what,
                "write the name alone, without scheme or port",
            );
        }
    }
    names.extend(identity.map(ToString::to_string));
    let web = WebConfig {
        admin_token_file: path(&raw.web.admin_token_file),
        read_token_file: path(&raw.web.read_token_file),
        names,
        tls,
    };
    match listen {
        Some(listen) if is_open(listen) => warn_of_strangers(raw, &web, faults),
        Some(_) => {}
        None => warn_of_nothing(raw, faults),
    }
    web
}

/// Others than this machine can reach the listener.
fn warn_of_strangers(raw: &RawConfig, web: &WebConfig, faults: &mut Faults) {
    let key =
        if raw.listen.as_deref().is_some_and(|text| !text.is_empty()) { "listen" } else { "monitor_port" };
    let what = match (&web.tls, &web.read_token_file) {
        (Some(_), Some(_)) => return,
        (None, Some(_)) => {
            "other machines can reach the web listener, and it has no TLS: tokens and pages can be read on the way"
        }
        (Some(_), None) => {
            "other machines can reach the web listener, and it asks for no token: names of servers, their failures and what \
             helpers say can be read by everybody"
        }
        (None, None) => {
            "other machines can reach the web listener, and it has neither TLS nor a token: names of servers, their failures and \
             what helpers say can be read by everybody"
        }
    };
    let help = "write `listen: 127.0.0.1:PORT`, or set listen_tls and web.read_token_file";
    faults.warning(key, what, help);
}

/// What has no effect without a listener.
fn warn_of_nothing(raw: &RawConfig, faults: &mut Faults) {
    let set = [
        ("web.admin_token_file", raw.web.admin_token_file.is_some()),
        ("web.read_token_file", raw.web.read_token_file.is_some()),
        ("listen_tls.certificate", raw.listen_tls.certificate.is_some()),
    ];
    if let Some((key, _)) = set.iter().find(|(_, set)| *set) {
        faults.warning(key, "it has no effect while the web listener is off", "set listen or monitor_port");
    }
}
