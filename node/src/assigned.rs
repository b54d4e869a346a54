//! Assignments as they lie in the mirror, believed only when they are the controller's own.

use std::collections::BTreeMap;

use bytes::Bytes;
use quartermaster_proto::mesh::plan::{Assignment, read_assignment};
use quartermaster_proto::mesh::signature::{HEADER, PublicNkey, verify};
use quartermaster_proto::mesh::{esc, key};
use tokio::sync::mpsc;

use crate::client::bucket::{self, News};
use crate::client::bus::{Arrived, Bus, Target};
use crate::client::seen::SeenMark;

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
    /// What remembers how far the bucket had come, so that one that was set back while we were down is noticed.
    pub seen: SeenMark,
}

/// Follows until nobody listens any more.
pub async fn follow(what: Follow, out: mpsc::Sender<Assigned>) {
    let Follow { bus, node, pins, seen } = what;
    if pins.is_empty() {
        tracing::warn!("no key of the controller is pinned: assignments are taken as they lie in the bucket");
    }
    let below = node.map_or_else(|| ">".to_owned(), |node| format!("{}.>", esc(&node)));
    let target = Target::bucket(key::ASSIGNMENTS, &below);
    let prefix = key::kv_subject(key::ASSIGNMENTS, "");
    let (hand_on, mut news) = mpsc::channel(LANE);
    let mut reader = Reader { pins, serials: BTreeMap::new(), seen: seen.clone(), out };
    let reading = async move {
        while let Some(news) = news.recv().await {
            if reader.tell(news).await.is_err() {
                return;
            }
        }
    };
    let following = bucket::follow(bus, target, prefix, seen, hand_on);
    tokio::select! {
        () = following => {}
        () = reading => {}
    }
}

/// Judges entries and tells those that are believed.
struct Reader {
    pins: Vec<PublicNkey>,
    serials: BTreeMap<String, u64>,
    seen: SeenMark,
    out: mpsc::Sender<Assigned>,
}

impl Reader {
    async fn tell(&mut self, news: News) -> Result<(), mpsc::error::SendError<Assigned>> {
        let told = match news {
            News::Put { key, revision, entry } => {
                let arrived =
                    entry.ok_or_else(|| "it is a broker's answer that was sent into the bucket".to_owned());
                match arrived.and_then(|arrived| self.judged(&key, revision, arrived)) {
                    Ok(told) => Some(told),
                    Err(why) => {
                        tracing::warn!(key, why, "an assignment is not taken; what was known of it stays");
                        Some(Assigned::Refused(key))
                    }
                }
            }
            News::Gone(key) => {
                self.serials.remove(&key);
                self.seen.forget_serial(&key);
                Some(Assigned::Gone(key))
            }
            News::Loaded => Some(Assigned::Loaded),
            News::Held { keys, wait } => {
                tracing::warn!(
                    keys,
                    seconds = wait.as_secs(),
                    "the bucket of assignments looks lost or set back: nothing is taken away for a while"
                );
                None
            }
            News::Unsure | News::NoBucket => None,
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
        let last = self.serials.get(key).copied().unwrap_or_else(|| self.seen.serial(key));
        if !self.pins.is_empty() && assignment.serial < last {
            return Err(format!("its serial {} is older than {last}", assignment.serial));
        }
        self.serials.insert(key.to_owned(), assignment.serial);
        if !self.pins.is_empty() {
            self.seen.note_serial(key, assignment.serial);
        }
        for place in unknown {
            tracing::warn!(key, place, "a member of a plan is not known");
        }
        Ok(Assigned::Put { key: key.to_owned(), assignment: Box::new(assignment), value, revision })
    }
}
