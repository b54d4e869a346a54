//! The binary: arguments, config, telemetry, App, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    quartermaster::cli::main().into()
}
