//! How the client's actors hand things to each other: latest per key, so that nobody who says something ever waits, nothing is
//! lost, and what waits is bounded by the number of keys.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{Stream, stream};
use tokio::sync::{Notify, mpsc};

/// Most keys that are taken at once, so that whoever takes them stays able to answer others.
const AT_ONCE: usize = 64;

/// What comes through a channel.
pub(crate) fn heard<T>(receiver: mpsc::Receiver<T>) -> impl Stream<Item = T> {
    stream::unfold(receiver, |mut receiver| async move {
        let next = receiver.recv().await?;
        Some((next, receiver))
    })
}

/// A lane to one taker. What was taken is gone from it.
pub(crate) struct Lane<K, V>(Arc<LaneInner<K, V>>);

struct LaneInner<K, V> {
    waiting: Mutex<Waiting<K, V>>,
    filled: Notify,
}

struct Waiting<K, V> {
    values: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Clone for Lane<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone + Eq + Hash, V> Lane<K, V> {
    /// An empty lane.
    pub(crate) fn new() -> Self {
        let waiting = Mutex::new(Waiting { values: HashMap::new(), order: VecDeque::new() });
        Self(Arc::new(LaneInner { waiting, filled: Notify::new() }))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<K, V>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says this; what was said under the key before and not yet taken is replaced.
    pub(crate) fn put(&self, key: K, value: V) {
        let mut waiting = self.waiting();
        if waiting.values.insert(key.clone(), value).is_none() {
            waiting.order.push_back(key);
        }
        drop(waiting);
        self.0.filled.notify_one();
    }

    /// What waits, in the order in which it began to; waits until there is something.
    async fn take(&self) -> Vec<(K, V)> {
        loop {
            {
                let mut waiting = self.waiting();
                let count = waiting.order.len().min(AT_ONCE);
                let keys: Vec<K> = waiting.order.drain(..count).collect();
                let taken: Vec<(K, V)> = keys
                    .into_iter()
                    .filter_map(|key| {
                        let value = waiting.values.remove(&key)?;
                        Some((key, value))
                    })
                    .collect();
                if !taken.is_empty() {
                    return taken;
                }
            }
            self.0.filled.notified().await;
        }
    }

    /// Everything that is said, as it comes. For one taker.
    pub(crate) fn stream(&self) -> impl Stream<Item = Vec<(K, V)>> + use<K, V> {
        stream::unfold(self.clone(), |lane| async move {
            let taken = lane.take().await;
            Some((taken, lane))
        })
    }
}

/// A board that one reader follows. What stands on it stays, so that a new life of the reader finds all of it.
pub(crate) struct Board<K, V>(Arc<BoardInner<K, V>>);

struct BoardInner<K, V> {
    standing: Mutex<Standing<K, V>>,
    changed: Notify,
}

struct Standing<K, V> {
    values: BTreeMap<K, V>,
    changed: BTreeSet<K>,
    /// Which life of the reader follows; an older one reads no more.
    life: u64,
}

impl<K, V> Clone for Board<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone + Ord, V: Clone> Board<K, V> {
    /// An empty board.
    pub(crate) fn new() -> Self {
        let standing = Mutex::new(Standing { values: BTreeMap::new(), changed: BTreeSet::new(), life: 0 });
        Self(Arc::new(BoardInner { standing, changed: Notify::new() }))
    }

    fn standing(&self) -> MutexGuard<'_, Standing<K, V>> {
        self.0.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts this up, or takes down what stands there; the reader hears of it also when it is what stood there before.
    pub(crate) fn set(&self, key: K, value: Option<V>) {
        let mut standing = self.standing();
        match value {
            Some(value) => drop(standing.values.insert(key.clone(), value)),
            None if standing.values.remove(&key).is_none() => return,
            None => {}
        }
        standing.changed.insert(key);
        drop(standing);
        self.0.changed.notify_one();
    }

    /// Changes what stands there, or what is put there if nothing does.
    pub(crate) fn update(&self, key: K, change: impl FnOnce(&mut V))
    where
        V: Default,
    {
        let mut standing = self.standing();
        change(standing.values.entry(key.clone()).or_default());
        standing.changed.insert(key);
        drop(standing);
        self.0.changed.notify_one();
    }

    /// Takes down what stands there if this holds for it; nobody hears of it.
    pub(crate) fn forget(&self, key: &K, is_over: impl FnOnce(&V) -> bool) {
        let mut standing = self.standing();
        if standing.values.get(key).is_some_and(is_over) {
            standing.values.remove(key);
        }
    }

    /// What stands there.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.standing().values.get(key).cloned()
    }

    /// Every key at which something stands.
    pub(crate) fn keys(&self) -> Vec<K> {
        self.standing().values.keys().cloned().collect()
    }

    async fn take(&self, life: u64) -> Option<Vec<(K, Option<V>)>> {
        loop {
            {
                let mut standing = self.standing();
                if standing.life != life {
                    return None;
                }
                let keys: Vec<K> = standing.changed.iter().take(AT_ONCE).cloned().collect();
                if !keys.is_empty() {
                    let taken = keys.into_iter().map(|key| {
                        standing.changed.remove(&key);
                        let value = standing.values.get(&key).cloned();
                        (key, value)
                    });
                    return Some(taken.collect());
                }
            }
            self.0.changed.notified().await;
        }
    }

    /// Everything that stands, then what changes: a key with what stands there, or with nothing. A new call ends the stream of
    /// the one before.
    pub(crate) fn read(&self) -> impl Stream<Item = Vec<(K, Option<V>)>> + use<K, V> {
        let life = {
            let mut standing = self.standing();
            let all = standing.values.keys().cloned().collect();
            standing.changed = all;
            standing.life += 1;
            standing.life
        };
        self.0.changed.notify_waiters();
        stream::unfold(self.clone(), move |board| async move {
            let taken = board.take(life).await?;
            Some((taken, board))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, StreamExt as _};

    use super::*;

    #[tokio::test]
    async fn a_lane_gives_the_latest_of_each_key_once_and_in_order() {
        let lane = Lane::new();
        for (key, value) in [("b", 1), ("a", 2), ("b", 3)] {
            lane.put(key, value);
        }
        let mut taken = Box::pin(lane.stream());
        assert_eq!(taken.next().await, Some(vec![("b", 3), ("a", 2)]));
        assert_eq!(taken.next().now_or_never(), None);
        lane.put("a", 4);
        assert_eq!(taken.next().await, Some(vec![("a", 4)]));
    }

    #[tokio::test]
    async fn a_new_reader_of_a_board_finds_everything_that_stands() {
        let board = Board::new();
        board.set("a", Some(1));
        board.set("b", Some(2));
        let mut first = Box::pin(board.read());
        assert_eq!(first.next().await, Some(vec![("a", Some(1)), ("b", Some(2))]));
        board.set("a", None);
        board.set("c", None);
        board.update("b", |value| *value += 1);
        assert_eq!(first.next().await, Some(vec![("a", None), ("b", Some(3))]));
        let mut second = Box::pin(board.read());
        assert_eq!(second.next().await, Some(vec![("b", Some(3))]));
        assert_eq!(first.next().await, None, "one reader at a time");
        assert_eq!(board.keys(), ["b"]);
        assert_eq!(board.get(&"b"), Some(3));
    }

    #[tokio::test]
    async fn a_full_lane_is_taken_in_parts() {
        let lane = Lane::new();
        for key in 0..=AT_ONCE {
            lane.put(key, ());
        }
        let taken: Vec<usize> = lane.stream().take(2).map(|part| part.len()).collect().await;
        assert_eq!(taken, [AT_ONCE, 1]);
    }
}
