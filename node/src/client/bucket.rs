//! One bucket, or a part of it, followed: what the broker delivers, put together with what is held and what an earlier life saw.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};

use super::{
    bus::{Arrived, Bus, FromBus, Target, watch},
    seen::SeenMark,
    watching::{WatchEffect, WatchEvent, Watching},
};

/// Entries under way between the broker and who reads them.
const LANE: usize = 64;

/// What is told of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// An entry is there, new or changed.
    Put {
        /// Its key.
        key: String,
        /// Its revision.
        revision: u64,
        /// What arrived; none for a broker's own answer that was sent into the bucket.
        entry: Option<Arrived>,
    },
    /// An entry is gone.
    Gone(String),
    /// Everything there is has been told: what was not is not there.
    Loaded,
    /// The connection or the consumer is gone; what was told stays, and is not sure.
    Unsure,
    /// There is no such bucket.
    NoBucket,
    /// It looks lost or set back: so many removals are held back for so long.
    Held {
        /// How many.
        keys: usize,
        /// For how long.
        wait: Duration,
    },
}

/// Follows until nobody listens any more. `prefix` is what stands before the keys in the subjects of the target.
pub async fn follow(bus: Bus, target: Target, prefix: String, seen: SeenMark, out: mpsc::Sender<News>) {
    let (hand_on, mut from_bus) = mpsc::channel(LANE);
    let mut watching = Watching::new(seen.highest());
    let began = Instant::now();
    let mut wake: Option<Duration> = None;
    let watcher = watch(bus, target, hand_on, rand::random());
    tokio::pin!(watcher);
    loop {
        let highest = watching.highest();
        let due = wake.map_or_else(|| began + Duration::from_hours(24), |wake| began + wake);
        let event = tokio::select! {
            () = &mut watcher => return,
            told = from_bus.recv() => match told {
                Some(FromBus::NoBucket) => {
                    if out.send(News::NoBucket).await.is_err() {
                        return;
                    }
                    continue;
                }
                Some(FromBus::Lost) => {
                    if out.send(News::Unsure).await.is_err() {
                        return;
                    }
                    WatchEvent::Lost
                }
                Some(told) => match event(told, &prefix) {
                    Some(event) => event,
                    None => continue,
                },
                None => return,
            },
            () = tokio::time::sleep_until(due), if wake.is_some() => {
                wake = None;
                WatchEvent::Woke
            }
            () = out.closed() => return,
        };
        for effect in watching.handle(began.elapsed(), event) {
            let news = match effect {
                WatchEffect::Put { key, revision, value } => News::Put { key, revision, entry: value },
                WatchEffect::Gone(key) => News::Gone(key),
                WatchEffect::Loaded => News::Loaded,
                WatchEffect::Held { keys, until } => {
                    News::Held { keys, wait: until.saturating_sub(began.elapsed()) }
                }
                WatchEffect::WakeAt(at) => {
                    wake = Some(at);
                    continue;
                }
            };
            if out.send(news).await.is_err() {
                return;
            }
        }
        if watching.highest() != highest {
            seen.note(watching.highest());
        }
    }
}

/// What arrived, or none for a broker's own answer in the bucket.
type Entry = Option<Arrived>;

fn event(told: FromBus, prefix: &str) -> Option<WatchEvent<Entry>> {
    let entry = |arrived: Arrived, is_ours: bool| {
        let key = arrived.subject.strip_prefix(prefix)?.to_owned();
        let revision = arrived.revision;
        let mut hasher = DefaultHasher::new();
        arrived.body.hash(&mut hasher);
        let value = arrived.body.is_some().then(|| is_ours.then_some(arrived));
        Some(WatchEvent::Entry { key, revision, mark: hasher.finish(), value })
    };
    match told {
        FromBus::Begun(entries) => Some(WatchEvent::Begun(entries)),
        FromBus::Entry(arrived) => entry(arrived, true),
        FromBus::Misdirected(arrived) => entry(arrived, false),
        FromBus::Lost => Some(WatchEvent::Lost),
        FromBus::NoBucket => None,
    }
}
