//! `provider schema`: what a program declares, for people or as JSON. Nothing is configured, nothing done.

use std::path::PathBuf;

use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::probe;

use super::command::say;
use super::program::{explained, settings};
use crate::cli::out::Out;
use crate::exit::Exit;

/// Arguments of `quartermaster provider schema`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Runs PROGRAM schema, nothing else. Exit codes: 0 shown, 4 the program did not print a usable schema."
)]
pub struct Args {
    /// The provider's program
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,
    /// The schema as JSON, every member in its place
    #[arg(long)]
    pub json: bool,
}

pub async fn run(args: &Args, out: &mut Out) -> Exit {
    match probe(&settings(&args.program), &Orphans::unadopted()).await {
        Ok(probed) => {
            for warning in &probed.warnings {
                say(&format!("warning: {warning}\n"));
            }
            if args.json {
                out.text(&format!("{}\n", probed.schema.to_value().to_json()));
            } else {
                out.text(&probed.schema.to_text());
            }
            Exit::Success
        }
        Err(error) => {
            say(&format!("{}\n", explained(&error)));
            Exit::Files
        }
    }
}
