//! What providers did for hosts: the records of each, in their order, until all of it is over.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use quartermaster_proto::choria::identity::Identity;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::journal::Write;
use super::seal::Seal;
use crate::steps::Record;

/// One record, as it is written: what is secret in it is sealed, or left out when it cannot be.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    record: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
}

/// The text of a record. Without a seal nothing secret is in it.
pub(super) fn seal(record: &Record, host: &str, seal: Option<&Seal>) -> String {
    let (open, secret) = record.split();
    let sealed = secret.zip(seal).and_then(|(secret, seal)| seal.close(host, &secret));
    let stored = Stored { record: open, sealed: sealed.map(|sealed| STANDARD_NO_PAD.encode(sealed)) };
    // Two strings, so this cannot fail.
    serde_json::to_string(&stored).unwrap_or_default()
}

/// The record of a text; none when it is none.
pub(super) fn open(text: &str, host: &str, seal: Option<&Seal>) -> Option<Record> {
    let stored: Stored = serde_json::from_str(text).ok()?;
    let secret: Option<Zeroizing<String>> = stored
        .sealed
        .and_then(|sealed| STANDARD_NO_PAD.decode(sealed).ok())
        .zip(seal)
        .and_then(|(sealed, seal)| seal.open(host, &sealed));
    Record::join(&stored.record, secret.as_ref().map(|secret| secret.as_str()))
}

/// The records by host.
#[derive(Debug, Default)]
pub(super) struct Provided {
    records: BTreeMap<Identity, BTreeMap<u32, String>>,
}

impl Provided {
    /// Adds a record; answers what has to be written.
    pub(super) fn add(&mut self, host: Identity, text: String, writes: &mut Vec<Write>) {
        let records = self.records.entry(host.clone()).or_default();
        let number = records.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        records.insert(number, text.clone());
        writes.push(Write::Step { host, number, text });
    }

    /// All of it is over for this host.
    pub(super) fn clear(&mut self, host: &Identity, writes: &mut Vec<Write>) {
        if let Some(records) = self.records.remove(host) {
            let entries = records.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
            writes.push(Write::DropSteps { host: host.clone(), entries });
        }
    }

    /// Puts back a record.
    pub(super) fn put(&mut self, host: Identity, number: u32, text: String) {
        self.records.entry(host).or_default().insert(number, text);
    }

    /// The hosts of which there are records.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &Identity> {
        self.records.keys()
    }

    /// The records of a host, in their order.
    pub(super) fn of(&self, host: &Identity) -> impl Iterator<Item = &str> {
        self.records.get(host).into_iter().flat_map(|records| records.values().map(String::as_str))
    }

    /// Everything, for a file that holds nothing yet.
    pub(super) fn all(&self) -> impl Iterator<Item = Write> + '_ {
        self.records.iter().flat_map(|(host, records)| {
            records.iter().map(|(number, text)| Write::Step {
                host: host.clone(),
                number: *number,
                text: text.clone(),
            })
        })
    }
}
