//! What every program of the node side does around its work: log, system, signals.

use std::fmt;
use std::future::Future;

use quartermaster_actors::supervise::Vital;

use crate::app::Signals;
use crate::cli::LogArgs;
use crate::cli::out::say;
use crate::config::{LogConfig, LogLevel, LogTarget};
use crate::exit::Exit;
use crate::notify::{self, Pulse};
use crate::telemetry;

/// Runs a program until it ends or a signal asks for that; `work` is given what resolves then. The lines of a machine's program name
/// `host`. The service manager is told of the end here; [`watched`] tells it of the rest.
pub(super) fn serve<F, E>(
    log: &LogArgs,
    host: Option<&str>,
    work: impl FnOnce(std::pin::Pin<Box<dyn Future<Output = ()>>>) -> F,
    exit: impl FnOnce(&E) -> Exit,
) -> Exit
where
    F: Future<Output = Result<(), E>>,
    E: std::error::Error,
{
    let level = if log.debug { LogLevel::Debug } else { LogLevel::Info };
    // Opening no file, it cannot fail.
    let _ = telemetry::init_for(&LogConfig { target: LogTarget::Stderr, level }, log.log_format, host);
    let done = actix::System::new().block_on(async {
        let mut signals = match Signals::listen() {
            Ok(signals) => signals,
            Err(error) => {
                say(&format!("error: cannot listen for signals: {error}\n"));
                return Err(Exit::Failure);
            }
        };
        let stop = async move {
            let signal = signals.next().await;
            tracing::info!("{signal}: stopping");
            notify::stopping();
        };
        work(Box::pin(stop)).await.map_err(|error| {
            say(&format!("error: {}\n", Chain(&error)));
            exit(&error)
        })
    });
    done.map_or_else(|exit| exit, |()| Exit::Success)
}

/// Tells the service manager that the program is ready, and from here on how it lives and what it does, until what is returned is
/// dropped. `status` must not block.
pub(super) fn watched(vital: Vital, status: impl FnMut() -> String + Send + 'static) -> Option<Pulse> {
    let pulse = Pulse::start(vital, status).unwrap_or_else(|error| {
        tracing::warn!(%error, "the service manager will not hear whether this program lives");
        None
    });
    notify::ready();
    pulse
}

/// An error with what it came from.
pub(super) struct Chain<'a>(pub(super) &'a dyn std::error::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
