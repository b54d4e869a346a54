//! `quartermaster plan FILE`: what would be done. Nothing is started but each program's `schema` subcommand.

use std::path::PathBuf;

use super::arguments::VariableArgs;
use super::prepare::{given, prepare};
use super::secrets::Secrets;
use super::show::{to_json, to_text};
use crate::cli::out::Out;
use crate::exit::Exit;

/// Arguments of `quartermaster plan`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Each provider's program is asked for its schema (PROGRAM schema); nothing is configured, nothing done. Exit codes: 0 it \
can be carried out, 2 a variable was given that cannot be used, 3 the file is wrong: every fault was printed with its line, 4 the file or \
a program cannot be used."
)]
pub struct PlanArgs {
    /// The file of steps
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The scenario, where the file has several
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// Values of variables.
    #[command(flatten)]
    pub variables: VariableArgs,
    /// The plan as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Accepted for scripts; nothing is coloured
    #[arg(long)]
    pub no_color: bool,
}

/// Shows what would be done.
pub fn run(args: &PlanArgs, out: &mut Out) -> Exit {
    actix_rt::System::new().block_on(plan(args, out)).unwrap_or_else(|exit| exit)
}

async fn plan(args: &PlanArgs, out: &mut Out) -> Result<Exit, Exit> {
    let given = given(&args.variables)?;
    let (mut prepared, mut faults) =
        prepare(&args.file, args.scenario.as_deref(), &given, None, Secrets::default()).await?;
    let checked = prepared.check(&mut faults)?;
    let text = if args.json { format!("{}\n", to_json(&checked)) } else { to_text(&checked) };
    out.text(&prepared.secrets.text(&text));
    Ok(Exit::Success)
}
