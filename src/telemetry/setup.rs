//! Setting the log up, and opening its file anew.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::layer::LogLayer;
use super::sink::{LogFile, Sink};
use crate::config::{LogConfig, LogLevel, LogTarget};

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people: time, level, component, message, `key=value`.
    Text,
    /// For machines: one JSON object in a line, keys `time level msg component host` first.
    Json,
}

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The file cannot be opened for appending.
    #[error("failed to open the log file `{path}`")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The log once it is set up.
#[derive(Debug, Clone)]
pub struct Telemetry {
    file: Option<Arc<LogFile>>,
}

/// Sets the log up for the whole process: where and how much by `log`, how by `format` (JSON in a file and text elsewhere when
/// `None`). A panic becomes a line as well.
///
/// # Errors
/// The log file cannot be opened.
pub fn init(log: &LogConfig, format: Option<LogFormat>) -> Result<Telemetry, TelemetryError> {
    let mut file = None;
    let sink: Arc<dyn Sink> = match &log.target {
        LogTarget::Stdout => Arc::new(io::stdout()),
        LogTarget::Stderr => Arc::new(io::stderr()),
        LogTarget::Discard => Arc::new(io::sink()),
        LogTarget::File(path) => {
            let opened = LogFile::open(path)
                .map_err(|source| TelemetryError::Open { path: path.clone(), source })
                .map(Arc::new)?;
            file = Some(Arc::clone(&opened));
            opened
        }
    };
    let format = format.unwrap_or(if file.is_some() { LogFormat::Json } else { LogFormat::Text });
    // A second set-up in one process (tests) keeps the first.
    let first =
        tracing_subscriber::registry().with(LogLayer::new(format, log.level, sink)).try_init().is_ok();
    if first {
        std::panic::set_hook(Box::new(log_panic));
    }
    if let Some(mode) = file.as_ref().and_then(|file| file.loose_mode()) {
        tracing::warn!(
            component = "log",
            mode = format!("{mode:04o}"),
            "Others may read the log file, which names hosts and their faults: chmod 0640 it"
        );
    }
    Ok(Telemetry { file })
}

/// The settings of verbs that serve a person at a terminal: faults on standard error, everything with `debug`.
pub fn for_people(debug: bool) -> LogConfig {
    LogConfig { target: LogTarget::Stderr, level: if debug { LogLevel::Debug } else { LogLevel::Warn } }
}

impl Telemetry {
    /// Opens the log file anew, for whoever moved the old one away. Without a file, nothing happens.
    pub fn reopen(&self) {
        if let Some(file) = &self.file {
            match file.reopen() {
                Ok(()) => tracing::info!(component = "log", "Opened the log file anew"),
                Err(error) => {
                    tracing::error!(component = "log", %error, "Failed to open the log file anew, the old one stays");
                }
            }
        }
    }

    /// Calls [`reopen`](Self::reopen) at every SIGHUP. Without a log file SIGHUP keeps its meaning: the terminal is gone, end.
    pub fn reopen_on_hangup(&self) {
        if self.file.is_none() {
            return;
        }
        let telemetry = self.clone();
        let spawned = std::thread::Builder::new().name("log-reopen".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let hangup = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup());
                let Ok(mut hangup) = hangup else { return };
                while hangup.recv().await.is_some() {
                    telemetry.reopen();
                }
            });
        });
        if let Err(error) = spawned {
            tracing::error!(component = "log", %error, "SIGHUP will not open the log file anew");
        }
    }
}

fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let what = panic
        .payload()
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.payload().downcast_ref::<String>().cloned())
        .unwrap_or_default();
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(component = "panic", place, "A part of the program failed unexpectedly: {what}");
}
