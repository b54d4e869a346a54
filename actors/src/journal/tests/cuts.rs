//! The fold, cut at every length: what is left is taken up where it was. Also through what would be written, and in every
//! order that cycles of several hosts can have.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quartermaster_proto::choria::identity::Identity;

use crate::journal::entry::{Began, Entry, Intent, Stand, Standing, StoredPause, Unfinished};
use crate::journal::history::HistoryLimits;
use crate::journal::journal::{Journal, Write};
use crate::journal::record::{AttemptRecord, StepRecord};

const NOW: i64 = 1_000_000;

fn id(name: &str) -> Identity {
    Identity::parse(name).unwrap()
}

fn standing(stand: Stand, failures: u32, unfinished: Option<Unfinished>) -> Standing {
    Standing {
        stand,
        failures,
        lost: 0,
        failing_since_ms: (failures > 0).then_some(5),
        failure: None,
        first_seen_ms: 1,
        last_seen_ms: 2,
        newest_event: Some((7, 1)),
        unfinished,
    }
}

fn began(host: &str, cycle: u64, unfinished: Option<Unfinished>) -> Entry {
    let began = Began { cycle, attempt: 1, at_ms: 10, standing: standing(Stand::Idle, 0, unfinished) };
    Entry::Began { host: id(host), began }
}

fn step(name: &str) -> StepRecord {
    StepRecord { step: name.into(), tries: 1, began_ms: 11, took_ms: 1, error: None }
}

fn intended(cycle: u64, name: &str, material: Option<&str>) -> Entry {
    let intent =
        Intent { step: name.into(), at_ms: 20, steps: vec![step("inventory"), step(name)], helper: None };
    Entry::Intended { cycle, intent, material: material.map(|text| text.as_bytes().to_vec()) }
}

fn done(cycle: u64, name: &str) -> Entry {
    Entry::Done { cycle, step: name.into() }
}

fn ended(host: &str, cycle: u64, ending: &str, after: Standing) -> Entry {
    let attempt = AttemptRecord {
        attempt: 1,
        cycle,
        began_ms: 10,
        took_ms: 30,
        ending: ending.into(),
        cause: None,
        error: None,
        steps: vec![step("inventory")],
        helper: None,
    };
    Entry::Ended { host: id(host), attempt, standing: Some(after) }
}

fn held() -> Standing {
    let stand = Stand::Held { ending: "provisioned".into(), since_ms: 40, began_ms: 10, confirmed: false };
    standing(stand, 0, None)
}

fn cooling(failures: u32, unfinished: Option<Unfinished>) -> Standing {
    standing(Stand::Cooling { since_ms: 40, until_ms: 100, began_ms: 10 }, failures, unfinished)
}

/// A journal of one good cycle.
fn good(host: &str, cycle: u64) -> Vec<Entry> {
    vec![
        began(host, cycle, None),
        intended(cycle, "configure", Some("decision")),
        done(cycle, "configure"),
        intended(cycle, "restart", None),
        ended(host, cycle, "provisioned", held()),
    ]
}

/// The file that these entries leave, if each batch is written at once.
fn file(entries: &[Entry]) -> Vec<Write> {
    let mut journal = Journal::new(HistoryLimits::STANDARD);
    let mut rows: BTreeMap<String, Write> = BTreeMap::new();
    for write in entries.iter().flat_map(|entry| journal.apply(entry.clone(), NOW)) {
        match &write {
            Write::Cycle { cycle, number, .. } => {
                drop(rows.insert(format!("c{cycle:09}.{number:04}"), write));
            }
            Write::DropCycle { cycle, entries } => {
                for number in 0..*entries {
                    rows.remove(&format!("c{cycle:09}.{number:04}"));
                }
            }
            Write::Standing { host, text: Some(_) } => drop(rows.insert(format!("s{host}"), write)),
            Write::Standing { host, text: None } => drop(rows.remove(&format!("s{host}"))),
            Write::Attempt { cycle, .. } => drop(rows.insert(format!("a{cycle:09}"), write)),
            Write::DropAttempt { cycle } => drop(rows.remove(&format!("a{cycle:09}"))),
            Write::Material { host, sealed: Some(_) } => drop(rows.insert(format!("m{host}"), write)),
            Write::Material { host, sealed: None } => drop(rows.remove(&format!("m{host}"))),
            Write::Step { host, number, .. } => drop(rows.insert(format!("t{host}.{number:04}"), write)),
            Write::DropSteps { host, entries } => {
                for number in 0..*entries {
                    rows.remove(&format!("t{host}.{number:04}"));
                }
            }
            Write::Pause(Some(_)) => drop(rows.insert("p".into(), write)),
            Write::Pause(None) => drop(rows.remove("p")),
        }
    }
    rows.into_values().collect()
}

/// The journal that a restart finds after these entries.
fn reread(entries: &[Entry]) -> Journal {
    let mut journal = Journal::new(HistoryLimits::STANDARD);
    for write in file(entries) {
        journal.restore(write).unwrap();
    }
    journal
}

/// What a restart finds of one host: how its last attempt ended, what it stands with, what is to be made good and whether the
/// decision is there.
fn found(entries: &[Entry], host: &str) -> String {
    let mut journal = reread(entries);
    journal.cut_off(NOW);
    let stand =
        journal.standings().find(|(name, _)| **name == id(host)).map(|(_, standing)| standing.clone());
    let last = journal.history().of(&id(host)).pop().map_or("none".to_owned(), |attempt| attempt.ending);
    let stand = stand.map_or("nothing".to_owned(), |stand| {
        let name = match stand.stand {
            Stand::Idle => "idle",
            Stand::Held { .. } => "held",
            Stand::Cooling { .. } => "cooling",
            Stand::GaveUp { .. } => "gave_up",
        };
        format!("{name} {} {:?}", stand.failures, stand.unfinished)
    });
    let decision = if journal.material(&id(host)).is_some() { "decision" } else { "no decision" };
    format!("{last}, {stand}, {decision}")
}

/// Cuts `entries` after 0, 1, 2 … of them.
#[track_caller]
fn check_cuts(entries: &[Entry], expected: &[&str]) {
    let found: Vec<_> = (0..=entries.len()).map(|cut| found(&entries[..cut], "web1")).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_good_cycle_cut_anywhere_is_taken_up_where_it_was() {
    check_cuts(
        &good("web1", 1),
        &[
            "none, nothing, no decision",
            "lost, idle 0 None, no decision",
            "lost, idle 0 Some(Configure), decision",
            "lost, idle 0 Some(Restart), no decision",
            "lost, idle 0 Some(Restarted), no decision",
            "provisioned, held 0 None, no decision",
        ],
    );
}

#[test]
fn a_cycle_whose_configure_was_not_answered_keeps_its_decision_for_the_next() {
    check_cuts(
        &[
            began("web1", 1, None),
            intended(1, "configure", Some("decision")),
            ended("web1", 1, "failed", cooling(1, Some(Unfinished::Configure))),
            began("web1", 2, Some(Unfinished::Configure)),
            intended(2, "configure", Some("decision")),
            done(2, "configure"),
            intended(2, "restart", None),
            ended("web1", 2, "provisioned", held()),
        ],
        &[
            "none, nothing, no decision",
            "lost, idle 0 None, no decision",
            "lost, idle 0 Some(Configure), decision",
            "failed, cooling 1 Some(Configure), decision",
            "lost, idle 0 Some(Configure), decision",
            "lost, idle 0 Some(Configure), decision",
            "lost, idle 0 Some(Restart), no decision",
            "lost, idle 0 Some(Restarted), no decision",
            "provisioned, held 0 None, no decision",
        ],
    );
}

/// What is told of the attempt that these entries leave open, and how many attempts its host has lost.
#[track_caller]
fn check_told(entries: &[Entry], error: &str, of_last_step: Option<&str>) {
    let mut journal = reread(entries);
    let (mut cut, _) = journal.cut_off(NOW);
    let attempt = cut.remove(&id("web1")).unwrap().attempt;
    assert_eq!(attempt.error.as_deref(), Some(error));
    assert_eq!(attempt.steps.last().and_then(|last| last.error.as_deref()), of_last_step);
    assert_eq!(journal.standings().next().unwrap().1.lost, 1);
}

#[test]
fn a_lost_attempt_tells_whether_its_last_step_was_answered() {
    const ENDED: &str = "the instance ended under it";
    let entries = good("web1", 1);
    check_told(&entries[..1], &format!("{ENDED}; which steps it had taken is not recorded"), None);
    check_told(&entries[..2], ENDED, Some("no reply to it is known"));
    check_told(&entries[..3], ENDED, None);
    check_told(&entries[..4], ENDED, Some("no reply to it is known"));
}

#[test]
fn a_cycle_that_its_keeper_lost_is_over_with_that() {
    let mut entries = good("web1", 1);
    entries.pop();
    entries.push(Entry::Lost { cycle: 1, host: id("web1"), standing: Some(cooling(1, None)) });
    entries.push(Entry::Stands { host: id("web1"), standing: None });
    let mut journal = reread(&entries);
    assert_eq!(journal.open_entries(), 0);
    assert!(journal.cut_off(NOW).0.is_empty());
    assert!(journal.standings().next().is_none(), "it serves, and is not taken up again");
    let attempt = journal.history().of(&id("web1")).pop().unwrap();
    assert_eq!(attempt.error.as_deref(), Some("the part that led it ended under it"));
}

#[test]
fn attempts_waits_and_giving_up_survive() {
    let gave_up = Some(standing(Stand::GaveUp { since_ms: 90 }, 3, None));
    check_cuts(
        &[
            began("web1", 1, None),
            ended("web1", 1, "failed", cooling(1, None)),
            Entry::Stands { host: id("web1"), standing: Some(cooling(2, None)) },
            Entry::Stands { host: id("web1"), standing: gave_up },
            Entry::Stands { host: id("web1"), standing: None },
            Entry::Forgotten { host: id("web1") },
        ],
        &[
            "none, nothing, no decision",
            "lost, idle 0 None, no decision",
            "failed, cooling 1 None, no decision",
            "failed, cooling 2 None, no decision",
            "failed, gave_up 3 None, no decision",
            "failed, nothing, no decision",
            "none, nothing, no decision",
        ],
    );
}

#[test]
fn a_shutdown_or_an_update_that_was_cut_off_leaves_nothing_to_make_good() {
    for name in ["shutdown", "update"] {
        let mut journal = reread(&[began("web1", 1, None), intended(1, name, None)]);
        let (cut, _) = journal.cut_off(NOW);
        assert_eq!(cut[&id("web1")].touched, Some((name.to_owned(), 20)));
        assert_eq!(journal.standings().next().unwrap().1.unfinished, None);
    }
}

#[test]
fn a_pause_is_in_force_until_it_is_ended() {
    let pause = StoredPause { who: "ann".into(), why: "switch".into(), since: 5 };
    let entries = [Entry::Paused(Some(pause.clone())), Entry::Paused(None)];
    assert_eq!(reread(&entries[..1]).paused(), Some(&pause));
    assert_eq!(reread(&entries).paused(), None);
}

#[test]
fn cycles_are_never_numbered_twice() {
    assert_eq!(reread(&[began("web1", 41, None)]).next_cycle(), 42);
    assert_eq!(reread(&good("web1", 41)).next_cycle(), 42);
}

#[test]
fn what_is_over_leaves_one_attempt_and_one_standing() {
    let entries: Vec<_> = (1..=500).flat_map(|cycle| good("web1", cycle)).collect();
    let rows = file(&entries);
    // Twenty attempts of one host, its standing, and nothing of any cycle.
    assert_eq!(rows.len(), 21);
}

proptest! {
    /// Cycles of several hosts in any order and cut anywhere: every cycle that was begun is found, once, and a file made of
    /// all that is remembered reads the same.
    #[test]
    fn any_order_cut_anywhere_loses_no_host(order in prop::collection::vec(0usize..4, 0..40), cut in 0usize..40) {
        let names = ["a", "b", "c", "d"];
        let mut left: Vec<_> = (1..).zip(names).map(|(cycle, name)| good(name, cycle).into_iter()).collect();
        let mut entries: Vec<_> = order.iter().filter_map(|host| left[*host].next()).collect();
        entries.truncate(cut);
        let seen: Vec<_> = entries
            .iter()
            .filter_map(|entry| match entry { Entry::Began { host, .. } => Some(host.clone()), _ => None })
            .collect();
        let mut journal = reread(&entries);
        let mut again = Journal::new(HistoryLimits::STANDARD);
        for write in journal.all() {
            again.restore(write).unwrap();
        }
        for journal in [&mut journal, &mut again] {
            journal.cut_off(NOW);
            for host in &seen {
                prop_assert_eq!(journal.history().of(host).len(), 1);
                prop_assert!(journal.standings().any(|(name, _)| name == host));
            }
            prop_assert_eq!(journal.open_entries(), 0);
        }
        prop_assert_eq!(journal.all(), again.all());
    }
}
