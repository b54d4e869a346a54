//! The command `quartermaster demo`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::summary::Summary;
use crate::emulate::{PrepareSettings, prepare};
use crate::exit::Exit;
use crate::stage::{
    Progress, Running, Series, StageError, View, broker_port, complain, free_port, metrics, nats_server,
    set_key, wait_for_metrics,
};

/// The provisioner ends its work in hand before it goes.
const GRACE: Duration = Duration::from_secs(15);
/// How many of the provisioner's failures are quoted.
const REASONS: usize = 5;
const POLL: Duration = Duration::from_millis(250);
/// How long the provisioner may take to notice that the last servers are back.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);

/// Arguments of `quartermaster demo`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many servers to provision
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub servers: usize,
    /// The provisioner's workers; default: one for each CPU
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Connections the fleet shares
    #[arg(long, value_name = "C", default_value_t = 1)]
    pub connections: usize,
    /// The kind of network
    #[arg(long, value_name = "KIND", default_value = "plain", value_parser = ["plain", "issuer"])]
    pub network: String,
    /// Use this helper instead of the sample
    #[arg(long, value_name = "COMMAND")]
    pub helper: Option<String>,
    /// What goes wrong with the servers, see `quartermaster emulate`
    #[arg(long, value_name = "FAULTS")]
    pub fault: Vec<String>,
    /// Servers restart after this long instead of the real 2 s
    #[arg(long, value_name = "TIME")]
    pub restart_delay: Option<String>,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub time_limit: u64,
    /// The nats-server to start; default: the one on the PATH, or one fetched by tools/get-nats-server
    #[arg(long, value_name = "FILE", env = "QM_NATS_SERVER")]
    pub nats_server: Option<PathBuf>,
    /// Watch this program instead of our own provisioner; it is called with the same arguments
    #[arg(long, value_name = "FILE", hide = true)]
    pub provisioner: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Keep keys, configuration and logs in this directory
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// How the watching ended.
enum Ending {
    Done,
    OutOfTime,
    Interrupted,
}

/// Runs the demo and says how it went.
pub fn run(args: &Args) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&StageError::Setup { what: "the runtime", source: error }),
    };
    match runtime.block_on(demo(args)) {
        Ok(exit) => exit,
        Err(error) => complain(&error),
    }
}

async fn demo(args: &Args) -> Result<Exit, StageError> {
    let setup = StageError::setup;
    let program = std::env::current_exe().map_err(StageError::OwnFile)?;
    let nats = nats_server(args.nats_server.as_deref()).await?;
    // Removed when it goes out of scope, unless it is to be kept.
    let (dir, _temporary) = if let Some(dir) = &args.keep {
        std::fs::create_dir_all(dir).map_err(setup("the directory to keep"))?;
        (std::path::absolute(dir).map_err(setup("the directory to keep"))?, None)
    } else {
        let temporary = tempfile::Builder::new().prefix("quartermaster-demo-").tempdir();
        let temporary = temporary.map_err(setup("a temporary directory"))?;
        (temporary.path().to_owned(), Some(temporary))
    };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(setup("signals"))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(setup("signals"))?;
    let mut hangup = signal(SignalKind::hangup()).map_err(setup("signals"))?;
    let mut children = Children::default();
    let outcome = tokio::select! {
        outcome = show(args, &program, &nats, &dir, &mut children) => outcome,
        _ = interrupt.recv() => Ok((Ending::Interrupted, Summary::default())),
        _ = terminate.recv() => Ok((Ending::Interrupted, Summary::default())),
        _ = hangup.recv() => Ok((Ending::Interrupted, Summary::default())),
    };
    children.stop().await;
    let (ending, summary) = outcome?;
    let reasons = children.provisioner.as_ref().map(|provisioner| provisioner.tail(1000)).unwrap_or_default();
    if matches!(ending, Ending::Interrupted) {
        let _ = writeln!(std::io::stderr(), "interrupted: everything is stopped");
        return Ok(Exit::Failure);
    }
    let text = if args.json { serde_json::to_string(&summary).unwrap_or_default() } else { summary.table() };
    let _ = writeln!(std::io::stdout(), "{text}");
    if matches!(ending, Ending::OutOfTime) {
        let _ = writeln!(std::io::stderr(), "not all servers were provisioned within {} s", args.time_limit);
        // The provisioner's own words are the best explanation there is.
        for line in reasons.iter().rev().filter(|line| line.contains("Could not provision")).take(REASONS) {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
    Ok(if summary.provisioned == summary.servers { Exit::Success } else { Exit::Incomplete })
}

/// The processes of the demo; ended in the reverse of the order they were started in.
#[derive(Default)]
struct Children {
    broker: Option<Running>,
    provisioner: Option<Running>,
    fleet: Option<Running>,
}

impl Children {
    async fn stop(&mut self) {
        let children = [&mut self.fleet, &mut self.provisioner, &mut self.broker];
        for running in children.into_iter().flatten() {
            running.stop(GRACE).await;
        }
    }
}

async fn show(
    args: &Args,
    program: &Path,
    nats: &Path,
    dir: &Path,
    children: &mut Children,
) -> Result<(Ending, Summary), StageError> {
    let mut view = View::new(args.servers as u64);
    let mut settings = PrepareSettings {
        broker: "127.0.0.1:-1".to_owned(),
        workers: args.workers,
        seed: Some(rand::random()),
        ..PrepareSettings::default()
    };
    // The broker takes any free port; the rest is written again when it is known.
    let prepared = prepare(dir, &settings).map_err(StageError::Prepare)?;
    let mut command = Command::new(nats);
    command.arg("--config").arg(&prepared.broker_config).arg("--ports_file_dir").arg(dir);
    let broker = children.broker.insert(Running::start("nats-server", command, dir, false)?);
    let port = broker_port(broker, dir).await?;
    view.say(&format!("broker       {} on 127.0.0.1:{port}", nats.display()));

    let monitor = free_port()?;
    settings.broker = format!("127.0.0.1:{port}");
    settings.monitor_port = Some(monitor);
    let prepared = prepare(dir, &settings).map_err(StageError::Prepare)?;
    let network = if args.network == "issuer" { &prepared.issuer } else { &prepared.plain };
    if let Some(helper) = &args.helper {
        set_key(&network.config, "helper", &helper.as_str().into())?;
    }

    let mut command = Command::new(args.provisioner.as_deref().unwrap_or(program));
    command
        .arg("run")
        .arg("--config")
        .arg(&network.config)
        .arg("--choria-config")
        .arg(&network.choria_config);
    command.current_dir(dir);
    let provisioner = children.provisioner.insert(Running::start("provisioner", command, dir, false)?);
    wait_for_metrics(provisioner, monitor).await?;
    view.say(&format!("provisioner  metrics on http://127.0.0.1:{monitor}/metrics"));

    let mut command = Command::new(program);
    command.arg("emulate").arg("--json").args(["--interval", "250ms"]).arg("--network").arg(&network.dir);
    command.args(["--servers", &args.servers.to_string(), "--connections", &args.connections.to_string()]);
    for fault in &args.fault {
        command.args(["--fault", fault]);
    }
    if let Some(delay) = &args.restart_delay {
        command.args(["--restart-delay", delay]);
    }
    let fleet = children.fleet.insert(Running::start("fleet", command, dir, true)?);
    let Some(stdout) = fleet.stdout() else { return Ok((Ending::Interrupted, Summary::default())) };
    view.say(&format!("fleet        {} servers, helper {}", args.servers, network.helper.display()));
    watch(args, children, stdout, monitor, &mut view).await
}

/// Follows the fleet's counters until all is done or time is up.
async fn watch(
    args: &Args,
    children: &mut Children,
    stdout: ChildStdout,
    monitor: u16,
    view: &mut View,
) -> Result<(Ending, Summary), StageError> {
    let (Some(provisioner), Some(fleet)) = (&mut children.provisioner, &mut children.fleet) else {
        return Ok((Ending::Interrupted, Summary::default()));
    };
    let mut lines = BufReader::new(stdout).lines();
    let begin = Instant::now();
    let end = begin + Duration::from_secs(args.time_limit);
    let mut worked = Duration::ZERO;
    let mut all_back: Option<Instant> = None;
    let mut series = Series::new();
    let mut summary = Summary { servers: args.servers as u64, ..Summary::default() };
    let mut poll = tokio::time::interval(POLL);
    let ending = loop {
        tokio::select! {
            how = provisioner.ended() => {
                return Err(StageError::Ended { how, log: provisioner.tail(20) });
            }
            line = lines.next_line() => {
                let Ok(Some(line)) = line else {
                    let how = fleet.ended().await;
                    return Err(StageError::Ended { how, log: fleet.tail(20) });
                };
                let Ok(told) = serde_json::from_str::<Value>(&line) else { continue };
                let count = |name: &str| {
                    told.get("totals").and_then(|totals| totals.get(name)).and_then(Value::as_u64).unwrap_or_default()
                };
                summary.provisioned = count("provisioned");
                summary.failed = summary.servers.saturating_sub(summary.provisioned);
                summary.configured_twice = count("repeated_configures");
                if let Some(millis) = told.get("worked_ms").and_then(Value::as_u64) {
                    worked = Duration::from_millis(millis);
                }
                summary.median_cycle_ms = told.get("median_cycle_ms").and_then(Value::as_u64);
                view.show(Progress {
                    provisioned: summary.provisioned,
                    waiting: count("provisioning") + count("down"),
                    restarting: count("restarting"),
                    failures: summary.failures,
                    helper_runs: summary.helper_runs,
                });
                if summary.provisioned == summary.servers {
                    all_back.get_or_insert_with(Instant::now);
                }
            }
            _ = poll.tick() => {
                if let Some(now) = metrics(monitor).await {
                    series = now;
                }
                summary.helper_runs = whole(&series, "choria_provisioner_helper_time_count");
                summary.failures = whole(&series, "choria_provisioner_provision_errors");
                summary.confirmed = whole(&series, "quartermaster_hosts_confirmed_total");
                summary.cpu_seconds = series.get("process_cpu_seconds_total").copied();
                summary.peak_memory_mib = provisioner.peak_memory_mib();
                if let Some(back) = all_back
                    && (summary.confirmed >= summary.servers || back.elapsed() >= CONFIRM_LIMIT)
                {
                    break Ending::Done;
                }
            }
            () = tokio::time::sleep_until(end) => break Ending::OutOfTime,
        }
    };
    view.clear();
    Ok((ending, summary.rated(worked)))
}

fn whole(series: &Series, name: &str) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a counter, whole and not negative"
    )]
    series.get(name).map_or(0, |value| *value as u64)
}
