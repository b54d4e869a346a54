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

#[cfg(test)]
mod tests {
    use quartermaster_proto::provider::{Members, Value};

    use super::super::journal::Journal;
    use super::super::{Entry, HistoryLimits};
    use super::*;

    fn host() -> Identity {
        Identity::parse("web1.example.net").unwrap()
    }

    fn record() -> Record {
        let attrs: Members = [("password".to_owned(), Value::from("hunter2"))].into();
        Record::Began { run: "r".to_owned(), scope: Some(attrs) }
    }

    #[test]
    fn what_is_secret_is_sealed_for_its_host_or_left_out() {
        let key = Seal::new(&[7; 32]).unwrap();
        let text = seal(&record(), host().as_str(), Some(&key));
        assert!(!text.contains("hunter2") && !text.contains("password"), "{text}");
        assert_eq!(open(&text, host().as_str(), Some(&key)), Some(record()));
        let lost = Some(Record::Began { run: "r".to_owned(), scope: None });
        assert_eq!(open(&text, "web2.example.net", Some(&key)), lost, "sealed for another host");
        assert_eq!(open(&text, host().as_str(), Seal::new(&[8; 32]).as_ref()), lost, "by another key");
        assert_eq!(open(&seal(&record(), host().as_str(), None), host().as_str(), Some(&key)), lost);
        assert_eq!(open("{}", host().as_str(), None), None);
    }

    #[test]
    fn records_are_kept_in_their_order_and_go_when_all_is_over() {
        let mut journal = Journal::new(HistoryLimits::STANDARD);
        let mut again = Journal::new(HistoryLimits::STANDARD);
        for number in 0..12 {
            for write in journal.apply(Entry::Step { host: host(), text: number.to_string() }, 0) {
                again.restore(write).unwrap();
            }
        }
        let expected: Vec<_> = (0..12).map(|number| number.to_string()).collect();
        assert_eq!(again.provided(&host()).collect::<Vec<_>>(), expected);
        assert!(journal.all().iter().filter(|write| matches!(write, Write::Step { .. })).count() == 12);
        let over = journal.apply(Entry::StepsOver { host: host() }, 0);
        assert_eq!(over, [Write::DropSteps { host: host(), entries: 12 }]);
        assert_eq!(journal.provided_hosts().count(), 0);
        assert!(journal.apply(Entry::StepsOver { host: host() }, 0).is_empty());
        journal.apply(Entry::Step { host: host(), text: "x".to_owned() }, 0);
        let forgotten = journal.apply(Entry::Forgotten { host: host() }, 0);
        assert!(forgotten.contains(&Write::DropSteps { host: host(), entries: 1 }));
    }
}
