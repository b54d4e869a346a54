//! What an earlier life saw: the highest revision of each bucket, so that one that was set back is noticed, and the highest
//! serial of each assignment, so that an older one is not taken for a new one.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

/// Everything that is remembered, in one file. Clones share it.
#[derive(Debug, Clone)]
pub struct Seen {
    file: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    memory: Memory,
    is_changed: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Memory {
    #[serde(default)]
    buckets: BTreeMap<String, u64>,
    #[serde(default)]
    serials: BTreeMap<String, u64>,
}

impl Seen {
    /// What this file remembers; a file that is not there, or cannot be understood, remembers nothing.
    pub fn open(file: PathBuf) -> Self {
        let memory = match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                tracing::warn!(%error, "what earlier runs saw of the buckets cannot be read");
                Memory::default()
            }),
            Err(_) => Memory::default(),
        };
        Self { file, state: Arc::new(Mutex::new(State { memory, is_changed: false })) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mark of one bucket.
    pub fn bucket(&self, name: &str) -> SeenMark {
        SeenMark::Shared(self.clone(), name.to_owned())
    }

    /// Writes down what changed since the last time.
    pub fn save(&self) {
        let text = {
            let mut state = self.state();
            if !std::mem::take(&mut state.is_changed) {
                return;
            }
            serde_json::to_vec(&state.memory).unwrap_or_default()
        };
        if let Err(error) = replace(&self.file, &text) {
            self.state().is_changed = true;
            tracing::warn!(%error, "what was seen of the buckets cannot be remembered");
        }
    }
}

/// Where the highest revision of one bucket, and serials, are remembered.
#[derive(Debug, Clone)]
pub enum SeenMark {
    /// Nowhere: every life begins anew.
    Nowhere,
    /// In a file of its own; of revisions only.
    File(PathBuf),
    /// With others.
    Shared(Seen, String),
}

impl From<Option<PathBuf>> for SeenMark {
    fn from(file: Option<PathBuf>) -> Self {
        file.map_or(Self::Nowhere, Self::File)
    }
}

impl SeenMark {
    /// The highest revision that was seen; 0 for none.
    pub fn highest(&self) -> u64 {
        match self {
            Self::Nowhere => 0,
            Self::File(file) => {
                fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
            }
            Self::Shared(seen, bucket) => {
                seen.state().memory.buckets.get(bucket).copied().unwrap_or_default()
            }
        }
    }

    /// This revision was seen.
    pub fn note(&self, highest: u64) {
        match self {
            Self::Nowhere => {}
            Self::File(file) => {
                if let Err(error) = replace(file, format!("{highest}\n").as_bytes()) {
                    tracing::warn!(%error, "the highest revision seen cannot be remembered");
                }
            }
            Self::Shared(seen, bucket) => {
                let mut state = seen.state();
                state.memory.buckets.insert(bucket.clone(), highest);
                state.is_changed = true;
            }
        }
    }

    /// The highest serial that was taken under this key; 0 for none.
    pub fn serial(&self, key: &str) -> u64 {
        match self {
            Self::Shared(seen, _) => seen.state().memory.serials.get(key).copied().unwrap_or_default(),
            Self::Nowhere | Self::File(_) => 0,
        }
    }

    /// This serial was taken under this key.
    pub fn note_serial(&self, key: &str, serial: u64) {
        if let Self::Shared(seen, _) = self
            && self.serial(key) != serial
        {
            let mut state = seen.state();
            state.memory.serials.insert(key.to_owned(), serial);
            state.is_changed = true;
        }
    }

    /// The key is gone, and its serial with it.
    pub fn forget_serial(&self, key: &str) {
        if let Self::Shared(seen, _) = self {
            let mut state = seen.state();
            state.is_changed |= state.memory.serials.remove(key).is_some();
        }
    }
}

/// Writes a file beside its place and renames it, so that it is there whole or as it was.
fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    let mut beside = tempfile::NamedTempFile::new_in(folder)?;
    beside.write_all(text)?;
    beside.persist(file).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_there_in_the_next_life() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seen.json");
        let seen = Seen::open(file.clone());
        let (mirror, config) = (seen.bucket("mirror"), seen.bucket("config"));
        mirror.note(42);
        mirror.note_serial("web1.forge", 7);
        mirror.note_serial("web1.gone", 1);
        mirror.forget_serial("web1.gone");
        seen.save();
        let next = Seen::open(file.clone());
        assert_eq!((next.bucket("mirror").highest(), next.bucket("config").highest()), (42, 0));
        assert_eq!((config.serial("web1.forge"), next.bucket("mirror").serial("web1.gone")), (7, 0));
        fs::write(&file, "not JSON").unwrap();
        assert_eq!(Seen::open(file).bucket("mirror").highest(), 0);
    }

    #[test]
    fn a_file_of_its_own_holds_one_revision() {
        let folder = tempfile::tempdir().unwrap();
        let mark = SeenMark::from(Some(folder.path().join("seen")));
        assert_eq!(mark.highest(), 0);
        mark.note(9);
        assert_eq!((mark.highest(), mark.serial("a")), (9, 0));
        assert_eq!(SeenMark::from(None).highest(), 0);
    }
}
