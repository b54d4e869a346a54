//! What can be written, under either name, and who answers it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum};

use super::documents::{self, CompletionsArgs, ManArgs};
use super::out::Out;
use super::run::{self, RunArgs};
use crate::check::CheckArgs;
use crate::exit::Exit;
use crate::provider::ProviderCommand;
use crate::telemetry::{self, LogFormat};
use crate::{app, bench, check, control, demo, emulate, helper_test, machine, node, provider, scenario};

/// The name under which the whole command line is the peer's (choria.md 12.1).
const PEER_NAME: &str = "choria-provisioner";

/// Quartermaster takes a machine from just booted to serving: it provisions Choria servers as the site's helper decides.
#[derive(Debug, Parser)]
#[command(name = "quartermaster", version, disable_help_subcommand = true, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 could not go on, 2 wrong command line, 3 wrong configuration file, \
4 a file or program it names is missing or unusable, 5 no broker, 6 done but not all of it succeeded, 7 no instance answered, \
8 every instance refused, 9 a signal ended it, \
75 another client holds the seat of this machine, 78 not usable as it is configured (node side).\n\
Started under the name choria-provisioner, it takes the command line of the Choria Provisioner."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Log settings.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Log settings of every verb.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct LogArgs {
    /// Log everything useful when looking for a fault
    #[arg(long, global = true, overrides_with = "no_debug")]
    pub debug: bool,
    /// Undo --debug
    #[arg(long, global = true, overrides_with = "debug", hide = true)]
    pub no_debug: bool,
    /// Log lines for people or for machines [default: json in a file, text elsewhere]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Provision servers: the fleet provisioner
    Run(RunArgs),
    /// Show every fault of the configuration at once
    Check(CheckArgs),
    /// Work on the site's helper
    Helper {
        /// What to do with it.
        #[command(subcommand)]
        command: HelperCommand,
    },
    /// Speak to running instances
    #[command(flatten)]
    Control(control::Verb),
    /// Work on a provider
    Provider {
        /// What to do with it.
        #[command(subcommand)]
        command: ProviderCommand,
    },
    /// Show what a file of provider steps would do, and start nothing
    Plan(scenario::PlanArgs),
    /// Do the steps of a file, and record what was done
    Apply(scenario::ApplyArgs),
    /// Take back what a run has done, by its record
    Undo(scenario::UndoArgs),
    /// Keep this machine's files filled from the bus
    Node(Box<node::NodeArgs>),
    /// Write this machine's files as the mesh declares them
    Engine(node::EngineArgs),
    /// Keep the mesh's secrets and hand each to whom the plans name
    Vault(node::VaultArgs),
    /// Set up and look at the mesh that machines' files are filled from
    Mesh(node::MeshArgs),
    /// Run a fleet of emulated Choria servers
    Emulate(emulate::Args),
    /// Show everything at work on this machine
    Demo(demo::Args),
    /// Show the node side at work: two machines of a mesh on this one
    DemoNode(node::DemoArgs),
    /// Measure the provisioner on this machine
    Bench(bench::Args),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man(ManArgs),
}

/// `quartermaster helper …`.
#[derive(Debug, Subcommand)]
pub enum HelperCommand {
    /// Run the helper once and show what would be sent
    Test(helper_test::Args),
}

/// The Choria Provisioning Framework: provisions Choria servers as the site's helper decides.
#[derive(Debug, Parser)]
#[command(name = "choria-provisioner", version, disable_help_subcommand = true)]
struct PeerCli {
    /// Runs the provisioner
    #[arg(value_enum, default_value = "run", hide_default_value = true, value_name = "COMMAND")]
    command: PeerCommand,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PeerCommand {
    Run,
}

/// Parses the process's command line and does what it says.
pub fn main() -> Exit {
    // For libraries that are given none; ours name theirs wherever they use TLS. It fails only where it was said before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match parse(&arguments) {
        Ok(cli) => dispatch(&cli),
        Err(error) => {
            // Help and version are answers, not faults; a reader that left is none either.
            let _ = error.print();
            if error.use_stderr() { Exit::Usage } else { Exit::Success }
        }
    }
}

/// Parses `arguments`, the first being the name under which the program was started.
fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let name = arguments.first().map(PathBuf::from);
    let is_peer = name.as_deref().and_then(Path::file_name).is_some_and(|name| name == PEER_NAME);
    if is_peer {
        let PeerCli { command: PeerCommand::Run, run, log } = PeerCli::try_parse_from(arguments)?;
        return Ok(Cli { command: Command::Run(run), log });
    }
    Cli::try_parse_from(arguments)
}

fn dispatch(cli: &Cli) -> Exit {
    let mut out = Out::stdout();
    match &cli.command {
        Command::Run(args) => run::run(args, &cli.log),
        Command::Check(args) => {
            for_people(&cli.log);
            check::run(args, &machine::surroundings(), &app::connect_check, &mut out)
        }
        Command::Helper { command: HelperCommand::Test(args) } => {
            for_people(&cli.log);
            helper_test::run(args)
        }
        Command::Control(verb) => {
            for_people(&cli.log);
            control::run(verb, &machine::surroundings(), &mut out)
        }
        Command::Provider { command } => {
            for_people(&cli.log);
            provider::run(command, &mut out)
        }
        Command::Plan(args) => {
            for_people(&cli.log);
            scenario::plan(args, &mut out)
        }
        Command::Apply(args) => {
            for_people(&cli.log);
            scenario::apply(args, out)
        }
        Command::Undo(args) => {
            for_people(&cli.log);
            scenario::undo(args, out)
        }
        Command::Node(args) => node::node(args, &cli.log, &mut out),
        Command::Engine(args) => node::engine(args, &cli.log, &mut out),
        Command::Vault(args) => node::vault(args, &cli.log, &mut out),
        Command::Mesh(args) => {
            for_people(&cli.log);
            node::mesh(args, &mut out)
        }
        Command::Emulate(args) => {
            for_people(&cli.log);
            emulate::run(args)
        }
        Command::Demo(args) => {
            for_people(&cli.log);
            demo::run(args)
        }
        Command::DemoNode(args) => {
            for_people(&cli.log);
            node::demo(args)
        }
        Command::Bench(args) => {
            for_people(&cli.log);
            bench::run(args)
        }
        Command::Completions(args) => documents::completions(args, &mut Cli::command(), &mut out),
        Command::Man(args) => documents::man(args, Cli::command(), &mut out),
    }
}

/// The log of verbs that serve a person: faults on standard error.
fn for_people(log: &LogArgs) {
    // Opening no file, it cannot fail.
    let _ = telemetry::init(&telemetry::for_people(log.debug), log.log_format);
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
