//! What is kept and what goes, one test a promise.

use quartermaster_proto::choria::identity::Identity;

use crate::journal::history::{History, HistoryLimits};
use crate::journal::record::AttemptRecord;

fn id(name: &str) -> Identity {
    Identity::parse(name).unwrap()
}

fn attempt(cycle: u64, began_ms: i64) -> AttemptRecord {
    AttemptRecord {
        attempt: 1,
        cycle,
        began_ms,
        took_ms: 5,
        ending: "failed".into(),
        cause: Some("helper".into()),
        error: Some("the helper failed".into()),
        steps: vec![],
        helper: None,
    }
}

fn cycles(history: &History, host: &str) -> Vec<u64> {
    history.of(&id(host)).into_iter().map(|attempt| attempt.cycle).collect()
}

#[test]
fn the_last_attempts_of_a_host_are_kept() {
    let mut history = History::new(HistoryLimits { of_one: 2, of_all: 10, bytes: usize::MAX, age_ms: 1000 });
    for cycle in 1..=4 {
        history.add(&id("a"), &attempt(cycle, 0), 0);
    }
    history.add(&id("b"), &attempt(5, 0), 0);
    assert_eq!(cycles(&history, "a"), [3, 4]);
    assert_eq!(cycles(&history, "b"), [5]);
}

#[test]
fn the_oldest_attempts_of_all_make_room() {
    let mut history = History::new(HistoryLimits { of_one: 5, of_all: 3, bytes: usize::MAX, age_ms: 1000 });
    for cycle in 1..=3 {
        assert_eq!(history.add(&id("a"), &attempt(cycle, 0), 0), Vec::<u64>::new());
    }
    assert_eq!(history.add(&id("b"), &attempt(4, 0), 0), [1]);
    assert_eq!(history.len(), 3);
}

#[test]
fn attempts_with_many_words_make_room_by_their_bytes() {
    let one = serde_json::to_string(&attempt(1, 0)).unwrap().len();
    let limits = HistoryLimits { of_one: 20, of_all: 100, bytes: 3 * one, age_ms: 1000 };
    let mut history = History::new(limits);
    for cycle in 1..=3 {
        assert_eq!(history.add(&id("a"), &attempt(cycle, 0), 0), Vec::<u64>::new());
    }
    assert_eq!(history.add(&id("b"), &attempt(4, 0), 0), [1]);
    // What was forgotten or replaced takes no room any more.
    assert_eq!(history.forget(&id("a")), [2, 3]);
    history.add(&id("b"), &attempt(4, 0), 0);
    for cycle in 5..=6 {
        assert_eq!(history.add(&id("c"), &attempt(cycle, 0), 0), Vec::<u64>::new());
    }
    assert_eq!(history.add(&id("c"), &attempt(7, 0), 0), [4]);
}

#[test]
fn what_is_too_old_goes() {
    let mut history = History::new(HistoryLimits { of_one: 5, of_all: 9, bytes: usize::MAX, age_ms: 1000 });
    history.add(&id("a"), &attempt(1, 0), 0);
    assert_eq!(history.add(&id("b"), &attempt(2, 1500), 1500), [1]);
    assert_eq!(cycles(&history, "a"), Vec::<u64>::new());
}

#[test]
fn a_forgotten_host_leaves_nothing() {
    let mut history = History::new(HistoryLimits::STANDARD);
    history.add(&id("a"), &attempt(1, 0), 0);
    assert_eq!(history.forget(&id("a")), [1]);
    assert!(history.is_empty());
}
