//! The binary: arguments, config, telemetry, App, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    quartermaster::init::if_first_process().unwrap_or_else(|| quartermaster::cli::main().into())
}
