//! `quartermaster run`: configuration, log, then the fleet provisioner.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::LogArgs;
use super::out::say;
use crate::app::{self, RunOptions};
use crate::check::{Style, load_and_examine, render};
use crate::config::{Faults, LogConfig, LogLevel};
use crate::exit::Exit;
use crate::{machine, telemetry};

/// Arguments of `quartermaster run`, the peer's (choria.md 12.1).
#[derive(Debug, Clone, clap::Args)]
pub struct RunArgs {
    /// YAML configuration file
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Choria client configuration file [default: the user's or the system's]
    #[arg(long, value_name = "FILE")]
    pub choria_config: Option<PathBuf>,
    /// Write the process id to this file once the instance is up; it is removed at the end
    #[arg(long, value_name = "FILE")]
    pub pid: Option<PathBuf>,
    /// Write every frame between this instance and its providers to this file, secrets covered
    #[arg(long, value_name = "FILE")]
    pub trace_wire: Option<PathBuf>,
}

pub(super) fn run(args: &RunArgs, log: &LogArgs) -> Exit {
    let around = machine::surroundings();
    let (config, faults) = load_and_examine(&args.config, args.choria_config.as_deref(), &around);
    let Some(config) = config.filter(|_| faults.may_start()) else {
        let style = Style::of_terminal(std::io::stderr().is_terminal(), around.env);
        say(&format!("{}the configuration has errors, so nothing was started\n", render(&faults, style)));
        return faults.exit();
    };
    let level = if log.debug { LogLevel::Debug } else { config.log.level };
    let settings = LogConfig { target: config.log.target.clone(), level };
    let telemetry = match telemetry::init(&settings, log.log_format) {
        Ok(telemetry) => telemetry,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            say(&format!("error: {error}: {cause}\n"));
            return Exit::Files;
        }
    };
    telemetry.reopen_on_hangup();
    log_warnings(&faults);
    let (pid_file, trace_wire) = (args.pid.clone(), args.trace_wire.clone());
    let exit = app::run(Arc::new(config), &RunOptions { pid_file, trace_wire, ..RunOptions::default() });
    telemetry.close();
    exit
}

fn log_warnings(faults: &Faults) {
    for fault in faults.warnings() {
        let file = fault.file.as_ref().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        let line = fault.place.map_or(0, |place| place.line);
        let key = fault.key.as_deref().unwrap_or_default();
        let help = fault.help.as_deref().unwrap_or_default();
        tracing::warn!(component = "config", file, line, key, help, "Configuration: {key}: {}", fault.what);
    }
}
