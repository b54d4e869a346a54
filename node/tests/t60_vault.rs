//! T60: a store, a key, an audit or a key-value store that is not as it was; and values that are kept in a key-value store.

#![cfg(test)]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use quartermaster_node::vault::{
    Store, StoreError, StoreKey, Value,
    kv::KvSettings,
    service::{AdminReply, AdminRequest, ServiceError, open_store, run},
};
use quartermaster_proto::{mesh::vault::GetReply, time::WallClock};
use redb::{Database, ReadableDatabase as _, TableDefinition};
use serde_json::json;
use support::{
    kv::FakeKv,
    vault_site::{CANARY, NAME, Site},
};
use zeroize::Zeroizing;

mod support;

const VALUES: TableDefinition<'_, &str, (u64, Option<&[u8]>)> = TableDefinition::new("values");

fn value(text: &str) -> Value {
    Value::new(Zeroizing::new(text.as_bytes().to_vec()))
}

fn key_file(folder: &Path, name: &str, byte: u8) -> std::path::PathBuf {
    let path = folder.join(name);
    fs::write(&path, [byte; 32]).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// A closed store of two values, the first of them written twice.
fn stored(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("store");
    let mut store = open_store(&path, &key_file(folder, "key", 1)).unwrap();
    store.put("own/a/x", &value("old"), &[]).unwrap();
    store.put("own/a/y", &value("other"), &[]).unwrap();
    path
}

fn reopened(folder: &Path) -> Result<Store, ServiceError> {
    open_store(&folder.join("store"), &folder.join("key"))
}

fn row(database: &Database, name: &str) -> (u64, Vec<u8>) {
    let transaction = database.begin_read().unwrap();
    let table = transaction.open_table(VALUES).unwrap();
    let row = table.get(name).unwrap().unwrap();
    (row.value().0, row.value().1.unwrap().to_vec())
}

fn put(database: &Database, name: &str, row: &(u64, Vec<u8>)) {
    let transaction = database.begin_write().unwrap();
    transaction.open_table(VALUES).unwrap().insert(name, (row.0, Some(row.1.as_slice()))).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn t60_a_wrong_key_opens_nothing_and_is_a_matter_of_configuration() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path());
    key_file(folder.path(), "key", 2);
    let error = reopened(folder.path()).unwrap_err();
    assert!(matches!(error, ServiceError::Store(StoreError::OtherKey)) && error.is_configuration());
    fs::write(folder.path().join("key"), "short").unwrap();
    assert!(reopened(folder.path()).unwrap_err().is_configuration());
}

#[test]
fn t60_a_row_that_was_moved_or_set_back_is_not_served() {
    for what in ["moved", "set back", "taken out"] {
        let folder = tempfile::tempdir().unwrap();
        let path = stored(folder.path());
        let old = row(&Database::open(&path).unwrap(), "own/a/x");
        reopened(folder.path()).unwrap().put("own/a/x", &value("new"), &[]).unwrap();
        let database = Database::open(&path).unwrap();
        match what {
            "moved" => {
                let other = row(&database, "own/a/y");
                put(&database, "own/a/x", &other);
            }
            "set back" => put(&database, "own/a/x", &old),
            _ => {
                let transaction = database.begin_write().unwrap();
                transaction.open_table(VALUES).unwrap().remove("own/a/x").unwrap();
                transaction.commit().unwrap();
            }
        }
        drop(database);
        let error = reopened(folder.path()).unwrap_err();
        assert!(matches!(error, ServiceError::Store(StoreError::Tampered { .. })), "{what}: {error:?}");
        assert!(error.is_configuration());
    }
}

#[test]
fn t60_after_a_rekey_all_values_are_readable_with_the_new_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = stored(folder.path());
    let before = reopened(folder.path()).unwrap().list();
    let new = key_file(folder.path(), "new", 9);
    reopened(folder.path()).unwrap().rekey(StoreKey::from_file(&new).unwrap()).unwrap();
    assert!(matches!(reopened(folder.path()), Err(ServiceError::Store(StoreError::OtherKey))));
    let store = open_store(&path, &new).unwrap();
    assert_eq!(store.list(), before);
    assert_eq!(store.get("own/a/x").unwrap().unwrap().value, value("old"));
    assert_eq!(store.get("own/a/y").unwrap().unwrap().value, value("other"));
}

#[actix::test]
async fn t60_while_the_audit_cannot_be_written_there_are_no_answers() {
    let Some(mut site) = Site::start().await else { return };
    let vault = site.vault().await;
    let revision = site.assign("pw").await;
    let version = site.set(CANARY).await;
    site.answer(revision).await;
    vault.stop().await;
    site.audit = Some("/dev/full".into());
    let vault = site.vault().await;
    for _ in 0..3 {
        assert!(site.is_silent(revision).await);
    }
    let set = AdminRequest::Rotate { name: NAME.to_owned(), random: 8 };
    let AdminReply::Error(why) = site.admin(set).await else { panic!() };
    assert!(why.contains("the audit cannot be written"), "{why}");
    vault.stop().await;
    site.audit = None;
    let vault = site.vault().await;
    let (_, now) = site.open(&site.answer(revision).await);
    assert!(now > version, "what was stored before its line could not be written is there");
    vault.stop().await;
}

/// A site whose values are kept in a small store that answers as recorded.
async fn kept() -> Option<(Site, FakeKv)> {
    let mut site = Site::start().await?;
    site.make_stream().await;
    let fake = FakeKv::start(true);
    let poll = Duration::from_millis(50);
    site.kv = Some(KvSettings { poll, ..fake.tls_settings(site.folder.path()) });
    Some((site, fake))
}

#[actix::test]
async fn t60_a_sealed_key_value_store_is_no_answer_and_never_absent() {
    let Some((site, fake)) = kept().await else { return };
    let vault = site.vault().await;
    let revision = site.assign("pw").await;
    assert!(matches!(site.answer(revision).await, GetReply::Absent { .. }));
    site.set(CANARY).await;
    assert_eq!(fake.with(|state| state.text(NAME)).as_deref(), Some(CANARY));
    let (text, version) = site.open(&site.answer(revision).await);
    assert_eq!(text, CANARY);
    fake.with(|state| state.is_sealed = true);
    assert!(site.is_silent(revision).await);
    for status in [500, 502, 503, 429, 473, 400] {
        fake.with(|state| state.status = Some(status));
        assert!(site.is_silent(revision).await, "{status}");
    }
    assert!(matches!(site.admin(AdminRequest::List).await, AdminReply::Error(_)));
    fake.with(|state| (state.status, state.is_sealed) = (None, false));
    assert_eq!(site.open(&site.answer(revision).await), (CANARY.to_owned(), version));
    fake.with(|state| state.is_forbidden.push(NAME.to_owned()));
    assert!(matches!(site.get(revision).await, Some(GetReply::Refused { .. })));
    vault.stop().await;
    for file in ["audit", "store"] {
        let held = fs::read(site.at(file)).unwrap();
        assert!(!held.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()), "{file}");
    }
}

#[actix::test]
async fn a_change_that_somebody_else_makes_in_the_key_value_store_is_numbered_and_said() {
    let Some((site, fake)) = kept().await else { return };
    let vault = site.vault().await;
    let revision = site.assign("pw").await;
    site.answer(revision).await;
    let said = async |above: u64| loop {
        match site.said().await {
            Some(said) if said.version > above => break said.version,
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    fake.with(|state| state.write(NAME, json!({ "value": "one" })));
    let first = said(0).await;
    assert_eq!(site.open(&site.answer(revision).await), ("one".to_owned(), first));
    // A row of the machine's own goes before, and its going is a change as well.
    let own = format!("{NAME}/web1");
    fake.with(|state| state.write(&own, json!({ "value": "b3du", "encoding": "base64" })));
    let second = said(first).await;
    assert_eq!(site.open(&site.answer(revision).await), ("own".to_owned(), second));
    fake.with(|state| state.delete(&own));
    let third = said(second).await;
    assert_eq!(site.open(&site.answer(revision).await), ("one".to_owned(), third));
    // What is read too late is not taken for a change.
    fake.with(|state| {
        state.write(NAME, json!({ "value": "two" }));
    });
    let fourth = said(third).await;
    fake.with(|state| state.is_late = true);
    assert_eq!(site.open(&site.answer(revision).await), ("two".to_owned(), fourth));
    vault.stop().await;
    fake.with(|state| state.write(NAME, json!({ "value": "three" })));
    let vault = site.vault().await;
    let fifth = said(fourth).await;
    assert_eq!(site.open(&site.answer(revision).await), ("three".to_owned(), fifth));
    let listed = site.admin(AdminRequest::List).await;
    assert_eq!(listed, AdminReply::Values(vec![(NAME.to_owned(), fifth)]));
    let rotated = site.admin(AdminRequest::Rotate { name: NAME.to_owned(), random: 9 }).await;
    assert!(matches!(rotated, AdminReply::Version(version) if version > fifth));
    let deleted = site.admin(AdminRequest::Delete { name: NAME.to_owned() }).await;
    assert_eq!(deleted, AdminReply::Deleted(NAME.to_owned()));
    assert!(matches!(site.answer(revision).await, GetReply::Absent { .. }));
    assert!(matches!(site.admin(AdminRequest::Delete { name: NAME.to_owned() }).await, AdminReply::Error(_)));
    vault.stop().await;
}

#[actix::test]
async fn a_pair_is_made_once_in_the_key_value_store() {
    let Some((site, fake)) = kept().await else { return };
    let vault = site.vault().await;
    let entry = r#""provisions":[{"provision":"db","provider":"postgres","credential":"pair","name":"pw"}]"#;
    let revision = site.assign_plan(entry).await;
    let name = "provision/postgres/db/web1/forge";
    let ask = || async {
        loop {
            if let Some(reply) = site.get_name(name, revision).await {
                break site.open(&reply);
            }
        }
    };
    let ((first, _), (second, _), (third, _)) = futures::join!(ask(), ask(), ask());
    assert!(first.len() == 43 && first == second && second == third);
    assert_eq!(fake.with(|state| state.text("pair/postgres/db/web1/forge")), Some(first));
    vault.stop().await;
}

#[actix::test]
async fn a_store_keeps_its_values_in_one_place_for_good() {
    let Some((mut site, _fake)) = kept().await else { return };
    let kv = site.kv.take();
    let vault = site.vault().await;
    site.set("x").await;
    vault.stop().await;
    let tried = async |site: &Site| {
        let clock = Arc::new(|| WallClock::from_seconds(1));
        run(site.settings(), clock, |_| (), std::future::pending()).await.unwrap_err()
    };
    site.kv = kv;
    let error = tried(&site).await;
    assert!(error.is_configuration() && error.to_string().contains("holds values of its own"), "{error}");
    fs::remove_file(site.at("store")).unwrap();
    site.vault().await.stop().await;
    site.kv = None;
    let error = tried(&site).await;
    assert!(error.is_configuration() && error.to_string().contains("--kv"), "{error}");
}
