//! The vault on a real broker with the accounts of the table.

#![cfg(test)]

use std::{fs, time::Duration};

use quartermaster_node::vault::service::{AdminReply, AdminRequest};
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::vault::{GetReply, GetRequest};
use support::vault_site::{CANARY, NAME, Site, client_account};

mod support;

/// T20, T23 (vault): absent, then sealed to the asker's key, then rotated; only boxes cross the bus.
#[actix::test]
async fn t20_t23_a_secret_is_sealed_to_whom_the_plan_names_and_its_changes_are_said() {
    let Some(site) = Site::start().await else { return };
    site.make_stream().await;
    let vault = site.vault().await;
    // A plan that the vault has not seen yet when it is asked: it waits instead of refusing.
    let revision = site.assign("pw").await;
    assert!(matches!(site.answer(revision).await, GetReply::Absent { .. }));
    let version = site.set(CANARY).await;
    assert_eq!(site.open(&site.answer(revision).await), (CANARY.to_owned(), version));
    let rotated = site.admin(AdminRequest::Rotate { name: NAME.to_owned(), random: 32 }).await;
    let AdminReply::Version(rotated) = rotated else { panic!("{rotated:?}") };
    assert!(rotated > version);
    while site.said().await.is_none_or(|said| said.version < rotated) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (value, second) = site.open(&site.answer(revision).await);
    assert_eq!((value.len(), second), (43, rotated));
    let listed = site.admin(AdminRequest::List).await;
    assert_eq!(listed, AdminReply::Values(vec![(NAME.to_owned(), rotated)]));

    let revision = site.assign("other").await;
    assert!(matches!(site.answer(revision).await, GetReply::Refused { .. }));
    vault.stop().await;
    let audit = fs::read_to_string(site.at("audit")).unwrap();
    assert!(!audit.contains(CANARY) && audit.contains("\"outcome\":\"refused\""));
    assert!(!fs::read(site.at("store")).unwrap().windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
}

/// T53 (vault): what changed while nobody kept it is said after a restart.
#[actix::test]
async fn t53_a_change_that_could_not_be_said_is_said_after_a_restart() {
    let Some(site) = Site::start().await else { return };
    let vault = site.vault().await;
    let revision = site.assign("pw").await;
    site.answer(revision).await;
    let version = site.set(CANARY).await;
    vault.stop().await;
    site.make_stream().await;
    let vault = site.vault().await;
    while site.said().await.is_none_or(|said| said.version != version) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(site.open(&site.answer(revision).await), (CANARY.to_owned(), version));
    vault.stop().await;
}

/// D21: an answer goes into an inbox or nowhere, and the audit says so.
#[actix::test]
async fn t58_an_answer_goes_into_an_inbox_or_nowhere() {
    let Some(site) = Site::start().await else { return };
    let vault = site.vault().await;
    let revision = site.assign("pw").await;
    site.answer(revision).await;
    let request = GetRequest { name: NAME.parse().unwrap(), key: site.key.public(), revision };
    let subject = format!("{}.{}", key::VAULT_GET, client_account().name());
    let elsewhere = key::kv_subject(key::ASSIGNMENTS, "web1.forge");
    site.client.client().publish_with_reply(subject, elsewhere, request.encode().into()).await.unwrap();
    while !fs::read_to_string(site.at("audit")).unwrap().contains("\"outcome\":\"dropped\"") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    vault.stop().await;
}
