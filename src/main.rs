//! The binary: arguments, config, telemetry, App, exit code.
fn main() {}
