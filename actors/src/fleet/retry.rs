//! How long a host that failed waits for its next attempt.

use std::time::Duration;

/// The share of a delay by which it may vary either way.
const JITTER: f64 = 0.25;

/// A wrong retry setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RetryError {
    /// The first delay is zero.
    #[error("the first retry delay must be longer than zero")]
    ZeroFirst,
    /// The cap is below the first delay.
    #[error("the cap of {cap:?} is below the first retry delay of {first:?}")]
    CapBelowFirst {
        /// The first delay.
        first: Duration,
        /// The cap.
        cap: Duration,
    },
}

/// When a failed host is tried again: `first`, doubled with every further failure, never above `cap`, each delay
/// varied by a quarter either way so that a rack that failed together does not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    first: Duration,
    cap: Duration,
    give_up_after: Option<Duration>,
}

impl RetryPolicy {
    /// A policy; a host that has been failing for `give_up_after` is left alone, none means never.
    pub fn new(first: Duration, cap: Duration, give_up_after: Option<Duration>) -> Result<Self, RetryError> {
        if first.is_zero() {
            return Err(RetryError::ZeroFirst);
        }
        if cap < first {
            return Err(RetryError::CapBelowFirst { first, cap });
        }
        Ok(Self { first, cap, give_up_after })
    }

    /// The delay after the `failures`th failure in a row (1 is the first), `failing_for` after the first one; none when
    /// the host is given up. `luck` is a number in 0..1 that spreads the delay.
    pub fn delay(&self, failures: u32, failing_for: Duration, luck: f64) -> Option<Duration> {
        if self.give_up_after.is_some_and(|limit| failing_for >= limit) {
            return None;
        }
        let doublings = failures.saturating_sub(1).min(31);
        let base = self.first.saturating_mul(2u32.saturating_pow(doublings)).min(self.cap);
        Some(spread(base, luck).min(self.cap))
    }

    /// The first delay.
    pub const fn first(&self) -> Duration {
        self.first
    }

    /// The longest delay.
    pub const fn cap(&self) -> Duration {
        self.cap
    }
}

/// `base` varied by [`JITTER`] either way.
pub fn spread(base: Duration, luck: f64) -> Duration {
    let luck = if luck.is_finite() { luck.clamp(0.0, 1.0) } else { 0.5 };
    base.mul_f64(1.0 - JITTER + 2.0 * JITTER * luck)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_double_up_to_the_cap() {
        let policy = RetryPolicy::new(SECOND, 5 * SECOND, None).unwrap();
        let middle: Vec<_> =
            (1..=5).map(|n| policy.delay(n, Duration::ZERO, 0.5).unwrap().as_secs()).collect();
        assert_eq!(middle, [1, 2, 4, 5, 5]);
    }

    #[test]
    fn a_host_that_has_failed_for_long_enough_is_given_up() {
        let policy = RetryPolicy::new(SECOND, SECOND, Some(9 * SECOND)).unwrap();
        assert!(policy.delay(5, 8 * SECOND, 0.5).is_some());
        assert_eq!(policy.delay(5, 9 * SECOND, 0.5), None);
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(RetryPolicy::new(Duration::ZERO, SECOND, None), Err(RetryError::ZeroFirst));
        assert!(RetryPolicy::new(2 * SECOND, SECOND, None).is_err());
    }

    proptest! {
        #[test]
        fn every_delay_lies_between_three_quarters_of_first_and_the_cap(
            first in 1u64..100_000, extra in 0u64..1_000_000, failures in 0u32..u32::MAX, luck in -1.0f64..2.0,
        ) {
            let (first, cap) = (Duration::from_millis(first), Duration::from_millis(first + extra));
            let delay = RetryPolicy::new(first, cap, None).unwrap().delay(failures, Duration::MAX, luck).unwrap();
            prop_assert!(delay <= cap);
            prop_assert!(delay >= first.mul_f64(0.749));
        }
    }
}
