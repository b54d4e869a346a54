//! `Config`: everything from both files, checked and with defaults filled in.

use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use quartermaster_proto::choria::{Generation, Identity};
use regex::Regex;
use secrecy::SecretString;

use super::control::ControlConfig;
use super::providers::ProviderConfig;
use super::steps::StepsConfig;

/// The whole configuration of one instance: the YAML file and choria.cfg together (choria.md 11 and 12.2).
///
/// Its `Debug` form shows no secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// The YAML file it came from.
    pub yaml_file: PathBuf,
    /// The choria.cfg it came from.
    pub choria_file: PathBuf,
    /// Sender identity in every request and our value in the leader election (choria.md 11.3).
    pub identity: Identity,
    /// Helpers running at once (`workers`; the number of CPUs when 0 or unset).
    pub workers: NonZeroUsize,
    /// Time between two discoveries (`interval`), one minute or more.
    pub interval: Duration,
    /// Where the log goes and how much of it.
    pub log: LogConfig,
    /// The helper and the limits of one call.
    pub helper: HelperConfig,
    /// The provisioning token sent in every `choria_provision` call (`token`; may be empty).
    pub token: SecretString,
    /// Component of the startup events to listen for (`lifecycle_component`).
    pub lifecycle_component: String,
    /// Metric label `site` (may be empty).
    pub site: String,
    /// Which steps of the cycle run.
    pub features: Features,
    /// Verification and signing of tokens, and the names a CSR may not carry.
    pub enroll: EnrollConfig,
    /// Upgrades of the servers' own software.
    pub upgrades: UpgradesConfig,
    /// The connection to the broker.
    pub broker: BrokerConfig,
    /// How we prove who we are; also decides the protocol generation (`Security::Choria` is 2, all else is 1).
    pub security: Security,
    /// The web listener; `None` = off.
    pub listen: Option<ListenAddress>,
    /// What it asks of its visitors, and its certificate.
    pub web: WebConfig,
    /// Servers whose remote calls run at once (`in_flight`).
    pub in_flight: NonZeroUsize,
    /// Servers waiting at most (`queue`).
    pub queue: NonZeroUsize,
    /// Delays of servers that failed.
    pub retry: RetryConfig,
    /// Folder for what must survive a restart; `None` = in memory only.
    pub state_dir: Option<PathBuf>,
    /// The control service over NATS.
    pub control: ControlConfig,
    /// Several instances beside each other.
    pub cluster: ClusterMode,
    /// Where instances that share the work claim their servers.
    pub claims: ClaimsConfig,
    /// The providers, in the order of the file.
    pub providers: Vec<ProviderConfig>,
    /// The only folder from which providers are started; `None` = any.
    pub providers_dir: Option<PathBuf>,
    /// The digests of programs that may be started as providers; `None` = any.
    pub providers_allow: Option<Vec<[u8; 32]>>,
    /// What providers do for a server before and after it is configured.
    pub steps: StepsConfig,
    /// Unknown keys were refused, not warned about.
    pub strict: bool,
}

impl Config {
    /// The protocol generation this instance speaks, decided by the security provider (choria.md 3).
    pub const fn generation(&self) -> Generation {
        match self.security {
            Security::Choria { .. } => Generation::V2,
            Security::Insecure { .. } | Security::X509 { .. } => Generation::V1,
        }
    }
}

/// The one collective the Provisioner works in, whatever choria.cfg says (choria.md 11.3).
pub const COLLECTIVE: &str = "provisioning";

/// Where the log goes (`logfile`) and how much of it (`loglevel`, `--debug`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// The place.
    pub target: LogTarget,
    /// The least important level that is written.
    pub level: LogLevel,
}

/// A place for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output: the default.
    Stdout,
    /// Standard error.
    Stderr,
    /// Nowhere.
    Discard,
    /// JSON lines appended to a file made with mode 0640 and opened anew on SIGHUP.
    File(PathBuf),
}

/// The peer's log levels. `fatal` of the peer is `Error` here: nothing is logged above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything useful when looking for a fault.
    Debug,
    /// What happens, one line per fact: the default.
    Info,
    /// What an operator should look at.
    Warn,
    /// What failed.
    Error,
}

/// The helper and the limits of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperConfig {
    /// Program and arguments.
    pub command: HelperCommand,
    /// Limit of one call (`helper_timeout`).
    pub timeout: Duration,
    /// A process per server, or a long-lived provider.
    pub protocol: HelperProtocol,
    /// Which variables of our environment a helper gets (`helper_env`): names, or prefixes that end in `*`.
    pub env: Vec<String>,
}

/// The `helper` key, split as a shell would, without a shell. A configuration that may start names a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HelperCommand {
    /// What to start: a path, or a name looked up in PATH.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl HelperCommand {
    /// Program and arguments in one list.
    pub fn argv(&self) -> Vec<String> {
        std::iter::once(self.program.clone()).chain(self.arguments.iter().cloned()).collect()
    }
}

/// How the helper is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperProtocol {
    /// A process per server, JSON in and JSON out.
    Exec,
    /// A long-lived provider speaking JSON Lines.
    Provider,
}

/// Which optional steps of the cycle run (`features`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// x509: fetch a CSR.
    pub pki: bool,
    /// Fetch and verify the server's provisioning.jwt. True whenever `ed25519` is.
    pub jwt: bool,
    /// Issuer networks: fetch an Ed25519 key, issue a server JWT. Never together with `pki`.
    pub ed25519: bool,
    /// Upgrade servers before they are configured.
    pub upgrades: bool,
}

/// Verification and signing of tokens, and the names a CSR may not carry.
#[derive(Debug, Clone)]
pub struct EnrollConfig {
    /// Who signs provisioning.jwt (`jwt_verify_cert`).
    pub jwt_verify: Option<VerifyKeySource>,
    /// Key that signs server JWTs (`jwt_signing_key`); read anew for each server.
    pub jwt_signing_key: Option<PathBuf>,
    /// Our client token with chain data (`jwt_signing_token`); read anew for each server.
    pub jwt_signing_token: Option<PathBuf>,
    /// Validity of a server JWT when the helper does not say (`server_jwt_validity`).
    pub server_jwt_validity: Duration,
    /// `cert_deny_list`, compiled, unanchored.
    pub deny_list: Vec<Regex>,
}

/// `jwt_verify_cert`: a file (certificate, public key or hex), or the hex key itself (choria.md 6.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyKeySource {
    /// The file that holds it.
    File(PathBuf),
    /// An Ed25519 public key.
    Key([u8; 32]),
}

/// `upgrades_repository` and `upgrades_optional` (choria.md 10).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpgradesConfig {
    /// Base address of the releases; empty = none.
    pub repository: String,
    /// Carry on with configuring when an upgrade fails.
    pub optional: bool,
}

/// The connection to the broker (choria.md 1 and 11.3).
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// Where brokers are found.
    pub servers: ServerSource,
    /// User name: `provisioner` when `broker_provisioning_password` is set, else `plugin.nats.user`.
    pub user: Option<String>,
    /// Its password: `broker_provisioning_password`, else `plugin.nats.pass`.
    pub password: Option<SecretString>,
    /// `plugin.nats.credentials`: a NATS credentials file.
    pub credentials_file: Option<PathBuf>,
    /// Limit of one connection attempt (`plugin.choria.network.connect_timeout`), at most two minutes.
    pub connect_timeout: Duration,
    /// `discovery_timeout`: added to the wait for every reply, and the longest a discovery takes.
    pub discovery_timeout: Duration,
    /// `ttl` of requests, in seconds.
    pub ttl: NonZeroU32,
}

/// Where brokers are found (choria.md 1.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSource {
    /// `plugin.choria.middleware_hosts`.
    List(Vec<BrokerAddress>),
    /// SRV records, looked up at every connect; `fallback` when there are none.
    Srv {
        /// The domain to look in; `None` = the domain of this machine's full name.
        domain: Option<String>,
        /// Service names in the order in which they are tried, such as `_mcollective-server._tcp`.
        services: Vec<String>,
        /// Used when no record is found.
        fallback: BrokerAddress,
    },
}

/// One broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    /// Scheme as written, `nats` when there was none.
    pub scheme: String,
    /// Host name or address, IPv6 without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{}://[{}]:{}", self.scheme, self.host, self.port)
        } else {
            write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
        }
    }
}

/// How we prove who we are, and the protocol generation that goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Security {
    /// `choria_insecure: true`: clear text, unsigned requests of protocol 1, caller `choria=<certname>`.
    Insecure {
        /// Name in the caller id.
        certname: String,
    },
    /// Provider `file` or `puppet`: mutual TLS, RSA-signed requests of protocol 1, caller `choria=<certname>`.
    X509 {
        /// Name in the caller id.
        certname: String,
        /// Client certificate and key, and the authority that signed the broker's.
        tls: TlsFiles,
    },
    /// Provider `choria`: token, signed nonce and Ed25519-signed requests of protocol 2; the caller id is the token's.
    Choria {
        /// `plugin.security.choria.token_file`.
        token_file: PathBuf,
        /// `plugin.security.choria.seed_file`.
        seed_file: PathBuf,
        /// TLS is always on. No `ca`: the broker's certificate is not verified (choria.md 1.2).
        tls: TlsFiles,
    },
}

/// Files of a TLS client, each optional (choria.md 11.3). `certificate` and `key` are both set or both not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsFiles {
    /// Our certificate, PEM, with intermediates.
    pub certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
    /// Authorities that may sign the broker's certificate, PEM.
    pub ca: Option<PathBuf>,
}

/// Where the web listener is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenAddress {
    /// `monitor_port` alone: this port on every address, IPv6 included where there is any.
    Everywhere {
        /// The port.
        port: u16,
    },
    /// `listen`.
    At(SocketAddr),
}

/// What the web listener asks of its visitors (`web`), and its certificate (`listen_tls`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebConfig {
    /// The file of the token that allows changes; read anew at each use. None = nothing can be changed there.
    pub admin_token_file: Option<PathBuf>,
    /// The file of the token that allows looking; read anew at each use. None = everybody may look.
    pub read_token_file: Option<PathBuf>,
    /// Names under which pages may be asked for, beside addresses and `localhost`: `web.names` and our identity.
    pub names: Vec<String>,
    /// Certificate and key; none = clear text.
    pub tls: Option<ListenTls>,
}

/// The certificate of the web listener (`listen_tls`); read anew when a file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenTls {
    /// The certificate, PEM, with intermediates.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

/// Delays of servers that failed (`retry`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryConfig {
    /// Wait after the first failure.
    pub first: Duration,
    /// The longest wait.
    pub cap: Duration,
    /// A server that has been failing for this long is given up; `None` = never.
    pub give_up_after: Option<Duration>,
}

/// The bucket in which instances that share the work claim their servers (`cluster`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimsConfig {
    /// The bucket is where control's own login leads, not where provisioning's does (`cluster.connection`).
    pub over_control: bool,
    /// Its name (`cluster.bucket`).
    pub bucket: String,
    /// How long a claim lives that nobody renews (`cluster.ttl`).
    pub ttl: Duration,
    /// Brokers that keep a copy (`cluster.replicas`); none: three in a cluster of brokers, else one.
    pub replicas: Option<usize>,
}

/// Several instances beside each other (`cluster`, or `leader_election` of the peer).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterMode {
    /// One instance, or several that do not know of each other.
    Off,
    /// One leader through the peer's own election.
    Election,
    /// Every instance works.
    Shared,
}

impl ClusterMode {
    /// The word in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Election => "election",
            Self::Shared => "shared",
        }
    }
}
