//! The record of every change: a line in a file and a message on a subject, each on its own way, none waiting for the other.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Serialize;
use tokio::sync::Semaphore;
use utoipa::ToSchema;

/// The file in `state_dir`.
const FILE: &str = "audit.log";
/// Others have no business in it.
const MODE: u32 = 0o640;
/// Records on their way to the subject at once; one more is not published, and that is logged.
const MAX_PUBLISHING: usize = 64;
/// How long writing one line may take before the change goes on without it; the line is still written.
const WRITE_LIMIT: Duration = Duration::from_secs(2);

/// One change that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditRecord {
    /// When, RFC 3339 in UTC.
    pub time: String,
    /// A name for this one record, the same in file and message.
    pub id: String,
    /// The instance.
    pub instance: String,
    /// Its site.
    pub site: String,
    /// How the wish arrived: `message` or `web`.
    pub via: &'static str,
    /// What was wished: `pause`, `resume`, `flip`, `drain`, `discover`, `retry` or `forget`.
    pub verb: &'static str,
    /// The host it was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Who.
    pub who: String,
    /// Why.
    pub why: String,
    /// `done`, `nothing_to_do` or the code of the error.
    pub outcome: &'static str,
    /// The run state afterwards, as a sentence.
    pub run_state: String,
}

/// Publishes one record, given as JSON.
pub type AuditPublisher = Arc<dyn Fn(Bytes) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Where records go. Cheap to clone.
#[derive(Clone)]
pub struct Audit {
    file: Option<Arc<PathBuf>>,
    publisher: Option<AuditPublisher>,
    places: Arc<Semaphore>,
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Audit {
    /// Records go to `audit.log` in this folder, if there is one, and to the publisher, if there is one.
    pub fn new(state_dir: Option<&Path>, publisher: Option<AuditPublisher>) -> Self {
        let file = state_dir.map(|dir| Arc::new(dir.join(FILE)));
        Self { file, publisher, places: Arc::new(Semaphore::new(MAX_PUBLISHING)) }
    }

    /// Keeps a record. What cannot be kept is logged: a full disk is no reason to refuse a pause.
    pub async fn record(&self, record: &AuditRecord) {
        let Ok(json) = serde_json::to_vec(record) else { return };
        let id = record.id.as_str();
        if let Some(publisher) = &self.publisher {
            self.publish(publisher, Bytes::from(json.clone()), id);
        }
        if let Some(file) = &self.file {
            let file = Arc::clone(file);
            let path = file.display().to_string();
            let write = tokio::task::spawn_blocking(move || append(&file, json));
            let why = match tokio::time::timeout(WRITE_LIMIT, write).await {
                Ok(Ok(Ok(()))) => return,
                Ok(Ok(Err(error))) => error.to_string(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("it took longer than {WRITE_LIMIT:?}"),
            };
            tracing::error!(component = "control", id, "A change could not be written to {path}: {why}");
        }
    }

    fn publish(&self, publisher: &AuditPublisher, json: Bytes, id: &str) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            tracing::warn!(component = "control", id, "A change is not published: too many are on their way");
            return;
        };
        let (publishing, id) = (publisher(json), id.to_owned());
        tokio::spawn(async move {
            if let Err(error) = publishing.await {
                tracing::warn!(component = "control", id, "A change could not be published: {error}");
            }
            drop(place);
        });
    }

    /// Waits until no record is on its way any more, at most for `limit`.
    pub async fn settled(&self, limit: Duration) {
        let all = u32::try_from(MAX_PUBLISHING).unwrap_or(u32::MAX);
        // Running out of time is an answer as well: nobody waits for a broker that is away.
        drop(tokio::time::timeout(limit, self.places.acquire_many(all)).await);
    }
}

/// Opened for each line, so that whoever moves the file away needs no signal for the next line to begin a new one.
fn append(path: &Path, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    OpenOptions::new().append(true).create(true).mode(MODE).open(path)?.write_all(&line)
}
