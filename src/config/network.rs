//! The part of the configuration that comes from choria.cfg: who we are, how we prove it, where the brokers are (choria.md 1.5 and 11).

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quartermaster_proto::choria::Identity;
use secrecy::SecretString;

use super::checked::{BrokerAddress, BrokerConfig, Security, ServerSource, TlsFiles};
use super::choria_cfg::ChoriaCfg;
use super::fault::{Fault, FaultKind, Faults, Severity};
use super::raw::RawConfig;
use super::surroundings::Surroundings;

/// What choria.cfg decides.
#[derive(Debug, Clone)]
pub(super) struct Network {
    /// `None`, with a fault, when nothing usable was found.
    pub identity: Option<Identity>,
    pub security: Security,
    pub broker: BrokerConfig,
}

/// The user that the broker places in the account of provisioning (choria.md 1.2).
const PROVISIONER_USER: &str = "provisioner";
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_mins(2);
const DEFAULT_DISCOVERY_TIMEOUT: u32 = 2;
const MAX_DISCOVERY_TIMEOUT: u32 = 300;
const DEFAULT_TTL: NonZeroU32 = NonZeroU32::MIN.saturating_add(59);
/// Nodes drop protocol 1 requests that live for less (choria.md 3.3).
const MIN_V1_TTL: u32 = 30;
const SRV_SERVICES: [&str; 2] = ["_mcollective-server._tcp", "_x-puppet-mcollective._tcp"];
const PUPPET_SSL_DIR: &str = "/etc/puppetlabs/puppet/ssl";

struct Check<'a, 'e> {
    cfg: &'a ChoriaCfg,
    file: &'a Path,
    around: &'a Surroundings<'e>,
    faults: &'a mut Faults,
}

pub(super) fn check(
    raw: &RawConfig,
    cfg: &ChoriaCfg,
    file: &Path,
    around: &Surroundings<'_>,
    faults: &mut Faults,
) -> Network {
    let mut check = Check { cfg, file, around, faults };
    check.refuse_federation();
    let identity = check.identity();
    let security = check.security(raw, identity.as_ref().map_or("", Identity::as_str));
    let broker = check.broker(raw, &security);
    Network { identity, security, broker }
}

impl Check<'_, '_> {
    /// A fault about a key that the file may not have.
    fn fault(&mut self, severity: Severity, key: &str, what: impl Into<String>, help: &str) {
        if self.faults.place(key).is_some() {
            self.faults.about(severity, FaultKind::Config, key, what, help);
        } else {
            self.faults.push(Fault {
                severity,
                kind: FaultKind::Config,
                file: Some(self.file.to_owned()),
                place: None,
                key: Some(key.to_owned()),
                what: what.into(),
                help: (!help.is_empty()).then(|| help.to_owned()),
            });
        }
    }

    fn refuse_federation(&mut self) {
        const KEY: &str = "plugin.choria.federation.collectives";
        let from_env = self.around.env.get("CHORIA_FED_COLLECTIVE").filter(|value| !value.is_empty());
        let from_file = self.cfg.list(KEY).iter().any(|name| !name.is_empty());
        if from_env.is_some() || from_file {
            let what = if from_env.is_some() {
                "the environment variable CHORIA_FED_COLLECTIVE names federation collectives, through which no provisioning is possible"
            } else {
                "no provisioning is possible through federation collectives"
            };
            self.fault(Severity::Error, KEY, what, "remove it and connect to the broker of the fleet itself");
        }
    }

    fn identity(&mut self) -> Option<Identity> {
        let configured = self.cfg.text("identity").map(str::to_owned);
        let text = configured.unwrap_or_else(|| {
            let hostname = self.around.names.hostname();
            if hostname.matches('.').count() > 1 {
                hostname
            } else {
                self.around.names.full_name().unwrap_or(hostname)
            }
        });
        match Identity::parse(&text) {
            Ok(identity) => Some(identity),
            Err(error) => {
                let help = "set `identity` to the full name of this machine";
                self.fault(Severity::Error, "identity", error.to_string(), help);
                None
            }
        }
    }

    /// The name in a v1 caller id. `always_user` is Puppet's rule: the user's name even for root.
    fn certname(&mut self, identity: &str, always_user: bool) -> String {
        if let Some(name) = self.around.env.get("MCOLLECTIVE_CERTNAME").filter(|name| !name.is_empty()) {
            return name;
        }
        let user = self.around.env.get("USER").filter(|user| !user.is_empty());
        match user {
            Some(user) if always_user || !self.around.is_root => format!("{user}.mcollective"),
            None if always_user => {
                self.fault(
                    Severity::Error,
                    "plugin.security.provider",
                    "neither MCOLLECTIVE_CERTNAME nor USER is set, so the name of our certificate is unknown",
                    "set MCOLLECTIVE_CERTNAME",
                );
                identity.to_owned()
            }
            _ => identity.to_owned(),
        }
    }

    fn security(&mut self, raw: &RawConfig, identity: &str) -> Security {
        const KEY: &str = "plugin.security.provider";
        if raw.choria_insecure == Some(true) {
            return Security::Insecure { certname: self.certname(identity, false) };
        }
        match self.cfg.text(KEY).unwrap_or("puppet") {
            "file" => Security::X509 {
                certname: self.certname(identity, false),
                tls: TlsFiles {
                    certificate: self.required("plugin.security.file.certificate"),
                    key: self.required("plugin.security.file.key"),
                    ca: self.required("plugin.security.file.ca"),
                },
            },
            "puppet" => self.puppet(identity),
            "choria" => self.choria(),
            other @ ("pkcs11" | "certmanager") => {
                let what = format!("the provider `{other}` is not supported");
                self.fault(Severity::Error, KEY, what, "use `file` with the same certificate, or `choria`");
                Security::Insecure { certname: identity.to_owned() }
            }
            other => {
                let near = ["file", "choria", "puppet"]
                    .into_iter()
                    .find(|name| strsim::jaro_winkler(name, other) > 0.8);
                let help = near
                    .map_or("use `file` or `choria`".to_owned(), |near| format!("did you mean `{near}`?"));
                self.fault(Severity::Error, KEY, format!("there is no provider {other:?}"), &help);
                Security::Insecure { certname: identity.to_owned() }
            }
        }
    }

    fn required(&mut self, key: &str) -> Option<PathBuf> {
        let path = self.cfg.path(key);
        if path.is_none() {
            self.fault(Severity::Error, key, "it is not set", "the security provider needs this file");
        }
        path
    }

    fn puppet(&mut self, identity: &str) -> Security {
        let certname = self.certname(identity, true);
        let folder = self.cfg.path("plugin.choria.ssldir").unwrap_or_else(|| match self.around.home() {
            Some(home) if !self.around.is_root => Path::new(&home).join(".puppetlabs/etc/puppet/ssl"),
            _ => PathBuf::from(PUPPET_SSL_DIR),
        });
        let pem = format!("{certname}.pem");
        let tls = TlsFiles {
            certificate: Some(folder.join("certs").join(&pem)),
            key: Some(folder.join("private_keys").join(&pem)),
            ca: Some(folder.join("certs/ca.pem")),
        };
        Security::X509 { certname, tls }
    }

    fn choria(&mut self) -> Security {
        let token_file = self.required("plugin.security.choria.token_file").unwrap_or_default();
        let seed_file = self.required("plugin.security.choria.seed_file").unwrap_or_default();
        let mut tls = TlsFiles {
            certificate: self.cfg.path("plugin.security.choria.certificate"),
            key: self.cfg.path("plugin.security.choria.key"),
            ca: self.cfg.path("plugin.security.choria.ca"),
        };
        if tls.certificate.is_some() != tls.key.is_some() {
            let (set, unset) =
                if tls.key.is_some() { ("key", "certificate") } else { ("certificate", "key") };
            let what = format!("it has no effect without `plugin.security.choria.{unset}`");
            self.fault(Severity::Warning, &format!("plugin.security.choria.{set}"), what, "set both or none");
            (tls.certificate, tls.key) = (None, None);
        }
        Security::Choria { token_file, seed_file, tls }
    }

    fn broker(&mut self, raw: &RawConfig, security: &Security) -> BrokerConfig {
        let password = raw.broker_provisioning_password.clone().filter(|password| !password.is_empty());
        if password.is_none() && !matches!(security, Security::Insecure { .. }) {
            self.faults.warning(
                "broker_provisioning_password",
                "it is not set: a Choria broker will not let this instance meet servers that wait to be provisioned",
                "set it to the broker's plugin.choria.network.provisioning.client_password",
            );
        }
        let (user, password) = if password.is_some() {
            (Some(PROVISIONER_USER.to_owned()), password)
        } else {
            let text = |key| self.cfg.text(key).map(str::to_owned);
            (text("plugin.nats.user"), text("plugin.nats.pass"))
        };
        BrokerConfig {
            servers: self.servers(),
            user,
            password: password.map(SecretString::from),
            credentials_file: self.cfg.path("plugin.nats.credentials"),
            connect_timeout: self.connect_timeout(),
            discovery_timeout: self.discovery_timeout(),
            ttl: self.ttl(matches!(security, Security::Choria { .. })),
        }
    }

    fn servers(&mut self) -> ServerSource {
        const KEY: &str = "plugin.choria.middleware_hosts";
        let mut hosts = Vec::new();
        for entry in self.cfg.list(KEY).to_vec() {
            match parse_address(&entry) {
                _ if entry.is_empty() => {}
                Ok(address) => hosts.push(address),
                Err(what) => self.fault(
                    Severity::Error,
                    KEY,
                    what,
                    "write host:port, several of them separated by commas",
                ),
            }
        }
        if !hosts.is_empty() {
            return ServerSource::List(hosts);
        }
        let fallback = BrokerAddress { scheme: "nats".to_owned(), host: "puppet".to_owned(), port: 4222 };
        if self.cfg.boolean("plugin.choria.use_srv") == Some(false) {
            return ServerSource::List(vec![fallback]);
        }
        let configured = match self.around.env.get("CHORIA_SRV_DOMAIN") {
            Some(domain) => Some(domain),
            None => self.cfg.text("plugin.choria.srv_domain").map(str::to_owned),
        };
        let domain = configured.filter(|domain| !domain.is_empty()).or_else(|| self.around.names.domain());
        if domain.is_none() {
            let what =
                "it is not set and this machine's domain is unknown, so only nats://puppet:4222 is tried";
            self.fault(
                Severity::Warning,
                "plugin.choria.srv_domain",
                what,
                "set it, or set plugin.choria.middleware_hosts",
            );
        }
        ServerSource::Srv { domain, services: SRV_SERVICES.map(str::to_owned).to_vec(), fallback }
    }

    fn connect_timeout(&mut self) -> Duration {
        const KEY: &str = "plugin.choria.network.connect_timeout";
        match self.cfg.duration(KEY) {
            None => DEFAULT_CONNECT_TIMEOUT,
            Some(Duration::ZERO) => {
                self.fault(
                    Severity::Warning,
                    KEY,
                    "zero is no limit to wait for; 2s is used",
                    "write for example 5s",
                );
                DEFAULT_CONNECT_TIMEOUT
            }
            Some(limit) if limit > MAX_CONNECT_TIMEOUT => {
                self.fault(Severity::Error, KEY, "it is longer than two minutes", "write 120s or less");
                MAX_CONNECT_TIMEOUT
            }
            Some(limit) => limit,
        }
    }

    fn discovery_timeout(&mut self) -> Duration {
        const KEY: &str = "discovery_timeout";
        let seconds = self.cfg.int(KEY).unwrap_or_else(|| DEFAULT_DISCOVERY_TIMEOUT.into());
        let checked =
            u32::try_from(seconds).ok().filter(|seconds| (1..=MAX_DISCOVERY_TIMEOUT).contains(seconds));
        let checked = checked.unwrap_or_else(|| {
            let what =
                format!("{seconds} is no number of seconds between 1 and {MAX_DISCOVERY_TIMEOUT}; 2 is used");
            self.fault(Severity::Warning, KEY, what, "write the seconds to wait for answers");
            DEFAULT_DISCOVERY_TIMEOUT
        });
        Duration::from_secs(checked.into())
    }

    fn ttl(&mut self, v2: bool) -> NonZeroU32 {
        let Some(seconds) = self.cfg.int("ttl") else { return DEFAULT_TTL };
        let Some(ttl) = u32::try_from(seconds).ok().and_then(NonZeroU32::new) else {
            let what = format!("{seconds} is no number of seconds; 60 is used");
            self.fault(Severity::Warning, "ttl", what, "write the seconds for which a request is valid");
            return DEFAULT_TTL;
        };
        if !v2 && ttl.get() < MIN_V1_TTL {
            let what = format!(
                "servers drop requests of protocol 1 that are valid for less than {MIN_V1_TTL} seconds"
            );
            self.fault(Severity::Warning, "ttl", what, "write 60");
        }
        ttl
    }
}

/// `[scheme://]host:port`; the port is mandatory.
pub(super) fn parse_address(text: &str) -> Result<BrokerAddress, String> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme, rest.split(['/', '?', '#']).next().unwrap_or(rest)),
        None => ("nats", text),
    };
    let host_port = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let shown = format!("{host_port:?}");
    let (host, port) = if let Some(v6) = host_port.strip_prefix('[') {
        let (host, port) = v6.split_once("]:").ok_or_else(|| format!("{shown} has no port"))?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(format!("{shown} holds no IPv6 address"));
        }
        (host, port)
    } else {
        let (host, port) = host_port.split_once(':').ok_or_else(|| format!("{shown} has no port"))?;
        if port.contains(':') {
            return Err(format!("{shown} has too many colons; write an IPv6 address in brackets"));
        }
        (host, port)
    };
    let number = port.parse::<u16>().ok().filter(|port| *port > 0);
    let port = number.ok_or_else(|| format!("the port of {shown} is no number between 1 and 65535"))?;
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("{shown} has no host"));
    }
    Ok(BrokerAddress { scheme: scheme.to_owned(), host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str, expected: &str) {
        assert_eq!(parse_address(text).map(|address| address.to_string()).as_deref(), Ok(expected), "{text}");
    }

    fn refused(text: &str, words: &str) {
        let error = parse_address(text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }

    #[rustfmt::skip]
    mod addresses {
        use super::*;
        #[test] fn plain() { address("broker.example.net:4222", "nats://broker.example.net:4222") }
        #[test] fn with_scheme() { address("tls://b:1", "tls://b:1"); address("nats://b:1/", "nats://b:1") }
        #[test] fn ipv6() { address("[::1]:4222", "nats://[::1]:4222"); address("nats://[fe80::1]:1", "nats://[fe80::1]:1") }
        #[test] fn a_password_is_dropped_not_shown() { address("nats://u:secret@b:1", "nats://b:1"); assert!(!parse_address("nats://u:secret@b").unwrap_err().contains("secret")) }
        #[test] fn no_port() { refused("broker", "no port"); refused("nats://broker", "no port") }
        #[test] fn no_number() { refused("b:x", "no number"); refused("b:0", "no number"); refused("b:70000", "no number") }
        #[test] fn bare_ipv6() { refused("::1:4222", "brackets"); refused("[x]:1", "IPv6") }
        #[test] fn no_host() { refused(":4222", "no host"); refused("a b:1", "no host") }
    }
}
