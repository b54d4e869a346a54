//! Assignments as they lie in the mirror, believed only when they are the controller's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use quartermaster_proto::mesh::accounts::kv_stream;
use quartermaster_proto::mesh::plan::{Assignment, read_assignment};
use quartermaster_proto::mesh::signature::{HEADER, PublicNkey, verify};
use quartermaster_proto::mesh::{esc, key};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::bus::{Arrived, Bus, FromBus, Target, watch};
use crate::client::watching::{WatchEffect, WatchEvent, Watching};

/// Entries under way between the broker and who reads them.
const LANE: usize = 64;

/// What is told about assignments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assigned {
    /// One is there, new or changed.
    Put {
        /// Its key in the bucket.
        key: String,
        /// What it says.
        assignment: Box<Assignment>,
        /// Its value, byte for byte.
        value: Bytes,
        /// Its revision.
        revision: u64,
    },
    /// One is there that is not believed; what was known of it stays.
    Refused(String),
    /// One is gone.
    Gone(String),
    /// All of them have been told: what was not is not there.
    Loaded,
}

/// What to follow.
#[derive(Debug, Clone)]
pub struct Follow {
    /// The connection.
    pub bus: Bus,
    /// One machine's assignments; none for those of the whole mesh.
    pub node: Option<String>,
    /// Keys of the controller. With one, nothing that is not signed with it is taken.
    pub pins: Vec<PublicNkey>,
    /// A file that remembers the highest revision seen, so that a bucket that was set back while we were down is noticed.
    pub seen: Option<PathBuf>,
}

/// Follows until nobody listens any more.
pub async fn follow(follow: Follow, out: mpsc::Sender<Assigned>) {
    let Follow { bus, node, pins, seen } = follow;
    if pins.is_empty() {
        tracing::warn!("no key of the controller is pinned: assignments are taken as they lie in the bucket");
    }
    let below = node.map_or_else(|| ">".to_owned(), |node| format!("{}.>", esc(&node)));
    let target = Target {
        stream: kv_stream(key::ASSIGNMENTS),
        filter: key::kv_subject(key::ASSIGNMENTS, &below),
        is_bucket: true,
    };
    let (hand_on, mut from_bus) = mpsc::channel(LANE);
    let mut watching = Watching::new(seen.as_deref().map_or(0, remembered));
    let mut reader = Reader { pins, serials: BTreeMap::new(), out };
    let began = Instant::now();
    let mut wake: Option<Duration> = None;
    let jitter = rand::random();
    let watcher = watch(bus, target, hand_on, jitter);
    tokio::pin!(watcher);
    loop {
        let highest = watching.highest();
        let due = wake.map_or_else(|| began + Duration::from_hours(24), |wake| began + wake);
        let event = tokio::select! {
            () = &mut watcher => return,
            told = from_bus.recv() => match told {
                Some(told) => event(told),
                None => return,
            },
            () = tokio::time::sleep_until(due) => {
                wake = None;
                Some(WatchEvent::Woke)
            }
            () = reader.out.closed() => return,
        };
        let Some(event) = event else { continue };
        for effect in watching.handle(began.elapsed(), event) {
            match effect {
                WatchEffect::WakeAt(at) => wake = Some(at),
                WatchEffect::Held { keys, until } => tracing::warn!(
                    keys,
                    seconds = until.saturating_sub(began.elapsed()).as_secs(),
                    "the bucket of assignments looks lost or set back: nothing is taken away for a while"
                ),
                effect => {
                    if reader.tell(effect).await.is_err() {
                        return;
                    }
                }
            }
        }
        if watching.highest() != highest
            && let Some(seen) = &seen
        {
            remember(seen, watching.highest());
        }
    }
}

/// What arrived, or none for a broker's own answer in the bucket.
type Entry = Option<Arrived>;

fn event(told: FromBus) -> Option<WatchEvent<Entry>> {
    let entry = |arrived: Arrived, is_ours: bool| {
        let prefix = key::kv_subject(key::ASSIGNMENTS, "");
        let key = arrived.subject.strip_prefix(&prefix)?.to_owned();
        let revision = arrived.revision;
        let value = arrived.body.is_some().then(|| is_ours.then_some(arrived));
        Some(WatchEvent::Entry { key, revision, value })
    };
    match told {
        FromBus::Begun(entries) => Some(WatchEvent::Begun(entries)),
        FromBus::Entry(arrived) => entry(arrived, true),
        FromBus::Misdirected(arrived) => entry(arrived, false),
        FromBus::Lost => Some(WatchEvent::Lost),
        FromBus::NoBucket => None,
    }
}

/// Judges entries and tells those that are believed.
struct Reader {
    pins: Vec<PublicNkey>,
    serials: BTreeMap<String, u64>,
    out: mpsc::Sender<Assigned>,
}

impl Reader {
    async fn tell(&mut self, effect: WatchEffect<Entry>) -> Result<(), mpsc::error::SendError<Assigned>> {
        let told = match effect {
            WatchEffect::Put { key, revision, value } => {
                let arrived =
                    value.ok_or_else(|| "it is a broker's answer that was sent into the bucket".to_owned());
                match arrived.and_then(|arrived| self.judged(&key, revision, arrived)) {
                    Ok(told) => Some(told),
                    Err(why) => {
                        tracing::warn!(key, why, "an assignment is not taken; what was known of it stays");
                        Some(Assigned::Refused(key))
                    }
                }
            }
            WatchEffect::Gone(key) => {
                self.serials.remove(&key);
                Some(Assigned::Gone(key))
            }
            WatchEffect::Loaded => Some(Assigned::Loaded),
            WatchEffect::Held { .. } | WatchEffect::WakeAt(_) => None,
        };
        match told {
            Some(told) => self.out.send(told).await,
            None => Ok(()),
        }
    }

    fn judged(&mut self, key: &str, revision: u64, arrived: Arrived) -> Result<Assigned, String> {
        let value = arrived.body.unwrap_or_default();
        if !self.pins.is_empty() {
            let header = arrived.headers.get(HEADER).map(|value| value.as_str().to_owned());
            verify(header.as_deref(), &self.pins, &arrived.subject, &value)
                .map_err(|error| error.to_string())?;
        }
        let (assignment, unknown) = read_assignment(key, &value).map_err(|fault| fault.to_string())?;
        let last = self.serials.get(key).copied().unwrap_or_default();
        if !self.pins.is_empty() && assignment.serial < last {
            return Err(format!("its serial {} is older than {last}", assignment.serial));
        }
        self.serials.insert(key.to_owned(), assignment.serial);
        for place in unknown {
            tracing::warn!(key, place, "a member of a plan is not known");
        }
        Ok(Assigned::Put { key: key.to_owned(), assignment: Box::new(assignment), value, revision })
    }
}

fn remembered(file: &Path) -> u64 {
    std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

fn remember(file: &Path, highest: u64) {
    let written = file.parent().map_or(Ok(()), |folder| {
        let mut beside = tempfile::NamedTempFile::new_in(folder)?;
        std::io::Write::write_all(&mut beside, format!("{highest}\n").as_bytes())?;
        beside.persist(file).map(drop).map_err(|error| error.error)
    });
    if let Err(error) = written {
        tracing::warn!(%error, "the highest revision seen cannot be remembered");
    }
}
