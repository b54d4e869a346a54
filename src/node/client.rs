//! `quartermaster node …`: the client that keeps a machine's files filled.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quartermaster_node::client::service::{self, NodeError, NodeMetrics, Running, Settings};
use quartermaster_proto::mesh::signature::PublicNkey;

use super::bench::{NodeBenchArgs, bench};
use super::numbers::Numbers;
use super::offline::{NodeCheckArgs, check};
use super::serve::{Chain, serve, watched};
use super::status::{NodeStatusArgs, status};
use crate::cli::LogArgs;
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// The folder of the state where none is given.
pub(super) const STATE: &str = "/var/lib/mesh-provisioner-client";
/// The name of the credential among those that the service manager hands over.
const CREDENTIAL: &str = "provisioner-broker";

/// Arguments of `quartermaster node`.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct NodeArgs {
    /// What to do instead of running.
    #[command(subcommand)]
    pub command: Option<NodeCommand>,
    /// This machine's name
    #[arg(long, value_name = "NAME", required = true)]
    pub node: Option<String>,
    /// Brokers
    #[arg(long, value_name = "HOST:PORT,...", required = true)]
    pub servers: Option<String>,
    /// Credentials file of this machine's account, read anew at every connect [default: provisioner-broker of the systemd
    /// credentials]
    #[arg(long, value_name = "FILE")]
    pub credentials: Option<PathBuf>,
    /// Public key of the controller; with one, nothing that is not signed with it is taken. May be given more than once
    #[arg(long = "pin", value_name = "NKEY")]
    pub pins: Vec<PublicNkey>,
    /// The engine's socket
    #[arg(long, value_name = "PATH", default_value = "/run/nox-mesh-host/fill.sock")]
    pub socket: PathBuf,
    /// Folder of cache, seat and memory
    #[arg(long, value_name = "DIR", default_value = STATE)]
    pub state: PathBuf,
    /// Address on which numbers are told for Prometheus; none: nobody is told
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
    /// Run as root, for tests
    #[arg(long)]
    pub allow_root: bool,
    /// How many times faster than real its timers run, for tests that mean minutes
    #[arg(long, value_name = "TIMES", default_value_t = 1, hide = true)]
    pub pace: u32,
}

/// `quartermaster node …`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum NodeCommand {
    /// Check a plan, or a template, without a broker: every fault with its place, line and placeholder
    Check(NodeCheckArgs),
    /// Show where each module stands, what it waits for and since when
    Status(NodeStatusArgs),
    /// Measure a machine of many modules: broker, vault, engine and client, each a process of its own
    Bench(NodeBenchArgs),
    /// Print the digest of a file as reports of files with a secret have it, under this machine's key
    Digest {
        /// The file
        #[arg(value_name = "PATH")]
        file: PathBuf,
        /// The digest of a file without a secret
        #[arg(long)]
        plain: bool,
        /// Folder of the client's state
        #[arg(long, value_name = "DIR", default_value = STATE)]
        state: PathBuf,
    },
}

/// Runs the verb.
pub fn node(args: &NodeArgs, log: &LogArgs, out: &mut Out) -> Exit {
    match &args.command {
        None => run(args, log),
        Some(NodeCommand::Check(args)) => check(args, out),
        Some(NodeCommand::Status(args)) => status(args, out),
        Some(NodeCommand::Bench(args)) => bench(args, out),
        Some(NodeCommand::Digest { file, plain, state }) => digest(state, file, *plain, out),
    }
}

fn digest(state: &Path, file: &Path, is_plain: bool, out: &mut Out) -> Exit {
    match service::digest_of(state, file, is_plain) {
        Ok(digest) => {
            out.text(&format!("{digest}\n"));
            Exit::Success
        }
        Err(error) => {
            say(&format!("error: {}\n", Chain(&error)));
            Exit::Files
        }
    }
}

fn run(args: &NodeArgs, log: &LogArgs) -> Exit {
    let (Some(node), Some(servers)) = (args.node.clone(), args.servers.clone()) else { return Exit::Usage };
    let handed =
        || std::env::var_os("CREDENTIALS_DIRECTORY").map(|folder| Path::new(&folder).join(CREDENTIAL));
    let settings = Settings {
        node,
        servers,
        credentials: args.credentials.clone().or_else(handed).unwrap_or_else(|| CREDENTIAL.into()),
        pins: args.pins.clone(),
        socket: args.socket.clone(),
        state: args.state.clone(),
        allow_root: args.allow_root,
        pace: args.pace,
    };
    let metrics = match NodeMetrics::new() {
        Ok(metrics) => metrics,
        Err(error) => {
            say(&format!("error: {error}\n"));
            return Exit::Failure;
        }
    };
    let numbers = match &args.metrics {
        None => None,
        Some(address) => match Numbers::bind(address, |registry| metrics.register(registry)) {
            Ok(numbers) => Some(numbers),
            Err(error) => {
                say(&format!("error: {}\n", Chain(&error)));
                return Exit::Unusable;
            }
        },
    };
    let exit = |error: &NodeError| match error {
        error if error.is_taken() => Exit::Taken,
        error if error.is_configuration() => Exit::Unusable,
        _ => Exit::Failure,
    };
    let mut pulse = None;
    let begun = |running: Running| {
        let told = running.clone();
        pulse = watched(running.vital(), move || in_words(told.modules()));
        if let Some(numbers) = numbers {
            numbers.tell(move || running.refresh_metrics());
        }
    };
    let host = settings.node.clone();
    let work = |stop| service::run(settings, metrics, Arc::new(crate::clock::now), begun, stop);
    let exit = serve(log, Some(&host), work, exit);
    drop(pulse);
    exit
}

/// For the service manager's status line.
fn in_words((modules, applied): (i64, i64)) -> String {
    format!("{applied} of {modules} modules applied")
}
