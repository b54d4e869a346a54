//! The registry written: who owns the values of each kind.

use std::collections::BTreeMap;

use quartermaster_proto::mesh::registry::{Entry, Source};
use quartermaster_proto::mesh::{Kind, key};

use super::error::MeshError;
use super::rows::{Before, put, rows};
use super::signer::Signer;
use crate::client::bus::Bus;

/// Writes the entries that are missing, unreadable or not signed with this key, and those of the vault when its key is another; `anew`
/// writes all of them as they are first written. Answers the kinds that were written.
///
/// # Errors
/// One is not stored.
pub async fn register(
    bus: &Bus,
    signer: &Signer,
    box_key: Option<&str>,
    anew: bool,
) -> Result<Vec<Kind>, MeshError> {
    let public = signer.public();
    let there = rows(bus, key::REGISTRY, ">").await?;
    let there: BTreeMap<String, Entry> = there
        .into_iter()
        .filter(|row| row.is_signed_by(&public).is_ok())
        .filter_map(|row| Entry::read(&row.key, &row.value?).ok().map(|entry| (row.key, entry)))
        .collect();
    let mut written = Vec::new();
    for first in Entry::defaults(box_key) {
        let kind = first.kind;
        let entry = match there.get(kind.as_str()).filter(|_| !anew) {
            Some(entry) => with_box_key(entry.clone(), box_key),
            None => first,
        };
        if there.get(kind.as_str()) != Some(&entry) {
            put(bus, key::REGISTRY, kind.as_str(), entry.encode(), Some(signer), Before::Any).await?;
            written.push(kind);
        }
    }
    Ok(written)
}

/// Puts one entry, whatever was there.
///
/// # Errors
/// It is not stored.
pub async fn put_entry(bus: &Bus, signer: &Signer, entry: &Entry) -> Result<u64, MeshError> {
    put(bus, key::REGISTRY, entry.kind.as_str(), entry.encode(), Some(signer), Before::Any).await
}

fn with_box_key(mut entry: Entry, key: Option<&str>) -> Entry {
    if let (Source::Vault(vault), Some(key)) = (&mut entry.source, key) {
        vault.box_key = Some(key.to_owned());
    }
    entry
}
