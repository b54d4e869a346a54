//! What the roster makes of what the journal has found, one test a promise. Times are seconds; the restart is at 1,000.

use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;
use zeroize::Zeroizing;

use super::retry::RetryPolicy;
use super::roster::{Clocks, Roster};
use super::terms::{Admission, Noticed, Passed, RosterSettings, Sighting, Verdict};
use crate::host::{Ending, Material, Resume};
use crate::journal::{AttemptRecord, CutOff, Restored, Stand, Standing, StoredFailure, Unfinished};

const MINUTE: Duration = Duration::from_mins(1);
const RESTART: i64 = 1000;

fn id() -> Identity {
    Identity::parse("web1").unwrap()
}

fn standing(stand: Stand, failures: u32, unfinished: Option<Unfinished>) -> Standing {
    Standing {
        stand,
        failures,
        lost: 0,
        failing_since_ms: (failures > 0).then_some(900_000),
        failure: (failures > 0).then(|| StoredFailure {
            cause: "helper".into(),
            error: "it failed".into(),
            at_ms: 900_000,
            helper: None,
        }),
        first_seen_ms: 800_000,
        last_seen_ms: (RESTART - 5) * 1000,
        newest_event: Some((7, 5)),
        unfinished,
    }
}

fn cut_off(touched: Option<(&str, i64)>) -> CutOff {
    let attempt = AttemptRecord {
        attempt: 1,
        cycle: 3,
        began_ms: 990_000,
        took_ms: 0,
        ending: "lost".into(),
        cause: None,
        error: None,
        steps: vec![],
        helper: None,
    };
    CutOff { attempt, touched: touched.map(|(step, at)| (step.to_owned(), at * 1000)) }
}

struct Bench {
    roster: Roster,
    start: Instant,
}

impl Bench {
    fn restored(standing: Standing, cut_off: Option<CutOff>) -> Self {
        let retry = RetryPolicy::new(MINUTE, 15 * MINUTE, None).unwrap();
        let mut roster = Roster::new(RosterSettings {
            queue: 10,
            in_flight: 2,
            silent: 3,
            interval: MINUTE,
            hold: MINUTE,
            busy: 2 * MINUTE,
            retry,
        });
        // An instant that has a past.
        let start = Instant::now() + Duration::from_secs(5000);
        let material = Some(Zeroizing::new("{}".to_owned()));
        let clocks = Clocks { now: start, wall_ms: RESTART * 1000 };
        roster.count_cycles_from(4);
        roster.restore(Restored { host: id(), standing, cut_off, material, steps: None }, clocks);
        Self { roster, start }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }

    fn admit(&mut self, seconds: u64) -> Option<Admission> {
        self.roster.admit(self.at(seconds))
    }

    fn seen(&mut self, seconds: u64) -> Noticed {
        self.roster.notice(&id(), Sighting::Answered, self.at(seconds), 0.5)
    }

    fn pass(&mut self, seconds: u64) {
        self.roster.pass(self.at(seconds), 10);
    }

    fn state(&self) -> &'static str {
        self.roster.get(&id()).map_or("gone", |entry| entry.state.name())
    }
}

#[test]
fn a_cycle_that_had_changed_nothing_begins_anew_at_once() {
    let mut b = Bench::restored(standing(Stand::Idle, 2, None), Some(cut_off(None)));
    let admission = b.admit(0).unwrap();
    assert_eq!((admission.cycle, admission.attempt, admission.resume), (4, 3, None));
}

#[test]
fn a_configure_without_a_known_reply_is_sent_again() {
    let cut = cut_off(Some(("configure", RESTART - 3)));
    let mut b = Bench::restored(standing(Stand::Idle, 0, Some(Unfinished::Configure)), Some(cut));
    assert!(matches!(b.admit(0).unwrap().resume, Some(Resume::Configure(_))));
}

#[test]
fn a_configured_host_is_only_told_to_restart() {
    let cut = cut_off(Some(("configure", RESTART - 3)));
    let mut b = Bench::restored(standing(Stand::Idle, 0, Some(Unfinished::Restart)), Some(cut));
    assert_eq!(b.admit(0).unwrap().resume, Some(Resume::Restart { sent: false }));
}

#[test]
fn an_operators_pause_does_not_leave_a_host_between_configure_and_restart() {
    let mut b = Bench::restored(standing(Stand::Idle, 0, Some(Unfinished::Restart)), Some(cut_off(None)));
    let now = b.at(0);
    assert!(b.roster.admit_unfinished(now).is_some());
    let mut b = Bench::restored(standing(Stand::Idle, 0, None), Some(cut_off(None)));
    assert!(b.roster.admit_unfinished(now).is_none());
}

#[test]
fn a_wait_goes_on_and_the_attempts_count_on() {
    let stand = Stand::Cooling { since_ms: 990_000, until_ms: 1_100_000, began_ms: 980_000 };
    let mut b = Bench::restored(standing(stand, 2, None), None);
    assert_eq!(b.state(), "cooling");
    b.seen(90);
    b.pass(99);
    assert!(b.admit(99).is_none());
    b.pass(100);
    let admission = b.admit(100).unwrap();
    assert_eq!(admission.attempt, 3);
    // The third failure in a row waits twice as long as the second.
    let failed = Ending::Failed { cause: "helper", error: "again".into() };
    let Verdict::Retry { retry_in, .. } = b.roster.finish(admission.cycle, failed, b.at(100), 0.5) else {
        panic!("it is tried again")
    };
    assert_eq!(retry_in, Some(4 * MINUTE));
}

#[test]
fn a_wait_that_is_over_lets_discovery_look_first() {
    let stand = Stand::Cooling { since_ms: 10_000, until_ms: 70_000, began_ms: 5_000 };
    let mut gone = standing(stand, 1, None);
    gone.last_seen_ms = 60_000;
    let mut b = Bench::restored(gone.clone(), None);
    b.pass(10);
    assert_eq!(b.state(), "gone", "nobody has seen it since");
    let mut b = Bench::restored(gone, None);
    b.seen(3);
    b.pass(10);
    assert!(b.admit(10).is_some());
}

#[test]
fn a_host_that_was_given_up_stays_so_while_it_is_there() {
    let mut b = Bench::restored(standing(Stand::GaveUp { since_ms: 990_000 }, 9, None), None);
    assert_eq!(b.seen(1), Noticed::Known);
    assert_eq!((b.state(), b.roster.counts().gave_up), ("gave_up", 1));
    // It leaves once it has not been seen for the longest wait.
    b.pass(15 * 60);
    assert_eq!(b.state(), "gave_up");
    b.pass(15 * 60 + 1);
    assert_eq!(b.state(), "gone");
}

#[test]
fn a_hold_goes_on_and_a_host_that_comes_back_within_it_has_failed() {
    let held = |since: i64| Stand::Held {
        ending: "provisioned".into(),
        since_ms: since * 1000,
        began_ms: 980_000,
        confirmed: false,
    };
    let mut b = Bench::restored(standing(held(RESTART - 5), 0, None), None);
    assert_eq!(b.seen(1), Noticed::Known, "it is about to restart");
    assert!(matches!(b.seen(15), Noticed::CameBack { .. }));
    let mut b = Bench::restored(standing(held(RESTART - 70), 0, None), None);
    b.pass(0);
    assert_eq!(b.state(), "done");
}

#[test]
fn a_host_that_updates_itself_is_left_alone_for_a_while() {
    let mut b = Bench::restored(standing(Stand::Idle, 0, None), Some(cut_off(Some(("update", RESTART - 2)))));
    assert_eq!(b.state(), "held");
    assert!(b.admit(0).is_none());
    assert_eq!(b.seen(9), Noticed::Queued);
}

#[test]
fn what_is_remembered_is_restored_as_it_was() {
    let cooling = Stand::Cooling { since_ms: 990_000, until_ms: 1_100_000, began_ms: 980_000 };
    let held =
        Stand::Held { ending: "updating".into(), since_ms: 990_000, began_ms: 980_000, confirmed: false };
    for stand in [cooling, held, Stand::GaveUp { since_ms: 990_000 }, Stand::Idle] {
        let before = standing(stand, 2, None);
        let b = Bench::restored(before.clone(), None);
        let clocks = Clocks { now: b.start, wall_ms: RESTART * 1000 };
        assert_eq!(b.roster.standing(&id(), clocks), Some(before));
    }
}

/// A host whose cycle has committed, and how far.
fn committed(resume: Resume) -> (Bench, u64) {
    let mut b = Bench::restored(standing(Stand::Idle, 1, None), Some(cut_off(None)));
    let cycle = b.admit(0).unwrap().cycle;
    assert!(b.roster.commit(cycle, resume));
    (b, cycle)
}

fn configure() -> Resume {
    Resume::Configure(Material::new(Zeroizing::new("{}".to_owned())))
}

fn failed(cause: &'static str) -> Ending {
    Ending::Failed { cause, error: "no reply".into() }
}

/// What the next cycle makes good after a failure of this one.
#[track_caller]
fn check_next(resume: Resume, cause: &'static str, reply_lost: bool, expected: Option<&Resume>) {
    let (mut b, cycle) = committed(resume);
    b.roster.note_reply(cycle, reply_lost);
    b.roster.finish(cycle, failed(cause), b.at(1), 0.5);
    b.seen(115);
    b.pass(125);
    assert_eq!(b.admit(126).unwrap().resume.as_ref(), expected);
}

#[test]
fn a_lost_reply_to_configure_is_made_good_with_the_same() {
    check_next(configure(), "configure", true, Some(&configure()));
}

#[test]
fn a_refused_configure_begins_anew() {
    check_next(configure(), "configure", false, None);
}

#[test]
fn a_lost_reply_to_restart_does_not_configure_again() {
    let restart = Resume::Restart { sent: true };
    check_next(restart.clone(), "restart", true, Some(&restart));
}

#[test]
fn a_host_that_started_anew_in_provisioning_mode_begins_anew() {
    let (mut b, cycle) = committed(configure());
    b.roster.note_reply(cycle, true);
    b.roster.finish(cycle, failed("configure"), b.at(1), 0.5);
    let started = Sighting::Started { event: 8, stamp: 100, now: 100 };
    b.roster.notice(&id(), started, b.at(200), 0.5);
    assert_eq!(b.admit(201).unwrap().resume, None);
}

#[test]
fn a_cycle_whose_actor_is_gone_goes_on_where_it_was() {
    let (mut b, _) = committed(Resume::Restart { sent: true });
    b.roster.recover(b.at(1));
    b.seen(20);
    b.pass(40);
    assert_eq!(b.admit(41).unwrap().resume, Some(Resume::Restart { sent: true }));
}

#[test]
fn a_host_that_serves_while_it_is_asked_in_vain_is_provisioned() {
    let (mut b, cycle) = committed(Resume::Restart { sent: true });
    assert_eq!(b.roster.confirm(&id(), b.at(1)), None);
    b.roster.note_reply(cycle, true);
    assert!(matches!(b.roster.finish(cycle, failed("restart"), b.at(60), 0.5), Verdict::Held { .. }));
    assert_eq!(b.roster.get(&id()).unwrap().failures, 0);
}

#[test]
fn a_host_that_never_heard_its_restart_is_told_again_and_nothing_else() {
    let (mut b, cycle) = committed(Resume::Restart { sent: true });
    b.roster.note_reply(cycle, true);
    b.roster.finish(cycle, Ending::Provisioned, b.at(1), 0.5);
    assert_eq!(b.seen(10), Noticed::Known, "it may be about to restart");
    assert_eq!(b.seen(30), Noticed::Queued);
    assert_eq!(b.admit(31).unwrap().resume, Some(Resume::Restart { sent: true }));
}

#[test]
fn an_attempt_after_one_that_was_lost_counts_on_until_a_success() {
    let cut = Standing { lost: 2, ..standing(Stand::Idle, 1, None) };
    let mut b = Bench::restored(cut, Some(cut_off(None)));
    let admission = b.admit(1).unwrap();
    assert_eq!(admission.attempt, 4);
    // The keeper of the roster ends, and with it the cycle.
    assert_eq!(b.roster.recover(b.at(2)), [(admission.cycle, id())]);
    let again = b.admit(3).unwrap();
    assert_eq!((again.attempt, b.roster.get(&id()).unwrap().failures), (5, 1));
    let clocks = Clocks { now: b.at(3), wall_ms: RESTART * 1000 };
    assert_eq!(b.roster.standing(&id(), clocks).unwrap().lost, 3);
    b.roster.finish(again.cycle, Ending::Provisioned, b.at(4), 0.5);
    assert_eq!(b.roster.attempt_of(&id()), 1);
}

#[test]
fn a_host_that_may_be_configured_is_not_forgotten_while_it_cannot_be_seen() {
    let gone = |resume: Resume| {
        let (mut b, cycle) = committed(resume);
        b.roster.note_reply(cycle, true);
        b.roster.finish(cycle, failed("configure"), b.at(1), 0.5);
        for second in [125, 250, 375, 500] {
            b.pass(second);
        }
        b
    };
    let mut b = gone(configure());
    assert_eq!(b.state(), "done");
    assert_eq!(b.seen(700), Noticed::Queued);
    assert_eq!(b.admit(701).unwrap().resume, Some(configure()));
    let mut b = gone(Resume::Restart { sent: true });
    let passed = b.roster.pass(b.at(1000), 10);
    assert_eq!((passed, b.state()), (vec![Passed::AgedOut(id())], "gone"));
}

#[test]
fn a_host_that_may_be_configured_is_not_forgotten_in_the_queue_either() {
    let restart = Resume::Restart { sent: true };
    let mut b = Bench::restored(standing(Stand::Idle, 0, Some(Unfinished::Restarted)), Some(cut_off(None)));
    assert_eq!((b.admit(300).is_none(), b.state()), (true, "done"));
    b.seen(310);
    assert_eq!(b.admit(311).unwrap().resume, Some(restart));
}

#[test]
fn a_host_whose_hold_is_over_leaves_nothing_to_remember() {
    let mut b = Bench::restored(standing(Stand::Idle, 0, None), Some(cut_off(None)));
    let cycle = b.admit(1).unwrap().cycle;
    b.roster.finish(cycle, Ending::Provisioned, b.at(2), 0.5);
    b.roster.confirm(&id(), b.at(5)).unwrap();
    let clocks = Clocks { now: b.at(6), wall_ms: RESTART * 1000 };
    assert!(b.roster.standing(&id(), clocks).is_some());
    let passed = b.roster.pass(b.at(70), 10);
    assert_eq!(passed, [Passed::Released(id())]);
    assert_eq!(b.roster.standing(&id(), clocks), None);
}
