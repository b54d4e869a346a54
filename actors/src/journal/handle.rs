//! What others hold of the journal.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use quartermaster_proto::choria::identity::Identity;
use tokio::sync::watch;
use zeroize::Zeroizing;

use super::actor::JournalKeeper;
use super::entry::{Began, Entry, Intent, Standing, StoredPause, Unfinished};
use super::error::{StateDirError, StoreError};
use super::folder::Folder;
use super::history::HistoryLimits;
use super::journal::{CutOff, Journal};
use super::provided;
use super::record::AttemptRecord;
use super::shared::Shared;
use super::store::Store;
use crate::metrics::Recorder;
use crate::steps::{Ledger, Record};
use crate::supervise::{Owned, RestartPolicy, Slot};
use crate::text::chain;

/// A host as it is found in the journal at the start.
#[derive(Debug)]
pub struct Restored {
    /// The host.
    pub host: Identity,
    /// What the roster knew of it.
    pub standing: Standing,
    /// Its cycle, when the instance ended under it.
    pub cut_off: Option<CutOff>,
    /// What `configure` was to send it, when its reply may be lost and this can still be read.
    pub material: Option<Zeroizing<String>>,
    /// What providers did for it that is not over; none when they did nothing.
    pub steps: Option<Ledger>,
}

/// What was found at the start.
#[derive(Debug, Default)]
pub struct Found {
    /// The hosts.
    pub hosts: Vec<Restored>,
    /// The operator's pause.
    pub paused: Option<StoredPause>,
    /// Hosts nobody remembers but for what providers did for them.
    pub only_provided: Vec<(Identity, Ledger)>,
    /// The number no cycle has had yet; at least 1.
    pub next_cycle: u64,
}

/// A handle to the journal; clones share it. Nothing here waits for a disk but where it says so.
#[derive(Debug, Clone)]
pub struct JournalHandle {
    shared: Arc<Shared>,
}

impl JournalHandle {
    /// A journal that forgets everything with the process.
    pub fn in_memory() -> Self {
        Self { shared: Shared::new(Journal::new(HistoryLimits::STANDARD), None, None) }
    }

    /// Takes the state folder for this instance and reads its journal. A file that cannot be used is kept aside, and said
    /// so; a folder that cannot be used is an error.
    pub fn open(path: &Path, limits: HistoryLimits, now_ms: i64) -> Result<(Self, Found), StateDirError> {
        let folder = Folder::take(path)?;
        if folder.seal().is_none() {
            tracing::error!(
                "the key of the journal could not be kept in {}: a helper's decision will not be used again after a crash",
                path.display()
            );
        }
        let mut journal = Journal::new(limits);
        let store = match read(&folder, &mut journal) {
            Ok(store) => Some(store),
            Err(error) => {
                journal = Journal::new(limits);
                start_over(&folder, &error, now_ms)
            }
        };
        let (cut, mut writes) = journal.cut_off(now_ms);
        writes.extend(journal.expire(now_ms));
        let found = found(&journal, cut, &folder);
        let shared = Shared::new(journal, Some(folder), store);
        {
            let mut inner = shared.lock();
            if inner.durable {
                inner.queue = writes;
            }
        }
        Ok((Self { shared }, found))
    }

    /// The keeper as a child of an owner: restarted at once, then with growing delays, for ever.
    pub fn owned(&self, recorder: &Recorder, wall_ms: fn() -> i64) -> Owned<JournalKeeper> {
        let (shared, recorder) = (Arc::clone(&self.shared), recorder.clone());
        Owned::new(self.shared.slot.clone(), RestartPolicy::standard().at_once(), move |birth, _| {
            JournalKeeper::new(Arc::clone(&shared), recorder.clone(), wall_ms, Some(birth))
        })
    }

    /// The keeper's position.
    pub fn slot(&self) -> &Slot<JournalKeeper> {
        &self.shared.slot
    }

    /// True while what is entered reaches a disk.
    pub fn is_durable(&self) -> bool {
        self.shared.lock().durable
    }

    /// Whether there is room for the entries of new cycles, as it changes.
    pub fn room(&self) -> watch::Receiver<bool> {
        self.shared.room()
    }

    /// A cycle begins.
    pub fn began(&self, host: Identity, began: Began) {
        let now_ms = began.at_ms;
        self.shared.note(Entry::Began { host, began }, now_ms);
    }

    /// A step that changes the host is about to be taken: waits until that is on the disk, for as long as it takes. `secret`
    /// is what `configure` sends; it is sealed before it leaves memory.
    pub async fn intend(&self, host: &Identity, cycle: u64, intent: Intent, secret: Option<&str>) {
        let seal = self.shared.folder.as_ref().and_then(Folder::seal);
        let material = seal.zip(secret).and_then(|(seal, secret)| seal.close(host.as_str(), secret));
        let now_ms = intent.at_ms;
        self.commit(Entry::Intended { cycle, intent, material }, now_ms).await;
    }

    /// A provider is about to do something for a host, or has done it: waits until that is on the disk, for as long as it takes.
    /// What is secret in it is sealed before it leaves memory.
    pub async fn step(&self, host: &Identity, record: &Record, now_ms: i64) {
        self.commit(self.step_entry(host, record), now_ms).await;
    }

    /// The same without waiting.
    pub fn note_step(&self, host: &Identity, record: &Record, now_ms: i64) {
        self.shared.note(self.step_entry(host, record), now_ms);
    }

    fn step_entry(&self, host: &Identity, record: &Record) -> Entry {
        let seal = self.shared.folder.as_ref().and_then(Folder::seal);
        Entry::Step { host: host.clone(), text: provided::seal(record, host.as_str(), seal) }
    }

    /// What providers did for a host is over.
    pub fn steps_over(&self, host: &Identity, now_ms: i64) {
        self.shared.note(Entry::StepsOver { host: host.clone() }, now_ms);
    }

    /// The host agreed to a step that changes it.
    pub fn done(&self, cycle: u64, step: &str, now_ms: i64) {
        self.shared.note(Entry::Done { cycle, step: step.to_owned() }, now_ms);
    }

    /// An attempt is over; `standing` is what the roster remembers of the host from now on.
    pub fn ended(&self, host: &Identity, attempt: AttemptRecord, standing: Option<Standing>, now_ms: i64) {
        self.shared.note(Entry::Ended { host: host.clone(), attempt, standing }, now_ms);
    }

    /// A cycle was lost with the part of the instance that led it; `standing` is what the roster remembers of its host from now
    /// on.
    pub fn lost(&self, host: &Identity, cycle: u64, standing: Option<Standing>, now_ms: i64) {
        self.shared.note(Entry::Lost { cycle, host: host.clone(), standing }, now_ms);
    }

    /// What the roster remembers of a host has changed.
    pub fn stands(&self, host: &Identity, standing: Option<Standing>, now_ms: i64) {
        self.shared.note(Entry::Stands { host: host.clone(), standing }, now_ms);
    }

    /// Forgets a host; true when there was a history of it.
    pub fn forget(&self, host: &Identity, now_ms: i64) -> bool {
        let known = self.shared.lock().journal.history().knows(host);
        self.shared.note(Entry::Forgotten { host: host.clone() }, now_ms);
        known
    }

    /// Keeps an operator's pause, or its end: waits until it is on the disk; false when it is in memory only.
    pub async fn pause(&self, pause: Option<StoredPause>) -> bool {
        // Nothing of it depends on the time.
        self.commit(Entry::Paused(pause), 0).await
    }

    /// The operator's pause.
    pub fn paused(&self) -> Option<StoredPause> {
        self.shared.lock().journal.paused().cloned()
    }

    /// The attempts of a host that are over, oldest first.
    pub fn history(&self, host: &Identity) -> Vec<AttemptRecord> {
        self.shared.lock().journal.history().of(host)
    }

    async fn commit(&self, entry: Entry, now_ms: i64) -> bool {
        let mut room = self.shared.room();
        // The sender lives in what this handle shares, so this ends by room alone.
        drop(room.wait_for(|room| *room).await);
        let mut waiting = self.shared.enter(entry, now_ms);
        loop {
            let Some(answer) = waiting else { return false };
            match answer.await {
                Ok(durable) => return durable,
                // The keeper ended with it in its hands; its next life writes everything.
                Err(_) => waiting = self.shared.wait(),
            }
        }
    }
}

fn read(folder: &Folder, journal: &mut Journal) -> Result<Store, StoreError> {
    let store = folder.open()?;
    store.read(journal)?;
    Ok(store)
}

/// Keeps the file aside and begins a new one; none when that fails too, and then it is tried again later.
fn start_over(folder: &Folder, error: &StoreError, now_ms: i64) -> Option<Store> {
    let kept = match folder.set_aside(now_ms) {
        Ok(Some(aside)) => format!("it is kept as {}", aside.display()),
        Ok(None) => "there was none".to_owned(),
        Err(refused) => format!("it could not be renamed: {refused}"),
    };
    tracing::error!(
        "the journal in {} cannot be used: {}; {kept}; provisioning goes on from discovery, and a pause that was in force is \
         lost",
        folder.path().display(),
        chain(error)
    );
    match folder.open() {
        Ok(store) => Some(store),
        Err(error) => {
            tracing::error!(
                "a new journal cannot be begun: {}; what must survive is in memory",
                chain(&error)
            );
            None
        }
    }
}

fn found(journal: &Journal, mut cut: BTreeMap<Identity, CutOff>, folder: &Folder) -> Found {
    let mut ledgers: BTreeMap<Identity, Ledger> = journal
        .provided_hosts()
        .map(|host| {
            let records =
                journal.provided(host).filter_map(|text| provided::open(text, host.as_str(), folder.seal()));
            (host.clone(), Ledger::of(&records.collect::<Vec<_>>()))
        })
        .collect();
    let hosts = journal.standings().map(|(host, standing)| {
        let wanted = standing.unfinished == Some(Unfinished::Configure);
        let sealed = journal.material(host).filter(|_| wanted);
        let material = sealed.zip(folder.seal()).and_then(|(sealed, seal)| seal.open(host.as_str(), sealed));
        let steps = ledgers.remove(host);
        Restored {
            host: host.clone(),
            standing: standing.clone(),
            cut_off: cut.remove(host),
            material,
            steps,
        }
    });
    let hosts = hosts.collect();
    let only_provided = ledgers.into_iter().collect();
    Found { hosts, paused: journal.paused().cloned(), only_provided, next_cycle: journal.next_cycle() }
}
