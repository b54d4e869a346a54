//! The command line of the verbs that speak to running instances.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::parse_duration;

/// The verbs that speak to running instances, over NATS.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Verb {
    /// Show what instances are doing
    Status(ReadArgs),
    /// Show hosts, ordered by name
    Hosts(HostsArgs),
    /// Tell everything that happened to one host
    Host(HostArgs),
    /// Take no new host, start no helper, look for nobody; steps under way end at the next safe point
    Pause(ChangeArgs),
    /// Work again after a pause
    Resume(ChangeArgs),
    /// Pause who works, resume who is paused
    Flip(ChangeArgs),
    /// Take nothing new, finish what is in flight, then end the process with exit code 0
    Drain(DrainArgs),
    /// Look for hosts now
    Discover(ChangeArgs),
    /// Try one host again now, whatever it waits for
    Retry(HostChangeArgs),
    /// Forget one host and its history
    Forget(HostChangeArgs),
    /// Show what instances are doing, again and again, until Ctrl-C
    Watch(WatchArgs),
    /// Show the configuration in force, without its secrets
    Config(ReadArgs),
}

/// What every one of these verbs can be told.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Exit codes: 0 every instance that was asked did it, 2 wrong command line, 3 wrong configuration file, 4 a \
file cannot be used, 5 the broker cannot be reached or refuses the login, 6 some instances did not answer or did not do it, \
7 no instance answered, 8 every instance that answered refused."
)]
#[command(group = clap::ArgGroup::new("login").required(true).args(["server", "config"]))]
pub struct AccessArgs {
    /// Broker to connect to: nats://host:port or tls://host:port, several separated by commas
    #[arg(long, value_name = "URL", env = "QUARTERMASTER_SERVER")]
    pub server: Option<String>,
    /// NATS credentials file to log in with
    #[arg(long, value_name = "FILE", requires = "server", env = "QUARTERMASTER_CREDS")]
    pub creds: Option<PathBuf>,
    /// User name to log in with
    #[arg(long, value_name = "NAME", requires = "server", requires = "password_file")]
    pub user: Option<String>,
    /// File with the password of that user
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,
    /// Authorities that may sign the broker's certificate, PEM [default: those of this machine]
    #[arg(long, value_name = "FILE", requires = "server")]
    pub tls_ca: Option<PathBuf>,
    /// Client certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "tls_ca")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Use the login of the instance with this YAML configuration file
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    pub config: Option<PathBuf>,
    /// Its Choria client configuration file [default: the user's or the system's]
    #[arg(long, value_name = "FILE", requires = "config")]
    pub choria_config: Option<PathBuf>,
    /// First words of the subjects [default: quartermaster, or what the configuration says]
    #[arg(long, value_name = "SUBJECT")]
    pub prefix: Option<String>,
    /// Speak to this instance alone, by its identity [default: all of them]
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// How long to wait for the broker, and then for answers
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub timeout: Duration,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be more than nothing".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Arguments of verbs that only ask.
#[derive(Debug, Clone, clap::Args)]
pub struct ReadArgs {
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// Arguments of `watch`.
#[derive(Debug, Clone, clap::Args)]
pub struct WatchArgs {
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub every: Duration,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// Who and why.
#[derive(Debug, Clone, clap::Args)]
pub struct SayArgs {
    /// Why; it is logged and audited
    #[arg(long, value_name = "TEXT")]
    pub why: String,
    /// Who wants it [default: your user name and this machine's name]
    #[arg(long, value_name = "TEXT")]
    pub who: Option<String>,
}

/// Arguments of verbs that change something.
#[derive(Debug, Clone, clap::Args)]
pub struct ChangeArgs {
    /// Who and why.
    #[command(flatten)]
    pub say: SayArgs,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// Arguments of `drain`.
#[derive(Debug, Clone, clap::Args)]
#[command(group = clap::ArgGroup::new("whom").required(true).args(["all", "instance"]))]
pub struct DrainArgs {
    /// Drain every instance, so that none is left
    #[arg(long)]
    pub all: bool,
    /// Who and why.
    #[command(flatten)]
    pub say: SayArgs,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// Arguments of verbs that change something about one host.
#[derive(Debug, Clone, clap::Args)]
pub struct HostChangeArgs {
    /// The host's identity
    pub name: String,
    /// Who and why.
    #[command(flatten)]
    pub say: SayArgs,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// Arguments of `host`.
#[derive(Debug, Clone, clap::Args)]
pub struct HostArgs {
    /// The host's identity
    pub name: String,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// Arguments of `hosts`.
#[derive(Debug, Clone, clap::Args)]
pub struct HostsArgs {
    /// Only hosts in this state: known, waiting, in_flight, held, cooling, gave_up or done
    #[arg(long, value_name = "STATE")]
    pub state: Option<String>,
    /// Only hosts whose name holds this text
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    /// Only hosts whose name comes after this one
    #[arg(long, value_name = "NAME")]
    pub after: Option<String>,
    /// At most so many of each instance; 0 = all
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub most: usize,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
}

impl Verb {
    /// How to get there.
    pub const fn access(&self) -> &AccessArgs {
        match self {
            Self::Status(args) | Self::Config(args) => &args.access,
            Self::Hosts(args) => &args.access,
            Self::Host(args) => &args.access,
            Self::Pause(args) | Self::Resume(args) | Self::Flip(args) | Self::Discover(args) => &args.access,
            Self::Drain(args) => &args.access,
            Self::Retry(args) | Self::Forget(args) => &args.access,
            Self::Watch(args) => &args.access,
        }
    }
}
