//! Every archive once: in memory for all modules that name it, on the disk for the next start.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use quartermaster_proto::mesh::plan::{Digest, Templates as TemplatesPlan};
use tokio::{sync::Mutex, task::spawn_blocking};

use super::{
    cache::Cache,
    fetch::{FetchError, Fetcher},
};
use crate::{
    archive::{self, Templates},
    backoff::Backoff,
    core::ArchiveState,
};

/// What became of one attempt, and how long to wait before the next if it failed.
pub type Attempt = (ArchiveState, Option<Backoff>);

type Kept = Arc<Mutex<Weak<Templates>>>;

/// Has archives here. Clones share it.
#[derive(Debug, Clone)]
pub struct TemplatesKeeper {
    fetcher: Fetcher,
    cache: Option<Cache>,
    kept: Arc<Mutex<HashMap<Digest, Kept>>>,
}

impl TemplatesKeeper {
    /// Without a cache every start fetches anew.
    pub fn new(fetcher: Fetcher, cache: Option<Cache>) -> Self {
        Self { fetcher, cache, kept: Arc::default() }
    }

    /// Tries once to have an archive here. Two that want the same wait for one fetch.
    pub async fn get(&self, plan: &TemplatesPlan) -> Attempt {
        let kept = {
            let mut all = self.kept.lock().await;
            all.retain(|digest, kept| {
                *digest == plan.digest || kept.try_lock().is_ok_and(|kept| kept.strong_count() > 0)
            });
            Arc::clone(all.entry(plan.digest).or_default())
        };
        let mut kept = kept.lock().await;
        if let Some(templates) = kept.upgrade() {
            return (ArchiveState::Ready(templates), None);
        }
        let attempt = self.obtain(plan).await;
        if let (ArchiveState::Ready(templates), _) = &attempt {
            *kept = Arc::downgrade(templates);
        }
        attempt
    }

    async fn obtain(&self, plan: &TemplatesPlan) -> Attempt {
        let digest = plan.digest;
        if let Some(cache) = self.cache.clone() {
            let loaded = spawn_blocking(move || Some(read(&cache.load(&digest)?))).await;
            if let Ok(Some(state)) = loaded {
                return (state, None);
            }
        }
        let bytes = match self.fetcher.fetch(&plan.reference).await {
            Ok(bytes) => bytes,
            Err(FetchError::Waiting(why)) => return (ArchiveState::Waiting(why), Some(Backoff::NO_ANSWER)),
            Err(error) => return (failed(&error.to_string()), Some(Backoff::WRONG_ARCHIVE)),
        };
        let cache = self.cache.clone();
        let tested = spawn_blocking(move || {
            let found = Digest::of(&bytes);
            if found != digest {
                let state = failed(&format!("the archive hashes to {found}, and the plan says {digest}"));
                return (state, Some(Backoff::WRONG_ARCHIVE));
            }
            if let Some(Err(error)) = cache.map(|cache| cache.store(&digest, &bytes)) {
                tracing::warn!(%error, "an archive of templates is not kept");
            }
            (read(&bytes), None)
        });
        // The reader's own panic would be a defect of ours; then the archive is tried again later.
        tested.await.unwrap_or_else(|_| (failed("the archive cannot be read"), Some(Backoff::WRONG_ARCHIVE)))
    }
}

/// An archive that is what the plan says; when it is refused, only another plan helps.
fn read(bytes: &[u8]) -> ArchiveState {
    match archive::read(bytes) {
        Ok(templates) => ArchiveState::Ready(Arc::new(templates)),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(reason: &str) -> ArchiveState {
    ArchiveState::Failed { reason: reason.to_owned(), retry_at: None }
}
