//! The command `quartermaster emulate`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quartermaster_proto::choria::Generation;
use serde_json::json;

use super::fault::FaultPlan;
use super::fault_text::parse_duration;
use super::fleet::{Fleet, FleetHandle, FleetSettings};
use super::network::Network;
use super::prepare::{PrepareSettings, prepare};
use super::tls;
use crate::clock;
use crate::exit::Exit;

/// Arguments of `quartermaster emulate`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Write keys, tokens, a helper and the provisioner's files of three test networks below DIR, and end
    #[arg(long, value_name = "DIR", conflicts_with_all = ["network", "jwt"])]
    pub prepare: Option<PathBuf>,
    /// The network to live in: DIR/plain, DIR/issuer or DIR/x509 as written by --prepare
    #[arg(long, value_name = "DIR", required_unless_present_any = ["prepare", "jwt"], conflicts_with = "jwt")]
    pub network: Option<PathBuf>,
    /// Live in an existing network with this provisioning.jwt
    #[arg(long, value_name = "FILE")]
    pub jwt: Option<PathBuf>,
    /// Brokers; default: those of the provisioning token
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    pub broker: Vec<String>,
    /// How many servers
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub servers: usize,
    /// Connections they share; as many as servers for a connection each
    #[arg(long, value_name = "C", default_value_t = 1)]
    pub connections: usize,
    /// Speak protocol 1 or 2, whatever the token says
    #[arg(long, value_name = "1|2", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub generation: Option<u8>,
    /// Connect in clear text
    #[arg(long)]
    pub no_tls: bool,
    /// Names of the servers: {} is the number, {:05} the number in five digits
    #[arg(long, value_name = "FORMAT", default_value = "node{}.example.net")]
    pub identity_format: String,
    /// A file with the facts, one JSON object
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// The version of the servers
    #[arg(long, value_name = "VERSION", default_value = "0.29.4")]
    pub server_version: String,
    /// The servers may be upgraded
    #[arg(long)]
    pub upgradable: bool,
    /// What goes wrong: `KIND[:ARGUMENT][/ACTION]=WHO`, where WHO is a share, `all`, a fixed @identity, or several with +
    #[arg(long, value_name = "FAULTS", value_parser = FaultPlan::parse)]
    pub fault: Vec<FaultPlan>,
    /// Wait this long before each reply
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub reply_delay: Duration,
    /// Restart and shut down after this long instead of the real 2 s and more
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub restart_delay: Option<Duration>,
    /// Keep a provisioning lock for its owner this long instead of the real 2 m
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    pub lock_time: Duration,
    /// Start the servers evenly over this long
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub ramp: Duration,
    /// Announce nobody before all connections are up
    #[arg(long)]
    pub together: bool,
    /// Repeat keys, delays and faults
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// RSA keys shared by all certificate requests
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub rsa_keys: usize,
    /// Write a JSON report on every server to this file at the end
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print the counters this often
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub interval: Duration,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// End when every server is provisioned, shut down or gone
    #[arg(long)]
    pub until_done: bool,
    /// End after this long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time_limit: Option<Duration>,
    /// With --prepare: the provisioning token
    #[arg(long, value_name = "TEXT", default_value = "s3cret")]
    pub token: String,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 500ms, 25s or 2m".to_owned())
}

/// Runs the fleet until it is told to stop. Telemetry is set up already (stderr).
pub fn run(args: &Args) -> Exit {
    let outcome = match &args.prepare {
        Some(dir) => write_files(args, dir),
        None => emulate(args),
    };
    outcome.unwrap_or_else(|(exit, report)| {
        // A closed stderr must not turn an error into a panic.
        let _ = writeln!(std::io::stderr(), "{report:?}");
        exit
    })
}

type Failed = (Exit, miette::Report);

fn failed<E: std::error::Error + Send + Sync + 'static>(exit: Exit) -> impl FnOnce(E) -> Failed {
    use miette::IntoDiagnostic as _;
    move |error| {
        (exit, Err::<(), E>(error).into_diagnostic().err().unwrap_or_else(|| miette::miette!("unknown")))
    }
}

fn write_files(args: &Args, dir: &Path) -> Result<Exit, Failed> {
    let mut settings = PrepareSettings {
        token: args.token.clone(),
        upgradable: args.upgradable,
        ..PrepareSettings::default()
    };
    if let Some(broker) = args.broker.first() {
        broker.split_once("://").map_or(broker.as_str(), |(_, rest)| rest).clone_into(&mut settings.broker);
    }
    let prepared = prepare(dir, &settings).map_err(failed(Exit::Files))?;
    let mut out = std::io::stdout();
    let _ = if args.json {
        let network = |files: &super::NetworkFiles| json!({"dir": files.dir, "config": files.config, "choria_config": files.choria_config, "helper": files.helper});
        let all = json!({
            "broker_config": prepared.broker_config,
            "plain": network(&prepared.plain),
            "issuer": network(&prepared.issuer),
            "x509": network(&prepared.x509),
        });
        writeln!(out, "{all}")
    } else {
        let (plain, issuer, x509) = (&prepared.plain, &prepared.issuer, &prepared.x509);
        writeln!(
            out,
            "broker       nats-server -c {}\n\
             plain        quartermaster run --config {} --choria-config {}\n\
             \x20            quartermaster emulate --network {}\n\
             issuer       quartermaster run --config {} --choria-config {}\n\
             \x20            quartermaster emulate --network {}\n\
             x509         quartermaster run --config {} --choria-config {}\n\
             \x20            quartermaster emulate --network {}",
            prepared.broker_config.display(),
            plain.config.display(),
            plain.choria_config.display(),
            plain.dir.display(),
            issuer.config.display(),
            issuer.choria_config.display(),
            issuer.dir.display(),
            x509.config.display(),
            x509.choria_config.display(),
            x509.dir.display(),
        )
    };
    Ok(Exit::Success)
}

fn settings(args: &Args) -> Result<FleetSettings, Failed> {
    let network = match (&args.network, &args.jwt) {
        (Some(dir), _) => Network::load(dir).map_err(failed(Exit::Files))?,
        (None, Some(file)) => {
            let jwt = std::fs::read_to_string(file).map_err(failed(Exit::Files))?;
            Network::from_jwt(&jwt).map_err(failed(Exit::Files))?
        }
        (None, None) => return Err((Exit::Usage, miette::miette!("give --network, --jwt or --prepare"))),
    };
    let generation = args.generation.map(|number| if number == 2 { Generation::V2 } else { Generation::V1 });
    let network = match (generation, args.upgradable) {
        (None, false) => network,
        (generation, upgradable) => network.with(generation, upgradable, clock::now()),
    };
    let brokers: Vec<String> = if args.broker.is_empty() {
        network.claims.chu.split(',').map(|url| url.trim().to_owned()).filter(|url| !url.is_empty()).collect()
    } else {
        args.broker.clone()
    };
    let mut settings = FleetSettings::new(network, String::new(), args.servers);
    settings.brokers = brokers;
    settings.tls = !args.no_tls;
    settings.connections = args.connections;
    settings.identity_format.clone_from(&args.identity_format);
    settings.version.clone_from(&args.server_version);
    settings.faults = args.fault.iter().cloned().fold(FaultPlan::default(), FaultPlan::and);
    settings.reply_delay = args.reply_delay;
    settings.restart_delay = args.restart_delay;
    settings.lock_time = args.lock_time;
    settings.ramp = args.ramp;
    settings.together = args.together;
    settings.seed = args.seed;
    settings.rsa_keys = args.rsa_keys;
    if let Some(file) = &args.facts {
        settings.facts = std::fs::read_to_string(file).map_err(failed(Exit::Files))?;
    }
    Ok(settings)
}

fn emulate(args: &Args) -> Result<Exit, Failed> {
    let settings = settings(args)?;
    if settings.tls
        && settings.connections > 1
        && let Err(error) = tls::without_roots()
    {
        tracing::debug!(%error, "the system's certificates will be read for each connection");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(failed(Exit::Failure))?;
    runtime.block_on(async {
        let mut fleet = Fleet::start(settings).await.map_err(failed(Exit::Usage))?;
        let exit = watch(args, &mut fleet).await?;
        show(args, &fleet);
        if let Some(file) = &args.report {
            fleet.write_report(file).map_err(failed(Exit::Files))?;
        }
        fleet.stop().await;
        Ok(exit)
    })
}

/// Shows the counters until a signal, the time limit, or the end of the work.
async fn watch(args: &Args, fleet: &mut FleetHandle) -> Result<Exit, Failed> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed(Exit::Failure))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed(Exit::Failure))?;
    let mut ticks = tokio::time::interval(args.interval.max(Duration::from_millis(50)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let end = args.time_limit.map(|limit| tokio::time::Instant::now() + limit);
    loop {
        tokio::select! {
            _ = interrupt.recv() => return Ok(Exit::Success),
            _ = terminate.recv() => return Ok(Exit::Success),
            error = fleet.failed() => return Err(failed(Exit::Broker)(error)),
            () = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            } => return Ok(if args.until_done { Exit::Incomplete } else { Exit::Success }),
            _ = ticks.tick() => {
                if !show(args, fleet) {
                    // Whoever read our output is gone.
                    return Ok(Exit::Success);
                }
            }
        }
        let stats = fleet.stats();
        if args.until_done && stats.provisioned + stats.stopped + stats.vanished == stats.servers {
            return Ok(if stats.provisioned == stats.servers { Exit::Success } else { Exit::Incomplete });
        }
    }
}

/// Prints the counters; false when nobody can read them.
fn show(args: &Args, fleet: &FleetHandle) -> bool {
    let stats = fleet.stats();
    let mut out = std::io::stdout();
    let written = if args.json {
        let millis = |time: Option<Duration>| time.and_then(|time| u64::try_from(time.as_millis()).ok());
        let (median, worked, served) =
            (millis(fleet.median_cycle()), millis(fleet.worked()), millis(fleet.served()));
        writeln!(
            out,
            "{}",
            json!({"totals": stats, "median_cycle_ms": median, "worked_ms": worked, "served_ms": served})
        )
    } else {
        writeln!(
            out,
            "{} of {} provisioned, {} waiting, {} restarting, {} stopped, {} gone, {} off; {} configures \
             ({} repeated), {} replies lost, {} relapses, {} complaints",
            stats.provisioned,
            stats.servers,
            stats.provisioning + stats.down,
            stats.restarting,
            stats.stopped,
            stats.vanished,
            stats.off,
            stats.configures,
            stats.repeated_configures,
            stats.lost_replies,
            stats.relapses,
            stats.complaints,
        )
    };
    written.and_then(|()| out.flush()).is_ok()
}
