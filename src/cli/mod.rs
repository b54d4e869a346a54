//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::exit::Exit;
use crate::{demo, emulate, helper_test};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "quartermaster", version, about, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Provision servers: the fleet provisioner
    Run(RunArgs),
    /// Work on the site's helper
    Helper {
        /// What to do with it.
        #[command(subcommand)]
        command: HelperCommand,
    },
    /// Run a fleet of emulated Choria servers
    Emulate(emulate::Args),
    /// Show everything at work on this machine
    Demo(demo::Args),
}

/// `quartermaster helper …`.
#[derive(Debug, Subcommand)]
pub enum HelperCommand {
    /// Run the helper once and show what would be sent
    Test(helper_test::Args),
}

/// Arguments of `quartermaster run`, the peer's (choria.md 12.1).
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// YAML configuration file
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Choria client configuration file
    #[arg(long, value_name = "FILE")]
    pub choria_config: Option<PathBuf>,
    /// Write the process id to this file
    #[arg(long, value_name = "FILE")]
    pub pid: Option<PathBuf>,
}

/// Parses the command line and does what it says.
pub fn main() -> Exit {
    let cli = Cli::parse();
    match &cli.command {
        Command::Run(_) => Exit::Failure,
        Command::Helper { command: HelperCommand::Test(args) } => helper_test::run(args),
        Command::Emulate(args) => emulate::run(args),
        Command::Demo(args) => demo::run(args),
    }
}
