//! Why a run could not be followed to its end.

use std::io;

/// Why a run has no [`super::Execution`]. Names no program: whoever started it does.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The process could not be started.
    #[error("the process could not be started")]
    Start(#[source] io::Error),
    /// Its pipes or its end could not be watched.
    #[error("the process could not be followed")]
    Follow(#[source] io::Error),
}
