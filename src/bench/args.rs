//! The command line of `quartermaster bench`.

use std::path::PathBuf;
use std::time::Duration;

use crate::emulate::parse_duration;

/// Arguments of `quartermaster bench`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many servers to provision
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub servers: usize,
    /// Connections the fleet shares; as many as servers for a connection each
    #[arg(long, value_name = "C", default_value_t = 1)]
    pub connections: usize,
    /// The provisioner's workers
    #[arg(long, value_name = "W", default_value_t = 4)]
    pub workers: usize,
    /// Who decides: a small shell helper started for each server (exec), a long-lived one (provider), or a program of yours
    #[arg(long, value_name = "exec|provider|PATH", default_value = "exec")]
    pub helper: String,
    /// The helper takes this long in addition
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub helper_delay: Duration,
    /// The kind of network
    #[arg(long, value_name = "KIND", default_value = "plain", value_parser = ["plain", "issuer", "x509"])]
    pub network: String,
    /// How servers are found: they announce themselves to a provisioner that runs, or one that is started looks for them
    #[arg(long, value_name = "HOW", default_value = "events", value_parser = ["events", "discovery"])]
    pub announce: String,
    /// Servers wait this long before each reply
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub reply_delay: Duration,
    /// Servers restart after this long instead of the real 2 s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub restart_delay: Option<Duration>,
    /// Servers announce themselves spread over this long
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub ramp: Duration,
    /// How often it is measured, each time with everything started anew
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Servers provisioned before it is measured; not with --announce discovery
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub warm_up: usize,
    /// The provisioner keeps its state on the disk (`state_dir`)
    #[arg(long)]
    pub state: bool,
    /// One more server announces itself after all others; measures how long it waits
    #[arg(long)]
    pub lone: bool,
    /// Afterwards measure this provisioner in the same way; {config} and {choria_config} stand for its files
    #[arg(long, value_name = "CMD")]
    pub against: Option<String>,
    /// Measure fleets of these sizes instead of --servers, and draw how cost, memory and answers grow
    #[arg(long, value_name = "N,N,...", value_parser = sizes)]
    pub sweep: Option<Sizes>,
    /// With --sweep: the picture
    #[arg(long, value_name = "FILE", default_value = "quartermaster-bench.svg", requires = "sweep")]
    pub svg: PathBuf,
    /// Let waves of --servers come and go for so long instead, and see whether the provisioner grows (10m: with --servers 4000)
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["sweep", "against", "lone", "announce"])]
    pub soak: Option<Duration>,
    /// Give up a run after this long
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub time_limit: Duration,
    /// The nats-server to start; default: the one on the PATH, or one fetched by tools/get-nats-server
    #[arg(long, value_name = "FILE", env = "QM_NATS_SERVER")]
    pub nats_server: Option<PathBuf>,
    /// Start this broker instead, such as `choria broker run --config {choria_broker_config}`; {broker_config} is nats-server's
    #[arg(long, value_name = "CMD")]
    pub broker: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Keep keys, configuration and logs of every run in this directory
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// The long-lived helper of a network in DIR
    #[arg(long, value_name = "DIR", hide = true)]
    pub provide_as: Option<PathBuf>,
    /// What --provide-as is asked for: `schema`, or nothing
    #[arg(last = true, hide = true, requires = "provide_as")]
    pub rest: Vec<String>,
    /// The helper of the x509 network: signs a request with the authority in DIR
    #[arg(long, value_name = "DIR", hide = true, exclusive = true)]
    pub sign_as: Option<PathBuf>,
}

/// Sizes of fleets, the smallest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(pub Vec<usize>);

fn sizes(text: &str) -> Result<Sizes, String> {
    super::sweep::sizes(text).map(Sizes)
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 500ms, 25s or 2m".to_owned())
}
