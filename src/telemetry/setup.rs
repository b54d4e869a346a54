//! Setting the log up, and opening its file anew.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::journald::leads_there;
use super::layer::LogLayer;
use super::sink::{LogFile, Sink};
use crate::config::{LogConfig, LogLevel, LogTarget};
use crate::notify;

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
    /// Traces cannot be sent.
    #[cfg(feature = "otel")]
    #[error("failed to set up the sending of traces")]
    Traces(#[source] opentelemetry_otlp::ExporterBuildError),
}

/// The log once it is set up.
#[derive(Debug, Clone)]
pub struct Telemetry {
    file: Option<Arc<LogFile>>,
    #[cfg(feature = "otel")]
    traces: Option<super::otel::Traces>,
}

/// Sets the log up for the whole process: where and how much by `log`, how by `format` (JSON in a file and text elsewhere when
/// `None`). A panic becomes a line as well.
///
/// # Errors
/// The log file cannot be opened.
pub fn init(log: &LogConfig, format: Option<LogFormat>) -> Result<Telemetry, TelemetryError> {
    init_for(log, format, None)
}

/// As [`init`], for a program of one host, which every line names that names no other.
///
/// # Errors
/// The log file cannot be opened.
pub fn init_for(
    log: &LogConfig,
    format: Option<LogFormat>,
    host: Option<&str>,
) -> Result<Telemetry, TelemetryError> {
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
    let is_journal = match log.target {
        LogTarget::Stdout => leads_there(io::stdout()),
        LogTarget::Stderr => leads_there(io::stderr()),
        LogTarget::Discard | LogTarget::File(_) => false,
    };
    let lines = LogLayer::new(format, log.level, sink).to_journal(is_journal).of_host(host);
    #[cfg(feature = "otel")]
    let (spans, traces) = super::otel::layer()?.unzip();
    #[cfg(feature = "otel")]
    let subscriber = tracing_subscriber::registry().with(spans).with(lines);
    #[cfg(not(feature = "otel"))]
    let subscriber = tracing_subscriber::registry().with(lines);
    // A second set-up in one process (tests) keeps the first.
    let first = subscriber.try_init().is_ok();
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
    Ok(Telemetry {
        file,
        #[cfg(feature = "otel")]
        traces,
    })
}

/// The settings of verbs that serve a person at a terminal: faults on standard error, everything with `debug`.
pub fn for_people(debug: bool) -> LogConfig {
    LogConfig { target: LogTarget::Stderr, level: if debug { LogLevel::Debug } else { LogLevel::Warn } }
}

impl Telemetry {
    /// To be called at the end: nothing that was recorded stays behind.
    pub fn close(&self) {
        #[cfg(feature = "otel")]
        if let Some(traces) = &self.traces {
            traces.close();
        }
    }

    /// Opens the log file anew, for whoever moved the old one away. Without a file, only the service manager is told.
    pub fn reopen(&self) {
        notify::reloading();
        if let Some(file) = &self.file {
            match file.reopen() {
                Ok(()) => tracing::info!(component = "log", "Opened the log file anew"),
                Err(error) => {
                    tracing::error!(component = "log", %error, "Failed to open the log file anew, the old one stays");
                }
            }
        }
        notify::ready();
    }

    /// Calls [`reopen`](Self::reopen) at every SIGHUP. With neither a log file nor a service manager, SIGHUP keeps its meaning:
    /// the terminal is gone, end.
    pub fn reopen_on_hangup(&self) {
        if self.file.is_none() && !notify::is_managed() {
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
