//! Everything is taken back, newest first, exactly once, whenever the process ends.

use super::super::*;
use super::world::{Cut, Skill, World};

const NAMES: [&str; 4] = ["a", "two", "b", "fails"];

/// How many points a whole life has.
fn points(skill: Skill) -> usize {
    let mut world = World::new(skill);
    world.live(&NAMES).unwrap();
    world.passed
}

#[test]
fn what_was_done_is_taken_back_newest_first() {
    let mut world = World::new(Skill::Plain);
    let (ended, taken) = world.live(&NAMES).unwrap();
    assert!(matches!(ended, Ended::Failed { step, unknown: false, .. } if step == "fails"));
    assert_eq!(taken, Some(Taken { undone: 4, ..Taken::default() }));
    assert_eq!(world.log, ["+r/a", "+r/two", "+r/b", "-r/b", "~r/two", "-r/two", "-r/a"]);
    assert_eq!(world.ledger().left(), []);
    // Walked again, nothing is left to do.
    assert_eq!(world.recover(), Ok(Taken::default()));
}

#[test]
fn steps_that_all_succeed_are_left_alone() {
    let mut world = World::new(Skill::Plain);
    assert_eq!(world.live(&["a", "b"]), Ok((Ended::AllDone, None)));
    assert_eq!(world.log, ["+r/a", "+r/b"]);
}

#[test]
fn ended_at_any_point_and_again_in_the_next_life_nothing_stays_and_nothing_is_done_twice() {
    for skill in [Skill::Lookup, Skill::Idempotent] {
        let all = points(skill);
        assert!(all > 40, "{all}");
        for first in 1..=all {
            for second in 0..=all {
                let mut world = World::new(skill);
                world.cut = Some(first);
                assert_eq!(world.live(&NAMES), Err(Cut), "{first}");
                world.cut = (second > 0).then_some(first + second);
                let taken = match world.take_back() {
                    Ok(taken) => taken,
                    Err(_) => world.recover().unwrap(),
                };
                assert_eq!(taken.left, [], "{skill:?} {first} {second}: {:?}", world.log);
                assert!(world.things.is_empty(), "{skill:?} {first} {second}: {:?}", world.log);
                for thing in ["r/a", "r/two", "r/b"] {
                    let count = |sign: &str| {
                        world.log.iter().filter(|line| **line == format!("{sign}{thing}")).count()
                    };
                    // A step that was found out to be done by repeating it is one effect all the same.
                    assert!(
                        count("+") <= 1 && count("+") == count("-"),
                        "{skill:?} {first} {second}: {:?}",
                        world.log
                    );
                }
            }
        }
    }
}

#[test]
fn what_nobody_can_tell_is_left_to_an_operator_and_the_rest_is_taken_back() {
    let all = points(Skill::Plain);
    let mut asked = 0;
    for cut in 1..=all {
        let mut world = World::new(Skill::Plain);
        world.cut = Some(cut);
        assert_eq!(world.live(&NAMES), Err(Cut));
        let made = world.log.clone();
        let taken = world.recover().unwrap();
        assert_eq!(taken.asks_operator, !taken.left.is_empty(), "{cut}");
        assert!(taken.left.len() <= 2, "{cut}: {:?}", taken.left);
        let unknown: Vec<_> = taken.left.iter().filter(|left| left.asks_operator()).collect();
        if unknown.is_empty() {
            assert!(taken.left.is_empty() && world.things.is_empty(), "{cut}: {:?}", world.log);
            continue;
        }
        asked += 1;
        // Asked again without a word, it is not sent again.
        let before = world.log.clone();
        assert!(world.recover().unwrap().asks_operator);
        assert_eq!(world.log, before, "{cut}");
        // An operator's word: a step counts as seen to, a call that takes back is made again.
        world.journal.push(Record::Decided);
        let taken = world.recover().unwrap();
        assert_eq!(taken.left, [], "{cut}");
        let lost = &unknown[0];
        let stays = lost.why == LeftWhy::Unknown && made.contains(&format!("+{}", lost.key));
        assert_eq!(
            world.things.keys().cloned().collect::<Vec<_>>(),
            if stays { vec![lost.key.clone()] } else { vec![] },
            "{cut}: {:?}",
            world.log
        );
    }
    assert!(asked > 10, "{asked}");
}

#[test]
fn a_call_that_fails_for_now_is_made_again_and_one_that_fails_for_long_is_left_for_the_next_walk() {
    let mut world = World::new(Skill::Plain);
    world.broken_undos = 2;
    let (_, taken) = world.live(&["a", "fails"]).unwrap();
    assert_eq!(taken.unwrap().left, [], "tried three times");
    let mut world = World::new(Skill::Plain);
    world.broken_undos = 3;
    let (_, taken) = world.live(&["a", "b", "fails"]).unwrap();
    let taken = taken.unwrap();
    assert!(!taken.asks_operator);
    assert_eq!(taken.left.len(), 1);
    assert_eq!(taken.left[0].to_string(), "step b: p did not take it back with drop: unavailable: later");
    assert_eq!(world.log.last().unwrap(), "-r/a", "what is older is taken back all the same");
    assert_eq!(world.recover().unwrap(), Taken { undone: 1, ..Taken::default() });
}

#[test]
fn what_takes_back_but_cannot_be_read_any_more_is_named() {
    let mut ledger = Ledger::default();
    ledger.apply(&Record::Began { run: "r".to_owned(), scope: None });
    let sent = |step: &str| Record::Sent {
        step: step.to_owned(),
        provider: "p".to_owned(),
        action: "make".to_owned(),
        key: format!("r/{step}"),
        attempt: 1,
        at_ms: 0,
        attrs: None,
    };
    ledger.apply(&sent("a"));
    ledger.apply(&Record::Ok { step: "a".to_owned(), ms: 1, outputs: None, undo: None });
    assert_eq!(ledger.left()[0].why, LeftWhy::Lost);
    assert!(ledger.left()[0].asks_operator());
    ledger.apply(&Record::Decided);
    assert_eq!(ledger.left(), []);
}
