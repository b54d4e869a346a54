//! What happened to each host: its last attempts, bounded for each host, in all, and by age.

use std::collections::{BTreeMap, HashMap};

use quartermaster_proto::choria::identity::Identity;

use super::record::AttemptRecord;

/// How much history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Attempts of one host.
    pub of_one: usize,
    /// Attempts of all hosts.
    pub of_all: usize,
    /// Bytes of all attempts together, as JSON: helpers that fail with many words fill it before the number does.
    pub bytes: usize,
    /// The age at which an attempt is forgotten, milliseconds from its beginning.
    pub age_ms: i64,
}

impl HistoryLimits {
    /// Twenty attempts of a host, fifty thousand and 32 MiB in all, thirty days.
    pub const STANDARD: Self =
        Self { of_one: 20, of_all: 50_000, bytes: 32 << 20, age_ms: 30 * 24 * 3600 * 1000 };
}

/// The attempts. Each lies here as the JSON that the file holds too: that is a third of the memory.
#[derive(Debug)]
pub struct History {
    limits: HistoryLimits,
    attempts: BTreeMap<u64, Kept>,
    of_host: HashMap<Identity, Vec<u64>>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    host: Identity,
    began_ms: i64,
    json: Box<str>,
}

impl History {
    /// An empty history.
    pub fn new(limits: HistoryLimits) -> Self {
        Self { limits, attempts: BTreeMap::new(), of_host: HashMap::new(), bytes: 0 }
    }

    /// Adds an attempt that is over; answers the cycles whose attempts had to go.
    pub fn add(&mut self, host: &Identity, attempt: &AttemptRecord, now_ms: i64) -> Vec<u64> {
        let Ok(json) = serde_json::to_string(attempt) else { return Vec::new() };
        self.put(host, attempt.cycle, attempt.began_ms, json);
        self.trim(host, now_ms)
    }

    /// Puts back an attempt as it was stored.
    pub fn put(&mut self, host: &Identity, cycle: u64, began_ms: i64, json: String) {
        let kept = Kept { host: host.clone(), began_ms, json: json.into_boxed_str() };
        self.bytes = self.bytes.saturating_add(kept.json.len());
        if let Some(before) = self.attempts.insert(cycle, kept) {
            self.bytes = self.bytes.saturating_sub(before.json.len());
        } else {
            let cycles = self.of_host.entry(host.clone()).or_default();
            let place = cycles.partition_point(|known| *known < cycle);
            cycles.insert(place, cycle);
        }
    }

    /// The stored JSON of one attempt.
    pub fn stored(&self, cycle: u64) -> Option<&str> {
        self.attempts.get(&cycle).map(|kept| &*kept.json)
    }

    /// Every attempt: its cycle, its host and the stored JSON.
    pub fn all(&self) -> impl Iterator<Item = (u64, &Identity, &str)> {
        self.attempts.iter().map(|(cycle, kept)| (*cycle, &kept.host, &*kept.json))
    }

    /// The attempts of a host, oldest first.
    pub fn of(&self, host: &Identity) -> Vec<AttemptRecord> {
        let cycles = self.of_host.get(host).map(Vec::as_slice).unwrap_or_default();
        let kept = cycles.iter().filter_map(|cycle| self.attempts.get(cycle));
        kept.filter_map(|kept| serde_json::from_str(&kept.json).ok()).collect()
    }

    /// Forgets a host; answers the cycles whose attempts went.
    pub fn forget(&mut self, host: &Identity) -> Vec<u64> {
        let cycles = self.of_host.remove(host).unwrap_or_default();
        for cycle in &cycles {
            let gone = self.attempts.remove(cycle).map_or(0, |kept| kept.json.len());
            self.bytes = self.bytes.saturating_sub(gone);
        }
        cycles
    }

    /// Whether there is any attempt of this host.
    pub fn knows(&self, host: &Identity) -> bool {
        self.of_host.contains_key(host)
    }

    /// Drops what is over a limit that concerns all; answers the cycles whose attempts went.
    pub fn expire(&mut self, now_ms: i64) -> Vec<u64> {
        let mut gone = Vec::new();
        while let Some((cycle, kept)) = self.attempts.first_key_value()
            && (self.attempts.len() > self.limits.of_all
                || self.bytes > self.limits.bytes
                || now_ms.saturating_sub(kept.began_ms) > self.limits.age_ms)
        {
            self.drop_one(*cycle, &mut gone);
        }
        gone
    }

    /// How many attempts there are.
    pub fn len(&self) -> usize {
        self.attempts.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }

    /// Drops what is over a limit: of this host, then the oldest of all.
    fn trim(&mut self, host: &Identity, now_ms: i64) -> Vec<u64> {
        let mut gone = Vec::new();
        while let Some(cycles) = self.of_host.get(host)
            && cycles.len() > self.limits.of_one
            && let Some(oldest) = cycles.first().copied()
        {
            self.drop_one(oldest, &mut gone);
        }
        gone.append(&mut self.expire(now_ms));
        gone
    }

    fn drop_one(&mut self, cycle: u64, gone: &mut Vec<u64>) {
        let Some(kept) = self.attempts.remove(&cycle) else { return };
        self.bytes = self.bytes.saturating_sub(kept.json.len());
        gone.push(cycle);
        if let Some(cycles) = self.of_host.get_mut(&kept.host) {
            cycles.retain(|known| *known != cycle);
            if cycles.is_empty() {
                self.of_host.remove(&kept.host);
            }
        }
    }
}
