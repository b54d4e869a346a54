//! `quartermaster helper test`: runs the site's helper once, shows what would be sent, validates the reply.

use crate::exit::Exit;

/// Arguments of `quartermaster helper test`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {}

/// Runs the helper once.
pub fn run(_args: &Args) -> Exit {
    Exit::Failure
}
