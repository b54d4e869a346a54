//! The roster's rules, one test a promise. Time is counted in seconds from the start.

use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;
use zeroize::Zeroizing;

use super::retry::RetryPolicy;
use super::roster::Roster;
use super::terms::{Noticed, Passed, RosterSettings, Sighting, Verdict};
use crate::host::{Ending, Material, Resume};

const MINUTE: Duration = Duration::from_mins(1);

struct Bench {
    roster: Roster,
    start: Instant,
}

fn settings() -> RosterSettings {
    RosterSettings {
        queue: 10,
        in_flight: 2,
        silent: 3,
        interval: MINUTE,
        hold: MINUTE,
        busy: 2 * MINUTE,
        retry: RetryPolicy::new(MINUTE, 15 * MINUTE, None).unwrap(),
    }
}

fn id(name: &str) -> Identity {
    Identity::parse(name).unwrap()
}

/// What a cycle that may have configured its host leaves undone.
fn configure() -> Resume {
    Resume::Configure(Material::new(Zeroizing::new("{}".to_owned())))
}

fn failed() -> Ending {
    Ending::Failed { cause: "helper", error: "it failed".into() }
}

impl Bench {
    fn new(settings: RosterSettings) -> Self {
        Self { roster: Roster::new(settings), start: Instant::now() }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }

    fn answered(&mut self, host: &str, seconds: u64) -> Noticed {
        let now = self.at(seconds);
        self.roster.notice(&id(host), Sighting::Answered, now, 0.5)
    }

    /// A startup event with this id, sent at `stamp` and seen at `seconds`.
    fn started(&mut self, host: &str, event: u64, stamp: i64, seconds: u64) -> Noticed {
        let now = self.at(seconds);
        let sighting = Sighting::Started { event, stamp, now: i64::try_from(seconds).unwrap() };
        self.roster.notice(&id(host), sighting, now, 0.5)
    }

    fn admit(&mut self, seconds: u64) -> Option<(String, u64)> {
        let now = self.at(seconds);
        self.roster.admit(now).map(|admission| (admission.identity.to_string(), admission.cycle))
    }

    fn finish(&mut self, cycle: u64, ending: Ending, seconds: u64) -> Verdict {
        let now = self.at(seconds);
        self.roster.finish(cycle, ending, now, 0.5)
    }

    fn pass(&mut self, seconds: u64) -> Vec<Passed> {
        let now = self.at(seconds);
        self.roster.pass(now, 1000)
    }

    /// Takes `host` from its first sighting to `ending`.
    fn run(&mut self, host: &str, ending: Ending, seconds: u64) -> Verdict {
        self.answered(host, seconds);
        let (_, cycle) = self.admit(seconds).expect("admitted");
        self.finish(cycle, ending, seconds)
    }

    fn state(&self, host: &str) -> &'static str {
        self.roster.get(&id(host)).map_or("gone", |entry| entry.state.name())
    }
}

fn bench() -> Bench {
    Bench::new(settings())
}

#[test]
fn a_host_seen_many_times_is_queued_once() {
    let mut b = bench();
    assert_eq!(b.answered("a", 0), Noticed::Queued);
    assert_eq!(b.answered("a", 1), Noticed::Known);
    assert_eq!(b.started("a", 7, 1, 1), Noticed::Known);
    assert_eq!(b.roster.counts().waiting, 1);
    assert!(b.admit(2).is_some());
    assert_eq!(b.admit(2), None);
}

#[test]
fn no_more_than_in_flight_are_admitted_and_a_finished_one_makes_room() {
    let mut b = bench();
    for host in ["a", "b", "c"] {
        b.answered(host, 0);
    }
    let (_, first) = b.admit(0).unwrap();
    assert!(b.admit(0).is_some());
    assert_eq!(b.admit(0), None);
    b.finish(first, Ending::Provisioned, 1);
    assert_eq!(b.admit(1).unwrap().0, "c");
}

#[test]
fn a_host_that_a_full_queue_turned_away_is_taken_at_its_next_sighting() {
    let mut b = Bench::new(RosterSettings { queue: 1, ..settings() });
    b.answered("a", 0);
    assert_eq!(b.answered("b", 0), Noticed::QueueFull);
    assert_eq!(b.state("b"), "known");
    b.admit(0);
    assert_eq!(b.answered("b", 60), Noticed::Queued);
    assert_eq!(b.roster.counts().known, 0);
}

#[test]
fn silent_hosts_give_their_place_to_others_up_to_a_bound() {
    let mut b = bench();
    for host in ["a", "b", "c", "d", "e", "f"] {
        b.answered(host, 0);
    }
    let silent: Vec<_> = (0..2).map(|_| b.admit(0).unwrap().1).collect();
    for cycle in silent {
        b.roster.went_silent(cycle);
    }
    let more: Vec<_> = (0..2).map(|_| b.admit(2).unwrap().1).collect();
    assert_eq!(b.admit(2), None);
    for cycle in &more {
        b.roster.went_silent(*cycle);
    }
    // Three places for the silent are taken: one of the two keeps its own.
    assert_eq!(b.roster.counts().silent, 3);
    assert!(b.admit(4).is_some());
    assert_eq!(b.admit(4), None);
    b.roster.answered(more[0]);
    assert_eq!(b.roster.counts().silent, 2);
}

#[test]
fn a_host_in_its_restart_delay_is_not_taken_twice() {
    let mut b = bench();
    assert!(matches!(b.run("a", Ending::Provisioned, 0), Verdict::Held { .. }));
    assert_eq!(b.answered("a", 2), Noticed::Known);
    assert_eq!(b.state("a"), "held");
}

#[test]
fn replayed_startup_events_cause_no_second_provisioning() {
    let mut b = bench();
    b.started("a", 7, 0, 0);
    let (_, cycle) = b.admit(0).unwrap();
    b.finish(cycle, Ending::Provisioned, 1);
    for seconds in [2, 30, 61, 100] {
        b.pass(seconds);
        assert_eq!(b.started("a", 7, 0, seconds), Noticed::Replayed, "after {seconds} s");
    }
    // Long after the roster has forgotten the host, the event's age gives it away.
    b.pass(1000);
    assert_eq!(b.state("a"), "gone");
    assert_eq!(b.started("a", 7, 0, 1000), Noticed::Replayed);
    assert_eq!(b.roster.counts().waiting, 0);
}

#[test]
fn a_provisioned_host_that_starts_in_provisioning_mode_again_is_a_failure_of_its_cycle() {
    let mut b = bench();
    b.started("a", 7, 0, 0);
    let (_, cycle) = b.admit(0).unwrap();
    b.finish(cycle, Ending::Provisioned, 1);
    let came_back = Noticed::CameBack { attempt: 1, retry_in: Some(MINUTE) };
    assert_eq!(b.started("a", 8, 4, 4), came_back);
    assert_eq!(b.roster.get(&id("a")).unwrap().failure.as_ref().unwrap().cause, "came_back");
    assert_eq!(b.state("a"), "cooling");
}

#[test]
fn a_host_that_still_answers_discovery_long_after_its_restart_has_not_restarted() {
    let mut b = bench();
    b.run("a", Ending::Provisioned, 0);
    assert!(matches!(b.answered("a", 20), Noticed::CameBack { .. }));
}

#[test]
fn a_server_seen_after_its_restart_is_confirmed_once() {
    let mut b = bench();
    b.run("a", Ending::Provisioned, 0);
    let now = b.at(3);
    assert!(b.roster.confirm(&id("a"), now).is_some());
    assert_eq!(b.roster.confirm(&id("a"), now), None);
    assert_eq!(b.pass(61), [Passed::Released(id("a"))]);
}

#[test]
fn a_server_not_seen_again_is_unconfirmed() {
    let mut b = bench();
    b.run("a", Ending::Provisioned, 0);
    assert_eq!(b.pass(61), [Passed::Unconfirmed(id("a"))]);
    assert_eq!(b.roster.counts().held, 0);
}

#[test]
fn a_lost_restart_reply_is_made_good_by_the_servers_own_event() {
    let mut b = bench();
    b.run("a", Ending::Failed { cause: "restart", error: "no reply".into() }, 0);
    let now = b.at(5);
    assert!(b.roster.confirm(&id("a"), now).is_some());
    assert_eq!(b.state("a"), "held");
    assert_eq!(b.roster.get(&id("a")).unwrap().failures, 0);
}

#[test]
fn failures_wait_longer_each_time_and_success_forgets_them() {
    let mut b = Bench::new(RosterSettings { interval: 20 * MINUTE, ..settings() });
    let mut now = 0;
    for expected in [60, 120, 240, 480, 900, 900] {
        b.answered("a", now);
        b.pass(now);
        let (_, cycle) = b.admit(now).expect("its turn");
        let Verdict::Retry { retry_in: Some(wait), .. } = b.finish(cycle, failed(), now) else {
            panic!("no retry")
        };
        assert_eq!(wait.as_secs(), expected);
        assert_eq!(b.answered("a", now + 1), Noticed::Known, "cooling");
        now += expected;
    }
    b.answered("a", now);
    b.pass(now);
    let (_, cycle) = b.admit(now).unwrap();
    b.finish(cycle, Ending::Provisioned, now);
    assert_eq!(b.roster.get(&id("a")).unwrap().failures, 0);
}

#[test]
fn given_up_a_host_is_left_alone_until_it_starts_anew() {
    let retry = RetryPolicy::new(MINUTE, MINUTE, Some(Duration::ZERO)).unwrap();
    let mut b = Bench::new(RosterSettings { retry, ..settings() });
    assert_eq!(b.run("a", failed(), 0), Verdict::Retry { attempt: 1, retry_in: None });
    assert_eq!(b.answered("a", 300), Noticed::Known);
    assert_eq!(b.roster.counts().gave_up, 1);
    assert_eq!(b.started("a", 9, 400, 400), Noticed::Queued);
}

#[test]
fn a_deferred_host_is_asked_about_again_every_interval() {
    let mut b = bench();
    for round in 0..4 {
        let now = round * 60;
        b.answered("a", now);
        b.pass(now);
        let (_, cycle) = b.admit(now).unwrap();
        let verdict = b.finish(cycle, Ending::Deferred { msg: "not yet".into() }, now);
        assert!(matches!(verdict, Verdict::Retry { retry_in: Some(MINUTE), .. }), "{verdict:?}");
    }
}

#[test]
fn a_busy_host_waits_past_the_window_of_its_lock() {
    let mut b = bench();
    let Verdict::Retry { retry_in: Some(wait), .. } = b.run("a", Ending::Busy { kept: None }, 0) else {
        panic!()
    };
    assert!(wait > 2 * MINUTE, "{wait:?}");
}

#[test]
fn hosts_that_vanish_age_out_after_two_intervals() {
    let mut b = bench();
    b.run("a", failed(), 0);
    assert_eq!(b.pass(60), [Passed::Requeued(id("a"))]);
    assert_eq!(b.admit(120), None, "not seen for two intervals");
    assert_eq!(b.pass(121), [Passed::AgedOut(id("a"))]);
    assert_eq!(b.state("a"), "gone");
}

#[test]
fn an_interrupted_cycle_costs_no_attempt() {
    let mut b = bench();
    assert_eq!(b.run("a", Ending::Interrupted, 0), Verdict::Requeued);
    let now = b.at(1);
    assert_eq!(b.roster.admit(now).unwrap().attempt, 1);
}

#[test]
fn a_restarted_keeper_finds_its_hosts_in_flight_waiting() {
    let mut b = bench();
    b.answered("a", 0);
    let (_, cycle) = b.admit(0).unwrap();
    b.roster.went_silent(cycle);
    let now = b.at(1);
    assert_eq!(b.roster.recover(now).len(), 1);
    assert_eq!(b.finish(cycle, Ending::Provisioned, 1), Verdict::Unknown);
    assert_eq!(b.roster.counts().silent, 0);
    assert_eq!(b.admit(1).unwrap().0, "a");
}

#[test]
fn a_restarted_keeper_leaves_a_configured_host_time_to_restart() {
    let mut b = bench();
    b.answered("a", 0);
    let (_, cycle) = b.admit(0).unwrap();
    assert!(b.roster.commit(cycle, configure()));
    let now = b.at(1);
    b.roster.recover(now);
    assert_eq!(b.admit(2), None);
    assert_eq!(b.state("a"), "cooling");
    let now = b.at(4);
    assert!(b.roster.confirm(&id("a"), now).is_some());
}

#[test]
fn a_cycle_that_was_replaced_may_not_configure_its_host() {
    let mut b = bench();
    b.answered("a", 0);
    let (_, old) = b.admit(0).unwrap();
    let now = b.at(1);
    b.roster.recover(now);
    let (_, new) = b.admit(1).unwrap();
    assert!(!b.roster.commit(old, configure()));
    assert!(b.roster.commit(new, configure()));
}

#[test]
fn a_configured_host_whose_actor_ended_is_left_time_to_restart() {
    let mut b = bench();
    b.answered("a", 0);
    let (_, cycle) = b.admit(0).unwrap();
    assert!(b.roster.commit(cycle, configure()));
    b.finish(cycle, Ending::Failed { cause: "actor", error: "panicked".into() }, 1);
    assert_eq!(b.state("a"), "cooling");
    let now = b.at(4);
    assert!(b.roster.confirm(&id("a"), now).is_some());
    assert_eq!(b.state("a"), "held");
}

#[test]
fn an_updating_host_is_taken_as_soon_as_it_starts_again() {
    let mut b = bench();
    b.run("a", Ending::Updating, 0);
    assert_eq!(b.answered("a", 1), Noticed::Known);
    assert_eq!(b.started("a", 9, 3, 3), Noticed::Queued);
}

#[test]
fn newcomers_go_first_but_retries_get_their_turn() {
    let mut b = Bench::new(RosterSettings { in_flight: 100, queue: 100, ..settings() });
    b.run("again", Ending::Interrupted, 0);
    for n in 0..6 {
        b.answered(&format!("new{n}"), 0);
    }
    let order: Vec<_> = std::iter::from_fn(|| b.admit(0)).map(|(host, _)| host).collect();
    assert_eq!(order.iter().position(|host| host == "again"), Some(3), "{order:?}");
    assert_eq!(order.len(), 7);
}

#[test]
fn a_lone_newcomer_waits_for_those_before_it_and_for_nobody_else() {
    let mut b = Bench::new(RosterSettings { in_flight: 5000, queue: 5000, ..settings() });
    for n in 0..100 {
        b.run(&format!("again{n}"), Ending::Interrupted, 0);
    }
    for n in 0..1000 {
        b.answered(&format!("crowd{n}"), 0);
    }
    b.answered("lone", 1);
    for n in 0..1000 {
        b.answered(&format!("later{n}"), 2);
    }
    let order: Vec<_> = std::iter::from_fn(|| b.admit(3)).map(|(host, _)| host).collect();
    let before = order.iter().take_while(|host| *host != "lone");
    let (crowd, others): (Vec<_>, Vec<_>) = before.partition(|host| host.starts_with("crowd"));
    assert_eq!(crowd.len(), 1000);
    // Of five, one may be a retry.
    assert!(others.iter().all(|host| host.starts_with("again")) && others.len() <= 250, "{}", others.len());
    assert_eq!(order.len(), 2101);
}

#[test]
fn counts_return_to_zero_when_everything_is_over() {
    let mut b = Bench::new(RosterSettings { in_flight: 100, queue: 100, ..settings() });
    for (n, ending) in [
        Ending::Provisioned,
        failed(),
        Ending::ShutDown { msg: String::new() },
        Ending::AlreadyServing,
        Ending::Busy { kept: None },
    ]
    .into_iter()
    .enumerate()
    {
        b.run(&format!("h{n}"), ending, 0);
    }
    for seconds in [60, 130, 200, 400, 800] {
        b.pass(seconds);
        if let Some((_, cycle)) = b.admit(seconds) {
            b.finish(cycle, Ending::Provisioned, seconds);
        }
        b.pass(seconds);
    }
    assert_eq!(b.roster.counts(), super::Counts::default());
    assert_eq!(b.roster.entries().count(), 0);
}
