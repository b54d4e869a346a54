//! What the service manager sees of us: signals and the file with the process id.

use std::path::{Path, PathBuf};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::AppError;

/// The signals that ask for an end.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one; answers with its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// The file with our process id; removed when dropped.
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes it.
    pub fn write(path: &Path) -> Result<Self, AppError> {
        std::fs::write(path, format!("{}", std::process::id()))
            .map_err(|source| AppError::Pid { path: path.to_owned(), source })?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::warn!("could not remove {}: {error}", self.0.display());
        }
    }
}
