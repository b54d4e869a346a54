//! The verbs of `quartermaster mesh`.

use super::accounts::{AccountsArgs, accounts};
use super::bind::{BindArgs, bind};
use super::check::{CheckArgs, check};
use super::init::{InitArgs, init};
use super::look::{NeedsArgs, ReportArgs, needs, report};
use super::machines::{MachineCommand, machine};
use super::modules::{AssignArgs, PublishArgs, UnassignArgs, assign, publish, unassign};
use super::place::SiteArgs;
use super::show::{ShowArgs, show};
use super::values::{ConfigCommand, config};
use crate::cli::out::Out;
use crate::exit::Exit;

/// Arguments of `quartermaster mesh`.
#[derive(Debug, Clone, clap::Args)]
pub struct MeshArgs {
    /// Where the mesh is.
    #[command(flatten)]
    pub site: SiteArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: MeshCommand,
}

/// `quartermaster mesh …`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum MeshCommand {
    /// Make keys and the broker's configuration; with a broker also buckets, streams and the registry. What is there stays
    Init(InitArgs),
    /// Let machines in, renew their keys, shut them out
    Node {
        /// What to do.
        #[command(subcommand)]
        command: MachineCommand,
    },
    /// Put templates into the object store and print how a plan names them
    Publish(PublishArgs),
    /// Put a module on a machine: check it as the catalogue does, sign it, publish it
    Assign(AssignArgs),
    /// Take a module off a machine
    Unassign(UnassignArgs),
    /// Set config values and take them away
    Config {
        /// What to do.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Say what a provider serves a module, in the place of the provider's helper
    Bind(BindArgs),
    /// Show what the machines' clients last said of each module
    Report(ReportArgs),
    /// Show what modules need, and who owns it
    Needs(NeedsArgs),
    /// Check a catalogue, a module's file or an assignment, without a broker
    Check(CheckArgs),
    /// Show what is assigned and how it stands, and everything about one module
    Show(ShowArgs),
    /// Print what each account may publish and hear: the broker's configuration, or a table for scripts
    Accounts(AccountsArgs),
}

/// Runs the verb.
pub fn mesh(args: &MeshArgs, out: &mut Out) -> Exit {
    let site = &args.site;
    match &args.command {
        MeshCommand::Init(args) => init(site, args, out),
        MeshCommand::Node { command } => machine(site, command, out),
        MeshCommand::Publish(args) => publish(site, args, out),
        MeshCommand::Assign(args) => assign(site, args, out),
        MeshCommand::Unassign(args) => unassign(site, args, out),
        MeshCommand::Config { command } => config(site, command, out),
        MeshCommand::Bind(args) => bind(site, args, out),
        MeshCommand::Report(args) => report(site, args, out),
        MeshCommand::Needs(args) => needs(site, args, out),
        MeshCommand::Check(args) => check(args, out),
        MeshCommand::Show(args) => show(site, args, out),
        MeshCommand::Accounts(args) => accounts(args, out),
    }
}
