//! `quartermaster emulate`: a fleet of emulated Choria servers.

use crate::exit::Exit;

/// Arguments of `quartermaster emulate`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {}

/// Runs the fleet until it is told to stop. Telemetry is set up already (stderr).
pub fn run(_args: &Args) -> Exit {
    Exit::Failure
}
