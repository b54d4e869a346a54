//! What survives a restart: opened before anything works, so that nothing begins that was begun already.

use std::sync::Arc;

use quartermaster_actors::control::PausedBy;
use quartermaster_actors::journal::{Found, HistoryLimits, JournalHandle, StateDirError, StoredPause};

use crate::config::Config;

/// The journal and what was found in it.
pub struct Kept {
    /// The journal.
    pub journal: JournalHandle,
    /// What was found.
    pub found: Found,
}

/// Opens the journal in the state folder; without one, everything stays in memory, with one warning.
pub fn kept(config: &Config) -> Result<Kept, StateDirError> {
    let Some(path) = &config.state_dir else {
        tracing::warn!(
            "no state_dir: what is in flight, waits, given-up servers, a pause and the history are in memory only, and end \
             with the process"
        );
        return Ok(Kept { journal: JournalHandle::in_memory(), found: Found::default() });
    };
    let (journal, found) = JournalHandle::open(path, HistoryLimits::STANDARD, wall_ms())?;
    let cut_off = found.hosts.iter().filter(|host| host.cut_off.is_some()).count();
    tracing::info!(
        path = %path.display(),
        servers = found.hosts.len(),
        in_flight = cut_off,
        durable = journal.is_durable(),
        "the journal is read"
    );
    Ok(Kept { journal, found })
}

/// An operator's pause of an earlier life, which is still in force.
pub fn paused(stored: Option<StoredPause>) -> Option<Arc<PausedBy>> {
    let StoredPause { who, why, since } = stored?;
    tracing::warn!(who, why, since, "still paused by an operator, as before the restart");
    Some(Arc::new(PausedBy { who, why, since }))
}

/// Unix milliseconds.
pub fn wall_ms() -> i64 {
    crate::clock::now().nanos().div_euclid(1_000_000)
}
