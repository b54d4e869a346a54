//! What the roster makes of what providers did: cut off after every entry, and at every end of a cycle. Times are seconds; the
//! restart is at 1,000.

use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::provider::{Invocation, Members};
use zeroize::Zeroizing;

use super::retry::RetryPolicy;
use super::roster::{Clocks, Roster};
use super::terms::{Noticed, RosterSettings, Sighting, Verdict};
use super::view::Forgot;
use crate::host::{Ending, Material, Resume, STEP_UNKNOWN};
use crate::journal::{Began, Entry, HistoryLimits, Intent, Journal, Restored, Stand, Standing};
use crate::steps::{Ledger, Record};

const MINUTE: Duration = Duration::from_mins(1);
const RESTART_MS: i64 = 1_000_000;

fn id() -> Identity {
    Identity::parse("web1").unwrap()
}

fn roster() -> Roster {
    roster_that_gives_up(None)
}

fn roster_that_gives_up(after: Option<Duration>) -> Roster {
    let retry = RetryPolicy::new(MINUTE, 15 * MINUTE, after).unwrap();
    Roster::new(RosterSettings {
        queue: 10,
        in_flight: 2,
        silent: 3,
        interval: MINUTE,
        hold: MINUTE,
        busy: 2 * MINUTE,
        retry,
    })
}

fn began() -> Record {
    Record::Began { run: "r".into(), scope: Some(Members::new()) }
}

fn sent(step: &str) -> Record {
    let (provider, action, key) = ("p".into(), "make".into(), format!("r/{step}"));
    Record::Sent {
        step: step.into(),
        provider,
        action,
        key,
        attempt: 1,
        at_ms: 0,
        attrs: Some(Members::new()),
    }
}

fn done(step: &str) -> Record {
    let undo = vec![Invocation { action: "drop".into(), attrs: Members::new() }];
    Record::Ok { step: step.into(), ms: 1, outputs: Some(Members::new()), undo: Some(undo) }
}

fn standing(stand: Stand) -> Standing {
    Standing {
        stand,
        failures: 0,
        lost: 0,
        failing_since_ms: None,
        failure: None,
        first_seen_ms: 900_000,
        last_seen_ms: 995_000,
        newest_event: None,
        unfinished: None,
    }
}

/// What happens in a cycle that does steps, is configured, does another and fails there.
enum Happens {
    Cycle(Box<Entry>),
    Step(Record),
}

fn story() -> Vec<Happens> {
    let began_entry = Began { cycle: 1, attempt: 1, at_ms: 990_000, standing: standing(Stand::Idle) };
    let intent = |step: &str| Intent { step: step.into(), at_ms: 995_000, steps: vec![], helper: None };
    vec![
        Happens::Cycle(Box::new(Entry::Began { host: id(), began: began_entry })),
        Happens::Step(began()),
        Happens::Step(sent("a")),
        Happens::Step(done("a")),
        Happens::Cycle(Box::new(Entry::Intended {
            cycle: 1,
            intent: intent("configure"),
            material: Some(vec![1]),
        })),
        Happens::Cycle(Box::new(Entry::Done { cycle: 1, step: "configure".into() })),
        Happens::Step(sent("b")),
        Happens::Step(Record::Failed {
            step: "b".into(),
            error: "no".into(),
            clean: true,
            undo: Some(vec![]),
        }),
        Happens::Step(Record::TakingBack { why: "step b failed".into() }),
        Happens::Step(Record::UndoSent { step: "a".into(), index: 0, attempt: 1 }),
        Happens::Step(Record::Undone { step: "a".into(), index: 0 }),
    ]
}

/// What the next cycle has to do when the instance ends after so many entries.
fn cut_after(entries: usize) -> Option<Resume> {
    let mut journal = Journal::new(HistoryLimits::STANDARD);
    let mut records = Vec::new();
    for happens in story().into_iter().take(entries) {
        match happens {
            Happens::Cycle(entry) => drop(journal.apply(*entry, RESTART_MS)),
            Happens::Step(record) => records.push(record),
        }
    }
    let (mut cut, _) = journal.cut_off(RESTART_MS);
    let standing = journal.standings().next().map(|(_, standing)| standing.clone());
    let mut roster = roster();
    let now = Instant::now() + Duration::from_secs(5_000);
    roster.restore(
        Restored {
            host: id(),
            standing: standing?,
            cut_off: cut.remove(&id()),
            material: Some(Zeroizing::new("{}".to_owned())),
            steps: (!records.is_empty()).then(|| Ledger::of(&records)),
        },
        Clocks { now, wall_ms: RESTART_MS },
    );
    roster.admit(now).unwrap().resume
}

#[test]
fn cut_off_after_every_entry_a_cycle_goes_on_or_is_taken_back() {
    let configure = || Some(Resume::Configure(Material::new(Zeroizing::new("{}".to_owned()))));
    let expected = [
        ("a cycle", None),
        ("its steps began", None),
        ("a step was sent", Some(Resume::TakeBack)),
        ("a step was done", Some(Resume::TakeBack)),
        ("configure is about to be sent", configure()),
        ("it is configured", Some(Resume::Restart { sent: false })),
        ("a step after that was sent", Some(Resume::Restart { sent: false })),
        ("it failed", Some(Resume::Restart { sent: false })),
        ("everything is taken back", Some(Resume::TakeBack)),
        ("an undo was sent", Some(Resume::TakeBack)),
        ("everything was taken back, and the cycle has not ended", Some(Resume::TakeBack)),
    ];
    for (entries, (what, resume)) in (1..).zip(expected) {
        assert_eq!(cut_after(entries), resume, "{what}");
    }
}

/// A host in a cycle for which a provider did something.
fn in_cycle() -> (Roster, Instant, u64) {
    in_cycle_of(roster())
}

fn in_cycle_of(mut roster: Roster) -> (Roster, Instant, u64) {
    let now = Instant::now() + Duration::from_secs(5_000);
    roster.notice(&id(), Sighting::Answered, now, 0.5);
    let cycle = roster.admit(now).unwrap().cycle;
    let log = roster.step_log(&id());
    log.give_to(cycle);
    for record in [began(), sent("a"), done("a")] {
        assert!(log.write(cycle, &record));
    }
    (roster, now, cycle)
}

fn failed(cause: &'static str) -> Ending {
    Ending::Failed { cause, error: "x".into() }
}

#[test]
fn whatever_ends_a_cycle_before_its_host_is_provisioned_is_taken_back_first() {
    for ending in
        [failed("configure"), Ending::Interrupted, Ending::Deferred { msg: String::new() }, failed("actor")]
    {
        let (mut roster, now, cycle) = in_cycle();
        roster.finish(cycle, ending.clone(), now, 0.5);
        assert!(roster.take_steps_over().is_empty(), "{ending:?}");
        let later = now + 2 * MINUTE;
        roster.notice(&id(), Sighting::Answered, later, 0.5);
        roster.pass(later, 10);
        let admission = roster.admit(later).unwrap();
        assert_eq!(admission.resume, Some(Resume::TakeBack), "{ending:?}");
        let log = roster.step_log(&id());
        log.give_to(admission.cycle);
        assert!(!log.write(cycle, &sent("b")), "the old cycle may write no more");
        for record in [Record::TakingBack { why: "x".into() }, Record::Undone { step: "a".into(), index: 0 }]
        {
            assert!(log.write(admission.cycle, &record));
        }
        assert_eq!(roster.finish(admission.cycle, Ending::TakenBack, later, 0.5), Verdict::Requeued);
        assert_eq!(roster.take_steps_over(), [id()]);
        assert_eq!(roster.admit(later).unwrap().resume, None, "it begins anew");
    }
}

#[test]
fn a_provisioned_host_keeps_its_steps_until_it_is_seen_as_a_server_or_comes_back() {
    let (mut roster, now, cycle) = in_cycle();
    roster.finish(cycle, Ending::Provisioned, now, 0.5);
    assert!(roster.take_steps_over().is_empty());
    assert!(roster.confirm(&id(), now).is_some());
    assert_eq!(roster.take_steps_over(), [id()]);

    let (mut roster, now, cycle) = in_cycle();
    roster.finish(cycle, Ending::Provisioned, now, 0.5);
    roster.pass(now + MINUTE, 10);
    assert_eq!(roster.take_steps_over(), [id()], "not seen for long enough");

    let (mut roster, now, cycle) = in_cycle();
    roster.finish(cycle, Ending::Provisioned, now, 0.5);
    let back = roster.notice(&id(), Sighting::Answered, now + MINUTE / 2, 0.5);
    assert!(matches!(back, Noticed::CameBack { .. }));
    let later = now + 3 * MINUTE;
    roster.notice(&id(), Sighting::Answered, later, 0.5);
    roster.pass(later, 10);
    assert_eq!(roster.admit(later).unwrap().resume, Some(Resume::TakeBack));
}

#[test]
fn a_cycle_that_is_gone_on_with_keeps_its_steps() {
    let (mut roster, now, cycle) = in_cycle();
    assert!(roster.commit(cycle, Resume::Restart { sent: true }));
    roster.note_reply(cycle, true);
    roster.finish(cycle, failed("restart"), now, 0.5);
    let later = now + Duration::from_secs(119);
    roster.pass(later, 10);
    assert_eq!(roster.admit(later).unwrap().resume, Some(Resume::Restart { sent: true }));
    assert!(roster.take_steps_over().is_empty());
}

#[test]
fn a_host_that_has_gone_stays_until_its_steps_are_taken_back() {
    let (mut roster, now, cycle) = in_cycle();
    roster.finish(cycle, failed("configure"), now, 0.5);
    let later = now + 20 * MINUTE;
    roster.pass(later, 10);
    assert_eq!(roster.admit(later).unwrap().resume, Some(Resume::TakeBack));
}

#[test]
fn what_nobody_knows_waits_for_an_operator_who_decides_or_drops_it() {
    let unknown = || {
        let (mut roster, now, cycle) = in_cycle();
        assert!(roster.step_log(&id()).write(cycle, &sent("b")));
        let verdict = roster.finish(cycle, failed(STEP_UNKNOWN), now, 0.5);
        assert_eq!(verdict, Verdict::Retry { attempt: 1, retry_in: None });
        (roster, now)
    };
    let (mut roster, now) = unknown();
    let much_later = now + 600 * MINUTE;
    roster.pass(much_later, 10);
    assert!(roster.get(&id()).is_some(), "it does not age out");
    assert!(roster.admit(much_later).is_none());
    assert!(roster.decide_steps(&id()) && roster.retry(&id(), much_later));
    assert!(
        roster.step_log(&id()).look(|ledger| !ledger.left().iter().any(crate::steps::Left::asks_operator))
    );
    assert_eq!(roster.admit(much_later).unwrap().resume, Some(Resume::TakeBack));

    let (mut roster, _) = unknown();
    assert_eq!(roster.forget(&id()).0, Forgot::Forgotten);
    let behind = roster.take_left_behind();
    assert_eq!(behind[0].left.iter().map(|left| left.step.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(roster.take_steps_over(), [id()]);
}

#[test]
fn another_instances_success_leaves_what_was_done_here_and_names_it() {
    let (mut roster, now, cycle) = in_cycle();
    roster.finish(cycle, failed("configure"), now, 0.5);
    roster.give_away(&id());
    assert_eq!(roster.take_left_behind().len(), 1);
    assert_eq!(roster.take_steps_over(), [id()]);
}

#[test]
fn a_lost_lead_keeps_what_is_to_be_taken_back() {
    let (mut roster, now, cycle) = in_cycle();
    roster.finish(cycle, failed("configure"), now, 0.5);
    assert!(roster.forget_idle(now).is_empty());
    let later = now + 5 * MINUTE;
    roster.pass(later, 10);
    assert_eq!(roster.admit(later).unwrap().resume, Some(Resume::TakeBack));
}

#[test]
fn a_host_of_which_nothing_else_is_remembered_is_taken_back_too() {
    let mut roster = roster();
    let now = Instant::now();
    roster.restore_provided(id(), Ledger::of(&[began(), sent("a"), done("a")]), now);
    assert_eq!(roster.admit(now).unwrap().resume, Some(Resume::TakeBack));
    let mut empty = self::roster();
    empty.restore_provided(id(), Ledger::of(&[began()]), now);
    assert_eq!((empty.take_steps_over(), empty.admit(now).is_none()), (vec![id()], true));
}

#[test]
fn those_of_whom_something_is_left_are_counted_until_it_is_over() {
    let counted = |roster: &Roster| (roster.counts().not_taken_back, roster.counts().undecided);
    for (cause, expected) in [("take_back", (1, 0)), (STEP_UNKNOWN, (1, 1))] {
        let mut roster = roster();
        let now = Instant::now() + Duration::from_secs(5_000);
        let mut ledger = Ledger::default();
        for record in [began(), sent("a")] {
            ledger.apply(&record);
        }
        roster.restore_provided(id(), ledger, now);
        assert_eq!(counted(&roster), (0, 0), "it is about to be taken back");
        let cycle = roster.admit_unfinished(now).unwrap().cycle;
        roster.finish(cycle, failed(cause), now, 0.5);
        assert_eq!(counted(&roster), expected, "{cause}");
        roster.forget(&id());
        assert_eq!(counted(&roster), (0, 0), "{cause}");
    }
}

/// A host that is given up while the reply to its configuration was lost.
fn given_up_unanswered() -> (Roster, Instant) {
    let (mut roster, now, cycle) = in_cycle_of(roster_that_gives_up(Some(Duration::ZERO)));
    let material = || Resume::Configure(Material::new(Zeroizing::new("{}".to_owned())));
    assert!(roster.commit(cycle, material()));
    roster.finish(cycle, failed("configure"), now, 0.5);
    assert_eq!(roster.get(&id()).unwrap().state.name(), "gave_up");
    assert_eq!(
        (roster.counts().not_taken_back, roster.take_steps_over()),
        (0, vec![]),
        "it may be configured"
    );
    (roster, now)
}

#[test]
fn given_up_while_the_reply_to_its_configuration_was_lost_a_host_goes_on_serves_or_is_taken_back() {
    let (mut roster, now) = given_up_unanswered();
    roster.retry(&id(), now);
    assert!(matches!(roster.admit_unfinished(now).unwrap().resume, Some(Resume::Configure(_))));
    assert!(roster.take_steps_over().is_empty());

    let (mut roster, now) = given_up_unanswered();
    assert!(roster.confirm(&id(), now).is_some());
    assert_eq!(roster.get(&id()).unwrap().state.name(), "held");
    assert_eq!(roster.take_steps_over(), [id()], "it serves: its steps are there to stay");

    let (mut roster, now) = given_up_unanswered();
    let later = now + 20 * MINUTE;
    roster.pass(later, 10);
    assert_eq!(roster.admit_unfinished(later).unwrap().resume, Some(Resume::TakeBack), "it has gone");
}
