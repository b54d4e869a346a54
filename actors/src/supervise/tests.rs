//! The pure parts, as data; the actors are tested through handles in `actors/tests/supervise.rs`.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn policy(first_ms: u64, cap_ms: u64, jitter: f64) -> RestartPolicy {
    RestartPolicy::new(Duration::from_millis(first_ms), Duration::from_millis(cap_ms), jitter).unwrap()
}

/// A history of `endings` panics in a row, a millisecond of life each, and a life that began at the returned instant.
fn after(endings: u32, policy: &RestartPolicy) -> (History, Instant) {
    let mut now = Instant::now();
    let mut history = History::new();
    history.note_start(now);
    for _ in 0..endings {
        now += Duration::from_millis(1);
        history.note_end(ExitCause::Panicked, policy, now);
        history.note_start(now);
    }
    (history, now)
}

fn delay(decision: &Decision) -> Duration {
    match decision {
        Decision::RestartAfter(delay, _) => *delay,
        other => panic!("no restart: {other:?}"),
    }
}

/// Delay in ms of the restart after `endings` earlier endings in a row.
fn check_delay(policy: &RestartPolicy, endings: u32, random: f64, expected_ms: u64) {
    let (history, now) = after(endings, policy);
    let decision = policy.decide(ExitCause::Panicked, &history, now, random);
    assert_eq!(delay(&decision), Duration::from_millis(expected_ms), "{decision:?}");
}

#[test]
fn the_first_delay_is_the_first() {
    check_delay(&policy(100, 1000, 0.0), 0, 0.5, 100);
}

#[test]
fn delays_double() {
    check_delay(&policy(100, 1000, 0.0), 2, 0.5, 400);
}

#[test]
fn delays_are_capped() {
    check_delay(&policy(100, 1000, 0.0), 4, 0.5, 1000);
}

#[test]
fn a_very_long_streak_overflows_nothing() {
    check_delay(&policy(100, 1000, 0.0), 200, 0.5, 1000);
}

#[test]
fn jitter_shortens_by_the_given_fraction() {
    check_delay(&policy(100, 1000, 0.5), 0, 0.5, 75);
}

#[test]
fn at_once_means_no_delay_the_first_time() {
    check_delay(&policy(100, 1000, 0.0).at_once(), 0, 0.5, 0);
}

#[test]
fn at_once_falls_back_to_the_first_delay_the_second_time() {
    check_delay(&policy(100, 1000, 0.0).at_once(), 1, 0.5, 100);
}

#[test]
fn a_calm_life_ends_the_streak() {
    let policy = policy(100, 1000, 0.0);
    let (history, now) = after(4, &policy);
    let decision = policy.decide(ExitCause::Panicked, &history, now + Duration::from_mins(1), 0.0);
    assert_eq!(delay(&decision), Duration::from_millis(100));
}

#[test]
fn a_life_just_short_of_calm_does_not_end_the_streak() {
    let policy = policy(100, 1000, 0.0);
    let (history, now) = after(2, &policy);
    let decision = policy.decide(ExitCause::Panicked, &history, now + Duration::from_millis(59_999), 0.0);
    assert_eq!(delay(&decision), Duration::from_millis(400));
}

#[test]
fn gives_up_after_the_limit_and_not_before() {
    let policy = policy(1, 1, 0.0).give_up_after(3).unwrap();
    for (endings, gives_up) in [(2, false), (3, true)] {
        let (history, now) = after(endings, &policy);
        let decision = policy.decide(ExitCause::Stuck, &history, now, 0.0);
        assert_eq!(matches!(decision, Decision::GiveUp(_)), gives_up, "{endings}: {decision:?}");
    }
}

#[test]
fn a_stop_is_the_proper_end_only_where_the_policy_says_so() {
    let now = Instant::now();
    let retiring = policy(1, 1, 0.0).retire_on_stop();
    assert!(matches!(retiring.decide(ExitCause::Stopped, &History::new(), now, 0.0), Decision::Retire(_)));
    assert!(matches!(
        retiring.decide(ExitCause::Panicked, &History::new(), now, 0.0),
        Decision::RestartAfter(..)
    ));
    assert!(matches!(
        policy(1, 1, 0.0).decide(ExitCause::Stopped, &History::new(), now, 0.0),
        Decision::RestartAfter(..)
    ));
}

#[test]
fn the_sentence_names_cause_count_and_delay() {
    let policy = policy(100, 1000, 0.0);
    let (history, now) = after(1, &policy);
    let decision = policy.decide(ExitCause::Stuck, &history, now, 0.0);
    assert_eq!(decision.why(), "stuck, ending 2 in a row: restarting in 200 ms");
}

#[test]
fn endings_are_counted_by_cause() {
    let policy = policy(1, 1, 0.0);
    let (mut history, now) = after(2, &policy);
    history.note_end(ExitCause::Stuck, &policy, now);
    assert_eq!(ExitCause::ALL.map(|cause| history.count(cause)), [0, 2, 1, 0]);
    assert_eq!(history.endings(), 3);
}

fn check_refused(first_ms: u64, cap_ms: u64, jitter: f64, expected: PolicyError) {
    let refused = RestartPolicy::new(Duration::from_millis(first_ms), Duration::from_millis(cap_ms), jitter);
    assert_eq!(refused, Err(expected));
}

#[test]
fn a_policy_without_a_first_delay_is_refused() {
    check_refused(0, 10, 0.0, PolicyError::NoFirstDelay);
}

#[test]
fn a_cap_below_the_first_delay_is_refused() {
    check_refused(10, 9, 0.0, PolicyError::CapOutOfRange);
}

#[test]
fn a_cap_above_a_day_is_refused() {
    check_refused(10, 86_400_001, 0.0, PolicyError::CapOutOfRange);
}

#[test]
fn a_jitter_above_one_is_refused() {
    check_refused(10, 10, 1.01, PolicyError::JitterOutOfRange);
}

#[test]
fn a_jitter_that_is_no_number_is_refused() {
    check_refused(10, 10, f64::NAN, PolicyError::JitterOutOfRange);
}

#[test]
fn giving_up_before_the_first_restart_is_refused() {
    assert_eq!(policy(1, 1, 0.0).give_up_after(0), Err(PolicyError::GivesUpBeforeStart));
}

proptest! {
    #[test]
    fn every_delay_lies_within_its_bounds(
        first in 1u64..100_000,
        above in 0u64..10_000_000,
        jitter in 0.0f64..=1.0,
        endings in 0u32..80,
        random in prop_oneof![0.0f64..1.0, Just(f64::NAN), Just(-3.0), Just(7.0)],
        at_once: bool,
    ) {
        let cap = first + above;
        let mut policy = policy(first, cap, jitter);
        if at_once { policy = policy.at_once(); }
        let (history, now) = after(endings, &policy);
        let got = delay(&policy.decide(ExitCause::Panicked, &history, now, random));
        prop_assert!(got <= policy.cap());
        let waits = endings + u32::from(!at_once);
        if waits == 0 {
            prop_assert_eq!(got, Duration::ZERO);
        } else {
            let full = Duration::from_millis(first).saturating_mul(2u32.saturating_pow(waits - 1)).min(policy.cap());
            prop_assert!(got <= full);
            // One nanosecond of rounding.
            prop_assert!(got + Duration::from_nanos(1) >= full.mul_f64(1.0 - jitter));
        }
    }

    #[test]
    fn delays_never_shrink_within_a_streak(first in 1u64..1000, above in 0u64..100_000, endings in 0u32..80) {
        let policy = policy(first, first + above, 0.0);
        let at = |n| { let (history, now) = after(n, &policy); delay(&policy.decide(ExitCause::Failed, &history, now, 0.0)) };
        prop_assert!(at(endings) <= at(endings + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_declared_wait_excuses_until_its_limit_or_its_end() {
    let pulse = Pulse::new();
    assert!(!pulse.is_excused());
    pulse.excuse(Duration::from_mins(1));
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(pulse.is_excused());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(!pulse.is_excused());
    pulse.excuse(Duration::from_mins(1));
    pulse.resume();
    assert!(!pulse.is_excused());
}

#[test]
fn a_restart_pool_has_only_its_places() {
    let pool = RestartPool::new(2);
    let first = pool.try_take();
    let second = pool.try_take();
    assert!(first.is_some() && second.is_some() && pool.try_take().is_none());
    drop(first);
    assert!(pool.try_take().is_some());
}
