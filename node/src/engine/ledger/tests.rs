use super::*;
use crate::engine::disk::{Attributes, FilePath};
use crate::engine::managed::{Format, Keys};
use crate::engine::program::Program;

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

fn row(sha256: &str) -> Row {
    let ours = Keys::from([vec!["a".to_owned(), "b".to_owned()]]);
    Row {
        module: "forge".to_owned(),
        kept: Kept::Managed { format: Format::Toml, ours },
        sha256: sha256.to_owned(),
        attributes: Attributes { user: 0, group: 0, mode: 0o640 },
        created: true,
    }
}

fn owed(number: u64) -> Owed {
    let program = Program::Restart { unit: "forge.service".to_owned(), start: false };
    Owed { module: "forge".to_owned(), program, number }
}

fn file(text: &str, row: Option<Row>) -> Entry {
    Entry::File { path: path(text), row: row.map(Box::new) }
}

#[test]
fn what_was_written_down_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file_name = folder.path().join("ledger");
    let mut store = Store::open(&file_name).unwrap();
    store
        .write(&[
            file("/etc/a", Some(row("1"))),
            file("/etc/b", Some(row("2"))),
            Entry::Folder { path: path("/etc/x"), is_ours: true },
            Entry::Owe(owed(1)),
        ])
        .unwrap();
    store.write(&[file("/etc/b", None)]).unwrap();
    let held = store.ledger().clone();
    drop(store);
    let store = Store::open(&file_name).unwrap();
    assert_eq!(store.ledger(), &held);
    assert_eq!(held.file(&path("/etc/a")), Some(&row("1")));
    assert_eq!(held.file(&path("/etc/b")), None);
    assert_eq!(held.owed_by("forge"), [owed(1)]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file_name).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn telling_of_an_older_change_does_not_clear_a_newer_one() {
    let mut ledger = Ledger::default();
    ledger.enter(&Entry::Owe(owed(1)));
    ledger.enter(&Entry::Owe(owed(2)));
    ledger.enter(&Entry::Told(owed(1)));
    assert_eq!(ledger.owed_by("forge"), [owed(2)]);
    assert_eq!(ledger.next_number(), 3);
    ledger.enter(&Entry::Told(owed(2)));
    assert!(ledger.debtors().is_empty());
}

#[test]
fn a_folder_is_used_by_what_lies_in_it_and_not_by_a_neighbour() {
    let mut ledger = Ledger::default();
    ledger.enter(&file("/etc/x/y/z", Some(row("1"))));
    ledger.enter(&file("/etc/xx/z", Some(row("1"))));
    assert!(ledger.is_used(&path("/etc/x")) && ledger.is_used(&path("/etc/x/y")));
    assert!(!ledger.is_used(&path("/etc/x/y/z")) && !ledger.is_used(&path("/et")));
}

#[test]
fn a_file_that_is_no_ledger_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file_name = folder.path().join("ledger");
    std::fs::write(&file_name, b"something else").unwrap();
    assert!(Store::open(&file_name).is_err());
}
