//! One bucket, or a part of it, as a watcher knows it: snapshots compared with what is held, and removals that are not believed
//! at once when the bucket looks lost or set back.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// How long removals are held back after a bucket that looks lost or set back.
pub const HOLD: Duration = Duration::from_mins(10);

/// What a watcher is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent<V> {
    /// A new consumer delivers: a snapshot of this many entries, then changes.
    Begun(u64),
    /// An entry, or the marker of a deleted one.
    Entry {
        /// Its key.
        key: String,
        /// Its revision.
        revision: u64,
        /// Tells its content from another: a bucket that was made anew counts its revisions from the start.
        mark: u64,
        /// Its value; none when it is deleted.
        value: Option<V>,
    },
    /// The consumer, or the bus, is gone; what is held stays, but is not sure.
    Lost,
    /// Time passed.
    Woke,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEffect<V> {
    /// This entry is there, new or changed.
    Put {
        /// Its key.
        key: String,
        /// Its revision.
        revision: u64,
        /// Its value.
        value: V,
    },
    /// This entry is gone.
    Gone(String),
    /// A snapshot is whole: what is not there is known not to be.
    Loaded,
    /// The bucket looks lost or set back: this many removals are held back until this time since the start.
    Held {
        /// How many.
        keys: usize,
        /// Until when.
        until: Duration,
    },
    /// Come back with [`WatchEvent::Woke`] at this time since the start.
    WakeAt(Duration),
}

/// What is held of a bucket.
#[derive(Debug)]
pub struct Watching {
    /// Revision and mark of each entry.
    held: BTreeMap<String, (u64, u64)>,
    /// The highest revision ever seen, also in earlier runs.
    highest: u64,
    snapshot: Option<Snapshot>,
    is_loaded: bool,
    doubt: Option<Doubt>,
}

#[derive(Debug)]
struct Snapshot {
    left: u64,
    keys: BTreeSet<String>,
    highest: u64,
}

#[derive(Debug)]
struct Doubt {
    until: Duration,
    gone: BTreeSet<String>,
}

impl Watching {
    /// Nothing is held; `highest` is what an earlier run saw last, 0 for nothing.
    pub const fn new(highest: u64) -> Self {
        Self { held: BTreeMap::new(), highest, snapshot: None, is_loaded: false, doubt: None }
    }

    /// The highest revision seen, to be kept for the next run.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// True when a whole snapshot was seen since the last loss.
    pub const fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// True while removals are held back: then what is empty may only look so.
    pub const fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Takes an event; answers what follows, in order.
    pub fn handle<V>(&mut self, now: Duration, event: WatchEvent<V>) -> Vec<WatchEffect<V>> {
        let mut effects = Vec::new();
        match event {
            WatchEvent::Begun(entries) => {
                self.snapshot = Some(Snapshot { left: entries, keys: BTreeSet::new(), highest: 0 });
                self.finish_snapshot(now, &mut effects);
            }
            WatchEvent::Entry { key, revision, mark, value } => {
                self.entry(key, (revision, mark), value, &mut effects);
                self.finish_snapshot(now, &mut effects);
            }
            WatchEvent::Lost => {
                self.snapshot = None;
                self.is_loaded = false;
            }
            WatchEvent::Woke => {
                if let Some(doubt) = self.doubt.take_if(|doubt| doubt.until <= now) {
                    for key in doubt.gone {
                        self.held.remove(&key);
                        effects.push(WatchEffect::Gone(key));
                    }
                    // The bucket is believed from here on.
                    self.highest =
                        self.held.values().map(|(revision, _)| *revision).max().unwrap_or_default();
                    effects.push(WatchEffect::Loaded);
                }
            }
        }
        effects
    }

    fn entry<V>(
        &mut self,
        key: String,
        version: (u64, u64),
        value: Option<V>,
        effects: &mut Vec<WatchEffect<V>>,
    ) {
        let (revision, _) = version;
        let is_old = self.held.get(&key) == Some(&version);
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.left = snapshot.left.saturating_sub(1);
            snapshot.highest = snapshot.highest.max(revision);
            if value.is_some() {
                snapshot.keys.insert(key.clone());
            }
        }
        match value {
            Some(value) => {
                if let Some(doubt) = &mut self.doubt {
                    doubt.gone.remove(&key);
                }
                if !is_old {
                    self.held.insert(key.clone(), version);
                    effects.push(WatchEffect::Put { key, revision, value });
                }
            }
            // A marker is somebody's act, and is believed also of a bucket that was set back, once its snapshot was read.
            None if self.snapshot.is_none() => {
                if let Some(doubt) = &mut self.doubt {
                    doubt.gone.remove(&key);
                }
                if self.held.remove(&key).is_some() {
                    effects.push(WatchEffect::Gone(key));
                }
            }
            // In a snapshot it counts as missing, like a key that is not there at all.
            None => {}
        }
        if self.snapshot.is_none() && self.doubt.is_none() {
            self.highest = self.highest.max(revision);
        }
    }

    fn finish_snapshot<V>(&mut self, now: Duration, effects: &mut Vec<WatchEffect<V>>) {
        let Some(Snapshot { keys, highest, .. }) = self.snapshot.take_if(|snapshot| snapshot.left == 0)
        else {
            return;
        };
        let gone: BTreeSet<String> = self.held.keys().filter(|key| !keys.contains(*key)).cloned().collect();
        self.is_loaded = true;
        if highest < self.highest {
            let until = self.doubt.as_ref().map_or(now + HOLD, |doubt| doubt.until);
            effects.extend([WatchEffect::Held { keys: gone.len(), until }, WatchEffect::WakeAt(until)]);
            self.doubt = Some(Doubt { until, gone });
            return;
        }
        self.doubt = None;
        self.highest = highest;
        for key in gone {
            self.held.remove(&key);
            effects.push(WatchEffect::Gone(key));
        }
        effects.push(WatchEffect::Loaded);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Event = WatchEvent<&'static str>;

    fn entry(key: &str, revision: u64) -> Event {
        WatchEvent::Entry { key: key.to_owned(), revision, mark: 0, value: Some("v") }
    }

    fn marker(key: &str, revision: u64) -> Event {
        WatchEvent::Entry { key: key.to_owned(), revision, mark: 0, value: None }
    }

    /// Effects in short.
    fn run(watching: &mut Watching, seconds: u64, events: impl IntoIterator<Item = Event>) -> String {
        let now = Duration::from_secs(seconds);
        let effects = events.into_iter().flat_map(|event| watching.handle(now, event));
        let shown = effects.map(|effect| match effect {
            WatchEffect::Put { key, revision, .. } => format!("+{key}@{revision}"),
            WatchEffect::Gone(key) => format!("-{key}"),
            WatchEffect::Loaded => "loaded".to_owned(),
            WatchEffect::Held { keys, until } => format!("held {keys} until {}", until.as_secs()),
            WatchEffect::WakeAt(at) => format!("wake {}", at.as_secs()),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    fn loaded() -> Watching {
        let mut watching = Watching::new(0);
        let events = [WatchEvent::Begun(2), entry("a", 1), entry("b", 2)];
        assert_eq!(run(&mut watching, 0, events), "+a@1 +b@2 loaded");
        watching
    }

    #[test]
    fn a_snapshot_is_whole_when_all_of_it_came() {
        let mut watching = Watching::new(0);
        assert_eq!(run(&mut watching, 0, [WatchEvent::Begun(2), entry("a", 1)]), "+a@1");
        assert!(!watching.is_loaded());
        assert_eq!(run(&mut watching, 0, [marker("b", 2)]), "loaded");
        assert!(watching.is_loaded());
    }

    #[test]
    fn an_empty_bucket_is_whole_at_once() {
        assert_eq!(run(&mut Watching::new(0), 0, [WatchEvent::Begun(0)]), "loaded");
    }

    #[test]
    fn a_bucket_with_deleted_keys_alone_is_empty() {
        let mut watching = Watching::new(0);
        assert_eq!(run(&mut watching, 0, [WatchEvent::Begun(1), marker("a", 3)]), "loaded");
        assert_eq!(run(&mut watching, 0, [entry("a", 4)]), "+a@4");
    }

    #[test]
    fn changes_come_after_the_snapshot() {
        let mut watching = loaded();
        assert_eq!(
            run(&mut watching, 0, [entry("a", 3), marker("b", 4), marker("c", 5), entry("b", 6)]),
            "+a@3 -b +b@6"
        );
        assert_eq!(watching.highest(), 6);
    }

    #[test]
    fn a_new_snapshot_is_compared_with_what_is_held() {
        let mut watching = loaded();
        run(&mut watching, 0, [WatchEvent::Lost]);
        assert!(!watching.is_loaded());
        let events = [WatchEvent::Begun(3), entry("a", 1), entry("c", 3), marker("b", 4)];
        assert_eq!(run(&mut watching, 0, events), "+c@3 -b loaded");
    }

    #[test]
    fn a_snapshot_that_was_cut_short_removes_nothing() {
        let mut watching = loaded();
        let events = [
            WatchEvent::Begun(2),
            entry("a", 1),
            WatchEvent::Lost,
            WatchEvent::Begun(2),
            entry("a", 1),
            entry("b", 2),
        ];
        assert_eq!(run(&mut watching, 0, events), "loaded");
    }

    #[test]
    fn a_bucket_that_is_lost_is_no_removal_for_ten_minutes() {
        let mut watching = loaded();
        assert_eq!(
            run(&mut watching, 100, [WatchEvent::Lost, WatchEvent::Begun(0)]),
            "held 2 until 700 wake 700"
        );
        assert!(watching.is_in_doubt());
        assert_eq!(
            run(&mut watching, 300, [WatchEvent::Lost, WatchEvent::Begun(0)]),
            "held 2 until 700 wake 700"
        );
        assert_eq!(run(&mut watching, 400, [entry("a", 1)]), "", "it is back as it was");
        assert_eq!(run(&mut watching, 699, [WatchEvent::Woke]), "");
        assert_eq!(run(&mut watching, 700, [WatchEvent::Woke]), "-b loaded");
        assert_eq!((watching.is_in_doubt(), watching.highest()), (false, 1));
        assert_eq!(run(&mut watching, 701, [entry("b", 2), marker("a", 3)]), "+b@2 -a");
    }

    #[test]
    fn another_content_under_the_revision_of_before_is_news() {
        let mut watching = loaded();
        let other = WatchEvent::Entry { key: "a".to_owned(), revision: 1, mark: 7, value: Some("other") };
        let events = [WatchEvent::Lost, WatchEvent::Begun(1), other.clone()];
        assert_eq!(run(&mut watching, 100, events), "+a@1 held 1 until 700 wake 700");
        assert_eq!(run(&mut watching, 101, [other]), "", "once");
    }

    #[test]
    fn a_bucket_that_came_back_whole_is_believed_at_once() {
        let mut watching = loaded();
        run(&mut watching, 100, [WatchEvent::Lost, WatchEvent::Begun(0)]);
        let events = [WatchEvent::Lost, WatchEvent::Begun(2), entry("a", 1), entry("b", 2)];
        assert_eq!(run(&mut watching, 200, events), "loaded");
        assert_eq!(run(&mut watching, 700, [WatchEvent::Woke]), "");
    }

    #[test]
    fn what_an_earlier_run_saw_counts() {
        let mut watching = Watching::new(9);
        assert_eq!(
            run(&mut watching, 0, [WatchEvent::Begun(1), entry("a", 3)]),
            "+a@3 held 0 until 600 wake 600"
        );
        assert!(watching.is_in_doubt(), "what is not there may only look so");
    }

    proptest! {
        #[test]
        fn what_is_held_follows_the_bucket(steps in prop::collection::vec((0..5_u8, 0..4_u8), 0..80)) {
            // A bucket that is only ever written, and a watcher that loses its consumer now and then.
            let mut bucket: BTreeMap<String, (u64, bool)> = BTreeMap::new();
            let mut watching = Watching::new(0);
            let mut view: BTreeMap<String, u64> = BTreeMap::new();
            let mut revision = 0;
            let mut is_listening = false;
            let mut feed = |watching: &mut Watching, event: Event| {
                for effect in watching.handle(Duration::ZERO, event) {
                    match effect {
                        WatchEffect::Put { key, revision, .. } => drop(view.insert(key, revision)),
                        WatchEffect::Gone(key) => drop(view.remove(&key)),
                        WatchEffect::Loaded => {}
                        other => panic!("{other:?}"),
                    }
                }
            };
            for (step, key) in steps.into_iter().chain([(4, 0)]) {
                let key = format!("k{key}");
                match step {
                    0..=2 => {
                        revision += 1;
                        bucket.insert(key.clone(), (revision, step < 2));
                        if is_listening {
                            feed(&mut watching, if step < 2 { entry(&key, revision) } else { marker(&key, revision) });
                        }
                    }
                    3 => {
                        is_listening = false;
                        feed(&mut watching, WatchEvent::Lost);
                    }
                    _ => {
                        is_listening = true;
                        feed(&mut watching, WatchEvent::Begun(bucket.len() as u64));
                        for (key, (revision, is_there)) in &bucket {
                            feed(&mut watching, if *is_there { entry(key, *revision) } else { marker(key, *revision) });
                        }
                    }
                }
            }
            let there = bucket.into_iter().filter(|(_, (_, is_there))| *is_there);
            prop_assert_eq!(view, there.map(|(key, (revision, _))| (key, revision)).collect::<BTreeMap<_, _>>());
        }
    }
}
