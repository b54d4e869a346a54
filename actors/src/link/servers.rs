//! Which brokers to try, found anew before every round of connecting.

use std::fmt;

use futures::future::BoxFuture;

/// Where brokers are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Servers {
    /// A fixed list of `[scheme://]host:port`.
    List(Vec<ServerAddress>),
    /// SRV records `<service>.<domain>`; the first service that has any record wins. When none has, or no name server
    /// answers, `fallback` is used for this round only.
    Srv {
        /// The domain, without a leading dot.
        domain: String,
        /// Service labels in order of preference, for example `_mcollective-server._tcp`.
        services: Vec<String>,
        /// What to try when DNS has nothing.
        fallback: Vec<ServerAddress>,
    },
}

/// One broker address with its scheme, as text that a connect understands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerAddress {
    host: String,
    port: u16,
    tls: bool,
}

/// Why a text is no broker address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no broker address: {reason}")]
pub struct ServerAddressError {
    text: String,
    reason: &'static str,
}

impl ServerAddress {
    /// The broker at `host` and `port`.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, tls: false }
    }

    /// Reads `[scheme://]host:port`. Schemes `nats` and `tls` are known; an IPv6 address stands in brackets; a missing
    /// port is 4222.
    pub fn parse(text: &str) -> Result<Self, ServerAddressError> {
        let fault = |reason| ServerAddressError { text: text.chars().take(200).collect(), reason };
        let trimmed = text.trim();
        let with_scheme =
            if trimmed.contains("://") { trimmed.to_owned() } else { format!("nats://{trimmed}") };
        let url =
            url::Url::parse(&with_scheme).map_err(|_| fault("it does not read as scheme://host:port"))?;
        let tls = match url.scheme() {
            "nats" | "choria" => false,
            "tls" => true,
            _ => return Err(fault("its scheme is neither nats nor tls")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(fault("user and password do not belong into the address"));
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(fault("something follows the port"));
        }
        match url.host_str() {
            Some(host) if !host.is_empty() => {
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                Ok(Self { host, port: url.port().unwrap_or(4222), tls })
            }
            _ => Err(fault("it has no host")),
        }
    }

    /// The host, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The TCP port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// True when the scheme itself asks for TLS.
    pub const fn wants_tls(&self) -> bool {
        self.tls
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "tls" } else { "nats" };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

/// One SRV record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrvTarget {
    /// Host name, without the trailing dot.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Lower is tried first.
    pub priority: u16,
    /// Share among records of the same priority.
    pub weight: u16,
}

/// Why SRV records could not be had. No record at all is no error but an empty answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("look up SRV records of {name}: {reason}")]
pub struct SrvError {
    /// The name asked for.
    pub name: String,
    /// What the resolver said.
    pub reason: String,
}

/// Answers SRV questions; tests answer them from a list.
pub trait SrvResolver: Send + Sync + 'static {
    /// All records of `name`, in any order; empty when the name has none.
    fn srv(&self, name: String) -> BoxFuture<'static, Result<Vec<SrvTarget>, SrvError>>;
}

/// The brokers for one round, and what to say about how they were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// In the order to try; never twice the same.
    pub addresses: Vec<ServerAddress>,
    /// Set when DNS had nothing or did not answer and the fallback is used.
    pub trouble: Option<String>,
}

/// Finds the brokers of one round. `random` decides the order: it is asked once per address and answers uniformly over
/// all of `u32`.
pub async fn candidates(
    servers: &Servers,
    resolver: &dyn SrvResolver,
    random: &dyn Fn() -> u32,
) -> Candidates {
    match servers {
        Servers::List(list) => Candidates { addresses: shuffled(list, random), trouble: None },
        Servers::Srv { domain, services, fallback } => {
            let mut trouble = None;
            for service in services {
                let name = format!("{service}.{domain}");
                match resolver.srv(name).await {
                    Ok(targets) if targets.is_empty() => {}
                    Ok(targets) => {
                        return Candidates { addresses: ordered(targets, random), trouble: None };
                    }
                    Err(error) => trouble = Some(error.to_string()),
                }
            }
            let trouble =
                trouble.unwrap_or_else(|| format!("domain {domain} has no SRV records for brokers"));
            Candidates { addresses: shuffled(fallback, random), trouble: Some(trouble) }
        }
    }
}

fn shuffled(list: &[ServerAddress], random: &dyn Fn() -> u32) -> Vec<ServerAddress> {
    let mut keyed: Vec<_> = list.iter().map(|address| (random(), address.clone())).collect();
    keyed.sort_by_key(|(key, _)| *key);
    without_repeats(keyed.into_iter().map(|(_, address)| address))
}

/// By priority; within one priority a weighted draw, as RFC 2782 wants it.
fn ordered(mut targets: Vec<SrvTarget>, random: &dyn Fn() -> u32) -> Vec<ServerAddress> {
    targets.sort_by_key(|target| target.priority);
    let mut addresses = Vec::with_capacity(targets.len());
    while let Some(priority) = targets.first().map(|target| target.priority) {
        let same = targets.iter().take_while(|target| target.priority == priority);
        let total: u64 = same.clone().map(|target| u64::from(target.weight) + 1).sum();
        let mut draw = u64::from(random()) % total.max(1);
        let mut chosen = 0;
        for (index, target) in same.enumerate() {
            let share = u64::from(target.weight) + 1;
            if draw < share {
                chosen = index;
                break;
            }
            draw -= share;
        }
        let target = targets.remove(chosen);
        addresses.push(ServerAddress::new(target.host, target.port));
    }
    without_repeats(addresses.into_iter())
}

fn without_repeats(addresses: impl Iterator<Item = ServerAddress>) -> Vec<ServerAddress> {
    let mut seen = std::collections::HashSet::new();
    addresses.filter(|address| seen.insert(address.clone())).collect()
}
