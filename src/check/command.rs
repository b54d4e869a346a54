//! The verb: load, examine, connect, say.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::{Style, examine, examine_schema, render};
use crate::app::ConnectReport;
use crate::cli::out::Out;
use crate::config::{Config, DEFAULT_FILE, Fault, FaultKind, Faults, Severity, Surroundings, load};
use crate::exit::Exit;

/// Arguments of `quartermaster check`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Exit codes: 0 no error (there may be warnings), 3 a configuration file is wrong, 4 something it names is \
missing or unusable, 5 the broker cannot be reached or refuses the login."
)]
pub struct CheckArgs {
    /// YAML configuration file
    #[arg(long, value_name = "FILE", required_unless_present = "print_default")]
    pub config: Option<PathBuf>,
    /// Choria client configuration file [default: the user's or the system's]
    #[arg(long, value_name = "FILE")]
    pub choria_config: Option<PathBuf>,
    /// Log in to the broker as well
    #[arg(long)]
    pub connect: bool,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Print the commented default file and end
    #[arg(long)]
    pub print_default: bool,
}

/// Logs in once and says what it found, or why not.
pub type Connect<'c> = &'c dyn Fn(&Arc<Config>) -> Result<ConnectReport, String>;

/// Loads both files and examines what they name; with faults, the configuration may be missing.
pub fn load_and_examine(
    yaml: &std::path::Path,
    choria: Option<&std::path::Path>,
    around: &Surroundings<'_>,
) -> (Option<Config>, Faults) {
    let loaded = load(yaml, choria, around);
    let mut faults = loaded.faults;
    let mut config = loaded.config;
    if let Some(config) = &mut config {
        let mut schemas = examine(config, around, &mut faults);
        faults.sort();
        for provider in &mut config.providers {
            provider.probed = schemas.remove(&provider.name);
        }
    }
    (config, faults)
}

/// Does what `args` ask for.
pub fn run(args: &CheckArgs, around: &Surroundings<'_>, connect: Connect<'_>, out: &mut Out) -> Exit {
    if args.print_default {
        out.text(DEFAULT_FILE);
        return Exit::Success;
    }
    let Some(yaml) = &args.config else { return Exit::Usage };
    let (config, mut faults) = load_and_examine(yaml, args.choria_config.as_deref(), around);
    if faults.may_start()
        && let Some(config) = &config
    {
        examine_schema(config, &mut faults);
        faults.sort();
    }
    let mut broker = None;
    if args.connect
        && faults.may_start()
        && let Some(config) = config
    {
        match connect(&Arc::new(config)) {
            Ok(report) => broker = Some(report),
            Err(what) => faults.push(Fault {
                severity: Severity::Error,
                kind: FaultKind::Broker,
                file: None,
                place: None,
                key: None,
                what,
                help: None,
            }),
        }
    }
    let exit = faults.exit();
    if args.json {
        let report = Report {
            ok: exit == Exit::Success,
            exit: exit.code(),
            faults: faults.list(),
            broker: broker.as_ref(),
        };
        out.text(&format!("{}\n", serde_json::to_string_pretty(&report).unwrap_or_default()));
        return exit;
    }
    out.text(&render(&faults, Style::of_terminal(std::io::stdout().is_terminal(), around.env)));
    if let Some(broker) = &broker {
        out.text(&format!(
            "logged in to {} ({}), messages up to {} bytes\n",
            broker.broker, broker.name, broker.max_payload
        ));
    }
    if args.connect && broker.is_none() && faults.errors().all(|fault| fault.kind != FaultKind::Broker) {
        out.text("the broker was not tried, since the configuration has errors\n");
    }
    out.text(&summary(&faults));
    exit
}

#[derive(Serialize)]
struct Report<'r> {
    ok: bool,
    exit: u8,
    faults: &'r [Fault],
    broker: Option<&'r ConnectReport>,
}

fn summary(faults: &Faults) -> String {
    let count = |number: usize, word: &str| match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    };
    match (faults.errors().count(), faults.warnings().count()) {
        (0, 0) => "no faults\n".to_owned(),
        (errors, warnings) => format!("{}, {}\n", count(errors, "error"), count(warnings, "warning")),
    }
}
