use std::time::{Duration, Instant};

use super::plan::{Ask, ElectionPlan, Fault, Input, Step, Wait};
use super::{ElectionState, KnownLeader, wait_for};

struct Bench {
    plan: ElectionPlan,
    now: Instant,
}

impl Bench {
    /// An instance that has looked at a bucket with values that live a minute, and is about to write.
    fn candidate() -> Self {
        let mut bench = Self { plan: ElectionPlan::new(), now: Instant::now() };
        assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Open));
        assert_eq!(bench.feed(Input::Opened(Ok(Duration::from_mins(1)))).ask, Some(Ask::Write { after: 0 }));
        bench
    }

    fn leader() -> Self {
        let mut bench = Self::candidate();
        bench.feed(Input::Written(Ok(7)));
        assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Write { after: 7 }));
        bench.feed(Input::Written(Ok(8)));
        assert_eq!(bench.feed(Input::Due).lead, Some(true));
        bench
    }

    fn feed(&mut self, input: Input) -> Step {
        let step = self.plan.handle(input, self.now);
        assert!(step.ask.is_some() != step.wake.is_some(), "either ask or wait: {step:?}");
        step
    }

    fn fail(&mut self, fault: Fault) -> Step {
        self.feed(Input::Written(Err(fault)))
    }
}

fn timeout() -> Fault {
    Fault::Other("no answer within 5s".to_owned())
}

#[test]
fn one_write_is_not_yet_leadership_and_two_are_after_a_moment() {
    let mut bench = Bench::candidate();
    let first = bench.feed(Input::Written(Ok(7)));
    assert_eq!((first.lead, first.wake), (None, Some(Wait::Table(0))));
    assert_eq!(bench.plan.state(), ElectionState::Winning);
    bench.feed(Input::Due);
    let second = bench.feed(Input::Written(Ok(8)));
    assert_eq!((second.lead, second.wake), (None, Some(Wait::Settle)));
    assert!(!bench.plan.leads());
    let third = bench.feed(Input::Due);
    assert_eq!(third.lead, Some(true));
    assert!(bench.plan.leads());
}

#[test]
fn a_leader_writes_on_from_its_own_last_write() {
    let mut bench = Bench::leader();
    for seq in 8..12 {
        assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Write { after: seq }));
        let step = bench.feed(Input::Written(Ok(seq + 1)));
        assert_eq!((step.lead, step.wake), (None, Some(Wait::Table(0))));
    }
}

#[test]
fn any_failed_write_ends_leadership_at_once() {
    for fault in [Fault::Conflict, timeout(), Fault::NoBucket("no bucket B".to_owned())] {
        let mut bench = Bench::leader();
        bench.feed(Input::Due);
        assert_eq!(bench.fail(fault.clone()).lead, Some(false), "{fault:?}");
        assert!(!bench.plan.leads());
    }
}

#[test]
fn after_a_conflict_a_lost_leader_is_an_ordinary_candidate() {
    let mut bench = Bench::leader();
    bench.feed(Input::Due);
    bench.fail(Fault::Conflict);
    assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Write { after: 0 }));
}

#[test]
fn after_a_timeout_a_lost_leader_goes_on_from_its_own_write_but_wins_anew() {
    let mut bench = Bench::leader();
    bench.feed(Input::Due);
    bench.fail(timeout());
    assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Write { after: 8 }));
    assert_eq!(bench.feed(Input::Written(Ok(9))).lead, None, "one write is not enough again");
    let mut bench = Bench::leader();
    bench.feed(Input::Due);
    bench.fail(timeout());
    bench.feed(Input::Due);
    bench.fail(Fault::Conflict);
    assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Write { after: 0 }), "somebody else was faster");
}

#[test]
fn candidates_wait_longer_and_longer() {
    let mut bench = Bench::candidate();
    for tries in 1..=50 {
        assert_eq!(bench.fail(Fault::Conflict).wake, Some(Wait::Table(tries)));
        bench.feed(Input::Due);
    }
    assert_eq!(bench.plan.campaigns(), 51);
    assert_eq!(bench.plan.trouble(), None, "that somebody else leads is no trouble");
}

#[test]
fn a_bucket_that_is_missing_is_named_and_looked_for_again() {
    let mut bench = Bench { plan: ElectionPlan::new(), now: Instant::now() };
    bench.feed(Input::Due);
    bench.feed(Input::Opened(Err(Fault::NoBucket("no bucket CHORIA_LEADER_ELECTION".to_owned()))));
    assert!(bench.plan.trouble().is_some_and(|trouble| trouble.contains("CHORIA_LEADER_ELECTION")));
    assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Open));
    bench.feed(Input::Opened(Ok(Duration::from_mins(1))));
    assert_eq!(bench.plan.trouble(), None);
}

#[test]
fn a_bucket_that_is_away_for_a_moment_does_not_cost_the_key() {
    let mut bench = Bench::leader();
    bench.feed(Input::Due);
    bench.fail(Fault::NoBucket("no bucket B".to_owned()));
    bench.feed(Input::Due);
    let step = bench.feed(Input::Opened(Ok(Duration::from_mins(1))));
    assert_eq!(step.ask, Some(Ask::Write { after: 8 }));
}

#[test]
fn a_leader_that_was_held_up_past_its_lease_stops_before_it_writes() {
    let mut bench = Bench::leader();
    bench.now += Duration::from_secs(44);
    assert_eq!(bench.feed(Input::Due).lead, None, "still within three quarters of the minute");
    let mut bench = Bench::leader();
    bench.now += Duration::from_secs(45);
    let step = bench.feed(Input::Due);
    assert_eq!((step.lead, step.ask), (Some(false), None));
}

#[test]
fn an_answer_that_was_read_late_counts_from_when_it_was_asked_for() {
    let mut bench = Bench::leader();
    bench.feed(Input::Due);
    let asked = bench.now;
    bench.now += Duration::from_mins(2);
    let step = bench.feed(Input::Written(Ok(9)));
    assert_eq!(step.lead, Some(false), "the key has expired since, whatever this old answer says");
    assert!(bench.plan.holds_until().is_none_or(|until| until <= asked + Duration::from_secs(45)));
}

#[test]
fn a_bucket_whose_values_live_for_ever_elects_nobody() {
    for lives in [Duration::ZERO, Duration::from_hours(2)] {
        let mut bench = Bench { plan: ElectionPlan::new(), now: Instant::now() };
        bench.feed(Input::Due);
        assert_eq!(bench.feed(Input::Opened(Ok(lives))).ask, None);
        assert!(bench.plan.trouble().is_some_and(|trouble| trouble.contains("values of the bucket live")));
    }
}

#[test]
fn waits_are_the_peers() {
    const MIDDLE: u32 = u32::MAX / 2;
    assert_eq!(wait_for(Wait::Settle, MIDDLE).as_millis(), 200);
    assert_eq!(wait_for(Wait::Table(0), MIDDLE).as_millis(), 499);
    assert_eq!(wait_for(Wait::Table(0), u32::MAX).as_millis(), 750);
    assert_eq!(wait_for(Wait::Table(4), MIDDLE).as_millis(), 1_999);
}

#[test]
fn a_candidate_asks_every_five_seconds_at_the_longest() {
    assert_eq!(wait_for(Wait::Table(1000), u32::MAX).as_millis(), 7_500);
}

#[test]
fn a_lead_that_is_offered_is_taken_up_from_the_write_that_was_named() {
    let mut bench = Bench::candidate();
    bench.fail(Fault::Conflict);
    assert!(bench.plan.offer(41), "nothing is under way, so now");
    assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Write { after: 41 }));
    bench.feed(Input::Written(Ok(42)));
    assert_eq!(bench.plan.state(), ElectionState::Winning, "two writes are needed all the same");
}

#[test]
fn an_offer_that_comes_while_a_write_is_under_way_is_the_next_move_without_a_wait() {
    let mut bench = Bench::candidate();
    bench.plan.offer(41);
    assert_eq!(bench.fail(Fault::Conflict).wake, Some(Wait::None));
    assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Write { after: 41 }));
    assert_eq!(bench.fail(Fault::Conflict).wake, Some(Wait::Table(2)), "another candidate was faster");
    assert_eq!(bench.feed(Input::Due).ask, Some(Ask::Write { after: 0 }));
}

#[test]
fn a_leader_ignores_offers_and_gives_away_what_it_holds_once() {
    let mut bench = Bench::leader();
    assert!(!bench.plan.offer(41));
    assert_eq!(bench.plan.resign(), Some(8));
    assert_eq!((bench.plan.resign(), bench.plan.leads()), (None, false));
    assert_eq!(Bench::candidate().plan.resign(), None);
}

#[test]
fn a_key_that_outlives_its_leader_is_said_to() {
    let mut bench = Bench::candidate();
    let mut fail_after = |seconds| {
        bench.now += Duration::from_secs(seconds);
        bench.fail(Fault::Conflict);
        bench.plan.trouble().map(str::to_owned)
    };
    assert_eq!(fail_after(0), None);
    assert_eq!(fail_after(90), None, "a minute of life and half a minute of margin");
    assert!(fail_after(1).is_some_and(|said| said.contains("nobody was heard leading for 91 s")));
    bench.plan.hear(bench.now);
    bench.fail(Fault::Conflict);
    assert_eq!(bench.plan.trouble(), None);
}

#[test]
fn a_leader_is_known_since_it_was_first_heard_and_for_as_long_as_its_key_lives() {
    let (start, lives) = (tokio::time::Instant::now(), Duration::from_mins(1));
    let after = |seconds| start + Duration::from_secs(seconds);
    let first = KnownLeader::heard(None, "p1", false, lives, start);
    let later = KnownLeader::heard(Some(&first), "p1", false, lives, after(50));
    assert_eq!((later.since, later.heard), (start, after(50)));
    assert!(later.is_current(after(109)) && !later.is_current(after(110)));
    assert_eq!(KnownLeader::heard(Some(&later), "p1", false, lives, after(110)).since, after(110));
    assert_eq!(KnownLeader::heard(Some(&later), "p2", false, lives, after(51)).since, after(51));
}
