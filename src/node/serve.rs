//! What every program of the node side does around its work: log, system, signals.

use std::fmt;
use std::future::Future;

use crate::app::Signals;
use crate::cli::LogArgs;
use crate::cli::out::say;
use crate::config::{LogConfig, LogLevel, LogTarget};
use crate::exit::Exit;
use crate::telemetry;

/// Runs a program until it ends or a signal asks for that; `work` is given what resolves then.
pub(super) fn serve<F, E>(
    log: &LogArgs,
    work: impl FnOnce(std::pin::Pin<Box<dyn Future<Output = ()>>>) -> F,
    exit: impl FnOnce(&E) -> Exit,
) -> Exit
where
    F: Future<Output = Result<(), E>>,
    E: std::error::Error,
{
    let level = if log.debug { LogLevel::Debug } else { LogLevel::Info };
    // Opening no file, it cannot fail.
    let _ = telemetry::init(&LogConfig { target: LogTarget::Stderr, level }, log.log_format);
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
        };
        work(Box::pin(stop)).await.map_err(|error| {
            say(&format!("error: {}\n", Chain(&error)));
            exit(&error)
        })
    });
    done.map_or_else(|exit| exit, |()| Exit::Success)
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
