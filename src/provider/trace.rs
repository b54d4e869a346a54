//! `--trace-wire FILE`: every frame between this process and its providers, one JSON object a line; `provider replay` answers from it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quartermaster_actors::provider::{TraceLine, TraceSink};
use serde::{Deserialize, Serialize};

/// The file could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the frames of providers to {}", path.display())]
pub struct TraceError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// A file of frames; clones write to the same one. Secrets that the providers' schemas declare are covered.
#[derive(Clone)]
pub struct TraceFile {
    /// None once it could not be written to.
    file: Arc<Mutex<Option<File>>>,
}

impl fmt::Debug for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceFile(..)")
    }
}

/// One line of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// Milliseconds since the provider's runner began.
    pub at_ms: f64,
    /// The provider's local name.
    pub provider: String,
    /// The number of its process.
    pub process: u64,
    /// Who wrote the frame.
    pub from: From,
    /// The frame, as text: what a provider writes need not be JSON.
    pub frame: String,
}

/// Who wrote a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// This process.
    Host,
    /// The provider.
    Provider,
}

impl TraceFile {
    /// Opens the file, for its owner alone; what it held is gone.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        let file = opened.map_err(|source| TraceError { path: path.to_owned(), source })?;
        Ok(Self { file: Arc::new(Mutex::new(Some(file))) })
    }

    /// Takes the frames of the provider of this name; `cover` may change each before it is written.
    pub fn sink(&self, provider: &str, cover: impl Fn(&str) -> String + Send + Sync + 'static) -> TraceSink {
        let (file, provider) = (Arc::clone(&self.file), provider.to_owned());
        Arc::new(move |line: TraceLine| {
            let from = if line.ours { From::Host } else { From::Provider };
            let traced = Traced {
                at_ms: line.at.as_secs_f64() * 1e3,
                provider: provider.clone(),
                process: line.process,
                from,
                frame: cover(&line.frame),
            };
            let Ok(mut text) = serde_json::to_string(&traced) else { return };
            text.push('\n');
            // A panic elsewhere spoils no line.
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(open) = file.as_mut()
                && let Err(error) = open.write_all(text.as_bytes())
            {
                tracing::warn!(component = "provider", "no more frames are written down: {error}");
                *file = None;
            }
        })
    }
}
