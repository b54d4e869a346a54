use std::fs;
use std::path::PathBuf;

use zeroize::Zeroizing;

use super::file::VALUES_FOR_TESTS;
use super::*;
use crate::vault::key::StoreKey;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    fn open(&self) -> Store {
        self.open_with(1).unwrap()
    }

    fn open_with(&self, key: u8) -> Result<Store, StoreError> {
        Store::open(&self.file(), StoreKey::new([key; 32]))
    }
}

fn value(text: &str) -> Value {
    Value::new(Zeroizing::new(text.as_bytes().to_vec()))
}

fn text(store: &Store, name: &str) -> Option<(String, u64)> {
    let held = store.get(name).unwrap()?;
    Some((String::from_utf8(held.value.expose().to_vec()).unwrap(), held.version))
}

fn notice(subject: &str, payload: &str) -> Notice {
    Notice { subject: subject.to_owned(), payload: payload.as_bytes().to_vec() }
}

#[test]
fn values_outlive_a_restart_and_are_nowhere_in_the_file() {
    let place = Place::new();
    let mut store = place.open();
    assert_eq!(store.put("own/a/x", &value("canary-one"), &[]).unwrap(), 1);
    assert_eq!(store.put("own/a/y", &value("canary-two"), &[]).unwrap(), 2);
    assert_eq!(store.put("own/a/x", &value("canary-three"), &[]).unwrap(), 3);
    drop(store);
    let bytes = fs::read(place.file()).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"canary"));
    let store = place.open();
    assert_eq!(text(&store, "own/a/x"), Some(("canary-three".to_owned(), 3)));
    assert_eq!(text(&store, "own/a/z"), None);
    let listed: Vec<_> = store.list().into_iter().map(|listed| (listed.name, listed.version)).collect();
    assert_eq!(listed, [("own/a/x".to_owned(), 3), ("own/a/y".to_owned(), 2)]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(place.file()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(format!("{:?}", store.get("own/a/x").unwrap().unwrap().value), "Value([redacted])");
}

#[test]
fn versions_never_fall_also_over_a_deletion() {
    let place = Place::new();
    let mut store = place.open();
    store.put("a", &value("1"), &[]).unwrap();
    store.put("b", &value("2"), &[]).unwrap();
    assert!(store.delete("b", &[]).unwrap());
    assert!(!store.delete("b", &[]).unwrap());
    assert_eq!((store.version_among(&["a", "b"]), store.version_among(&["c"])), (3, 0));
    let mut store = {
        drop(store);
        place.open()
    };
    assert_eq!(text(&store, "b"), None);
    assert_eq!(store.put("b", &value("4"), &[]).unwrap(), 4);
}

#[test]
fn another_key_opens_nothing() {
    let place = Place::new();
    place.open().put("a", &value("1"), &[]).unwrap();
    assert!(matches!(place.open_with(2), Err(StoreError::OtherKey)));
    assert_eq!(text(&place.open(), "a").unwrap().0, "1");
}

#[test]
fn a_new_key_seals_everything_anew() {
    let place = Place::new();
    let mut store = place.open();
    store.put("a", &value("1"), &[]).unwrap();
    store.put("b", &value("2"), &[]).unwrap();
    store.delete("b", &[]).unwrap();
    store.rekey(StoreKey::new([2; 32])).unwrap();
    assert_eq!(text(&store, "a"), Some(("1".to_owned(), 1)));
    drop(store);
    assert!(matches!(place.open_with(1), Err(StoreError::OtherKey)));
    let store = place.open_with(2).unwrap();
    assert_eq!((text(&store, "a"), store.next_change()), (Some(("1".to_owned(), 1)), 4));
}

/// Writes rows behind the store's back.
fn meddle(store: &Store, act: impl Fn(&mut redb::Table<'_, &'static str, (u64, Option<&'static [u8]>)>)) {
    let transaction = store.database().begin_write().unwrap();
    act(&mut transaction.open_table(VALUES_FOR_TESTS).unwrap());
    transaction.commit().unwrap();
}

fn row(store: &Store, name: &str) -> (u64, Vec<u8>) {
    use redb::ReadableDatabase as _;
    let transaction = store.database().begin_read().unwrap();
    let table = transaction.open_table(VALUES_FOR_TESTS).unwrap();
    let row = table.get(name).unwrap().unwrap();
    (row.value().0, row.value().1.unwrap().to_vec())
}

#[track_caller]
fn check_tampered(act: impl Fn(&Store, (u64, Vec<u8>))) {
    let place = Place::new();
    let mut store = place.open();
    store.put("a", &value("old"), &[]).unwrap();
    store.put("b", &value("b"), &[]).unwrap();
    let old = row(&store, "a");
    store.put("a", &value("new"), &[]).unwrap();
    act(&store, old);
    drop(store);
    assert!(matches!(place.open_with(1), Err(StoreError::Tampered { .. })));
}

#[test]
fn a_row_that_was_set_back_is_found() {
    check_tampered(|store, (version, old)| {
        meddle(store, |table| {
            table.insert("a", (version, Some(old.as_slice()))).unwrap();
        });
    });
}

#[test]
fn a_row_that_was_moved_is_found() {
    check_tampered(|store, _| {
        let (version, moved) = row(store, "b");
        meddle(store, |table| {
            table.insert("a", (version, Some(moved.as_slice()))).unwrap();
        });
        assert!(matches!(store.get("a"), Err(StoreError::Tampered { .. })), "also while the store is open");
    });
}

#[test]
fn a_row_that_was_taken_out_is_found() {
    check_tampered(|store, _| {
        meddle(store, |table| {
            table.remove("b").unwrap();
        });
    });
}

#[test]
fn what_is_to_be_said_goes_with_its_change_and_leaves_when_it_was_said() {
    let place = Place::new();
    let mut store = place.open();
    store.put("a", &value("1"), &[notice("s.one", "1"), notice("s.two", "1")]).unwrap();
    store.put("a", &value("2"), &[notice("s.one", "2")]).unwrap();
    drop(store);
    let mut store = place.open();
    let unsent = store.unsent(10).unwrap();
    assert_eq!(unsent, [(2, notice("s.one", "2")), (1, notice("s.two", "1"))]);
    assert_eq!(store.unsent(1).unwrap().len(), 1);
    store.sent("s.one", 1).unwrap();
    assert_eq!(store.unsent(10).unwrap().len(), 2, "an older one was said, the newer one was not");
    store.sent("s.one", 2).unwrap();
    store.sent("s.two", 1).unwrap();
    assert!(store.unsent(10).unwrap().is_empty());
}

#[test]
fn a_file_that_is_no_store_is_refused() {
    let place = Place::new();
    fs::write(place.file(), b"something else").unwrap();
    assert!(place.open_with(1).is_err());
}
