//! The state folder and the file in it, good and bad.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quartermaster_proto::choria::identity::Identity;
use redb::{Database, StorageBackend, TableDefinition};

use crate::journal::entry::{Began, Entry, Stand, Standing, StoredPause};
use crate::journal::error::{StateDirError, StoreError};
use crate::journal::folder::{FILE, Folder};
use crate::journal::handle::JournalHandle;
use crate::journal::history::HistoryLimits;
use crate::journal::journal::{Journal, Write};
use crate::journal::record::AttemptRecord;
use crate::journal::seal::Seal;
use crate::journal::store::{FORMAT, Store};

const NOW: i64 = 1_700_000_000_000;

fn id(name: &str) -> Identity {
    Identity::parse(name).unwrap()
}

fn standing() -> Standing {
    Standing {
        stand: Stand::GaveUp { since_ms: 5 },
        failures: 3,
        lost: 0,
        failing_since_ms: Some(1),
        failure: None,
        first_seen_ms: 1,
        last_seen_ms: 2,
        newest_event: None,
        unfinished: None,
    }
}

fn some_writes() -> Vec<Write> {
    let mut journal = Journal::new(HistoryLimits::STANDARD);
    let began = Began { cycle: 4, attempt: 2, at_ms: 3, standing: standing() };
    let attempt = AttemptRecord {
        attempt: 1,
        cycle: 3,
        began_ms: NOW,
        took_ms: 2,
        ending: "failed".into(),
        cause: Some("helper".into()),
        error: None,
        steps: vec![],
        helper: None,
    };
    let pause = StoredPause { who: "ann".into(), why: String::new(), since: 9 };
    let entries = [
        Entry::Ended { host: id("web1"), attempt, standing: Some(standing()) },
        Entry::Began { host: id("web2"), began },
        Entry::Paused(Some(pause)),
    ];
    entries.into_iter().flat_map(|entry| journal.apply(entry, NOW)).collect()
}

fn read(store: &Store) -> Vec<Write> {
    let mut journal = Journal::new(HistoryLimits::STANDARD);
    store.read(&mut journal).unwrap();
    journal.all()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn aside(folder: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("aside")).collect()
}

#[test]
fn what_was_written_is_read() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state");
    let folder = Folder::take(&path).unwrap();
    let writes = some_writes();
    folder.open().unwrap().write(&writes).unwrap();
    let mut found = read(&folder.open().unwrap());
    found.sort_by_key(|write| format!("{write:?}"));
    let mut expected = writes;
    expected.sort_by_key(|write| format!("{write:?}"));
    assert_eq!(found, expected);
    assert_eq!(mode(&path), 0o700);
    for file in ["journal.redb", "journal.key", "lock"] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_second_instance_on_one_folder_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let first = Folder::take(home.path()).unwrap();
    let refused = Folder::take(home.path()).unwrap_err();
    assert!(matches!(refused, StateDirError::Taken { .. }), "{refused}");
    assert!(refused.to_string().contains("another instance"), "{refused}");
    drop(first);
    Folder::take(home.path()).unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = Folder::take(&file.join("state")).unwrap_err();
    assert!(matches!(refused, StateDirError::Unusable { .. }), "{refused}");
}

/// Opens a folder whose journal is `spoilt`: the work begins anew, the old file is there under another name.
#[track_caller]
fn check_spoilt(spoil: impl FnOnce(&Path)) {
    let home = tempfile::tempdir().unwrap();
    {
        let folder = Folder::take(home.path()).unwrap();
        folder.open().unwrap().write(&some_writes()).unwrap();
    }
    let file = home.path().join(FILE);
    spoil(&file);
    let old = std::fs::metadata(&file).unwrap().len();
    let (journal, found) = JournalHandle::open(home.path(), HistoryLimits::STANDARD, NOW).unwrap();
    assert!(journal.is_durable());
    assert_eq!((found.hosts.len(), found.paused), (0, None));
    let aside = aside(home.path());
    assert_eq!(aside, ["journal.redb.aside-20231114T221320.000Z"]);
    assert_eq!(std::fs::metadata(home.path().join(&aside[0])).unwrap().len(), old);
}

#[test]
fn a_file_of_something_else_is_kept_aside() {
    check_spoilt(|file| std::fs::write(file, "this is no database").unwrap());
}

#[test]
fn a_file_cut_short_is_kept_aside() {
    check_spoilt(|file| {
        let bytes = std::fs::read(file).unwrap();
        std::fs::write(file, &bytes[..bytes.len() / 3]).unwrap();
    });
}

#[test]
fn a_file_with_bytes_overwritten_is_kept_aside() {
    check_spoilt(|file| {
        let mut bytes = std::fs::read(file).unwrap();
        for byte in bytes.iter_mut().skip(4096) {
            *byte ^= 0x55;
        }
        std::fs::write(file, bytes).unwrap();
    });
}

#[test]
fn a_file_of_another_format_is_kept_aside() {
    check_spoilt(|file| {
        let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
        let database = Database::open(file).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(meta).unwrap().insert("format", FORMAT + 1).unwrap();
        transaction.commit().unwrap();
    });
}

#[test]
fn a_database_of_something_else_is_kept_aside() {
    check_spoilt(|file| {
        std::fs::remove_file(file).unwrap();
        let other: TableDefinition<'_, &str, u64> = TableDefinition::new("other");
        let database = Database::create(file).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(other).unwrap().insert("x", 1).unwrap();
        transaction.commit().unwrap();
    });
}

#[test]
fn an_entry_that_cannot_be_read_keeps_the_file_aside() {
    check_spoilt(|file| {
        let roster: TableDefinition<'_, &str, &str> = TableDefinition::new("roster");
        let database = Database::open(file).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(roster).unwrap().insert("web9", "{}").unwrap();
        transaction.commit().unwrap();
    });
}

#[test]
fn only_the_newest_few_are_kept_aside() {
    let home = tempfile::tempdir().unwrap();
    let folder = Folder::take(home.path()).unwrap();
    for second in 0..8 {
        drop(folder.open().unwrap());
        folder.set_aside(NOW + second * 1000).unwrap().unwrap();
    }
    let mut aside = aside(home.path());
    aside.sort();
    assert_eq!(aside.len(), 5);
    assert_eq!(aside[0], "journal.redb.aside-20231114T221323.000Z");
}

#[test]
fn a_new_file_takes_the_place_of_whatever_is_there() {
    let home = tempfile::tempdir().unwrap();
    let folder = Folder::take(home.path()).unwrap();
    std::fs::write(home.path().join(FILE), "no database").unwrap();
    drop(folder.renew(&some_writes()).unwrap());
    assert_eq!(read(&folder.open().unwrap()).len(), some_writes().len());
    assert!(!home.path().join("journal.redb.new").exists());
}

#[test]
fn what_was_sealed_opens_with_its_key_and_for_its_host_only() {
    let seal = Seal::new(&Seal::make_key().unwrap()).unwrap();
    let sealed = seal.close("web1", "secret").unwrap();
    assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));
    assert_eq!(seal.open("web1", &sealed).unwrap().as_str(), "secret");
    assert!(seal.open("web2", &sealed).is_none());
    let other = Seal::new(&Seal::make_key().unwrap()).unwrap();
    assert!(other.open("web1", &sealed).is_none());
    assert!(seal.open("web1", &sealed[..5]).is_none());
    assert_ne!(seal.close("web1", "secret").unwrap(), sealed);
}

/// A disk that is full from a moment on.
#[derive(Debug)]
struct FullDisk {
    under: redb::backends::InMemoryBackend,
    is_full: Arc<AtomicBool>,
}

impl FullDisk {
    fn room(&self) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl StorageBackend for FullDisk {
    fn len(&self) -> io::Result<u64> {
        self.under.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.under.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.room().and_then(|()| self.under.set_len(len))
    }
    fn sync_data(&self) -> io::Result<()> {
        self.room().and_then(|()| self.under.sync_data())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.room().and_then(|()| self.under.write(offset, data))
    }
}

#[test]
fn a_full_disk_is_an_error_that_says_so() {
    let is_full = Arc::new(AtomicBool::new(false));
    let disk = FullDisk { under: redb::backends::InMemoryBackend::new(), is_full: Arc::clone(&is_full) };
    let store = Store::with(Database::builder().create_with_backend(disk).unwrap()).unwrap();
    store.write(&some_writes()).unwrap();
    is_full.store(true, Ordering::SeqCst);
    let error = store.write(&some_writes()).unwrap_err();
    let StoreError::Io(source) = &error else { panic!("{error}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_file_that_sees_twenty_thousand_cycles_does_not_grow_for_ever() {
    let home = tempfile::tempdir().unwrap();
    let folder = Folder::take(home.path()).unwrap();
    let store = folder.open().unwrap();
    let mut journal =
        Journal::new(HistoryLimits { of_one: 3, of_all: 500, bytes: usize::MAX, age_ms: i64::MAX });
    let size = |folder: &Path| std::fs::metadata(folder.join(FILE)).unwrap().len();
    let mut round = |rounds: std::ops::Range<u64>| {
        for batch in rounds {
            let mut writes = Vec::new();
            for cycle in batch * 100..(batch + 1) * 100 {
                let host = id(&format!("web{}", cycle % 400));
                let began = Began { cycle, attempt: 2, at_ms: 3, standing: standing() };
                writes.extend(journal.apply(Entry::Began { host: host.clone(), began }, NOW));
                let attempt = AttemptRecord {
                    attempt: 1,
                    cycle,
                    began_ms: NOW,
                    took_ms: 2,
                    ending: "failed".into(),
                    cause: None,
                    error: Some("x".repeat(200)),
                    steps: vec![],
                    helper: None,
                };
                writes.extend(journal.apply(Entry::Ended { host, attempt, standing: Some(standing()) }, NOW));
            }
            store.write(&writes).unwrap();
        }
    };
    round(0..50);
    let early = size(home.path());
    round(50..200);
    assert!(size(home.path()) <= 2 * early, "from {early} to {}", size(home.path()));
}
