//! How long is waited before something is tried again.

use std::time::Duration;

/// First delay, and the most it doubles to; each with a jitter of a fifth either way, but for a fixed period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    jitter: bool,
}

impl Backoff {
    /// Nobody answers: vault, archive, a bucket that is not there.
    pub const NO_ANSWER: Self = Self::new(Duration::from_secs(1), Duration::from_secs(30));
    /// The vault does not have it yet.
    pub const ABSENT: Self = Self::new(Duration::from_secs(2), Duration::from_mins(1));
    /// The vault refuses: ten minutes, exactly.
    pub const REFUSED: Self =
        Self { first: Duration::from_mins(10), cap: Duration::from_mins(10), jitter: false };
    /// The archive has another hash, or is refused.
    pub const WRONG_ARCHIVE: Self = Self::new(Duration::from_mins(1), Duration::from_mins(10));
    /// The engine is not there, or its copy of the plan is another.
    pub const ENGINE: Self = Self::new(Duration::from_millis(500), Duration::from_secs(10));

    const fn new(first: Duration, cap: Duration) -> Self {
        Self { first, cap, jitter: true }
    }

    /// The delay after this many failed tries (0 for the first).
    pub fn delay(&self, failed: u32, jitter: &mut Jitter) -> Duration {
        let plain = self.first.saturating_mul(2_u32.saturating_pow(failed.min(20))).min(self.cap);
        if self.jitter { plain.mul_f64(0.8 + 0.4 * jitter.next()) } else { plain }
    }
}

/// A stream of numbers that spreads retries; not for secrets. The same seed gives the same numbers.
#[derive(Debug, Clone)]
pub struct Jitter(u64);

impl Jitter {
    /// A stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From 0 to below 1 (SplitMix64).
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from(u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or_default()) / 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [(Backoff, u64, u64); 5] = [
        (Backoff::NO_ANSWER, 1_000, 30_000),
        (Backoff::ABSENT, 2_000, 60_000),
        (Backoff::REFUSED, 600_000, 600_000),
        (Backoff::WRONG_ARCHIVE, 60_000, 600_000),
        (Backoff::ENGINE, 500, 10_000),
    ];

    proptest! {
        #[test]
        fn delays_double_to_their_cap_with_a_fifth_of_jitter(failed in 0..200_u32, seed in any::<u64>()) {
            for (backoff, first, cap) in ALL {
                let plain = Duration::from_millis(first.saturating_mul(2_u64.saturating_pow(failed)).min(cap));
                let delay = backoff.delay(failed, &mut Jitter::new(seed));
                prop_assert!(delay >= plain.mul_f64(0.799) && delay <= plain.mul_f64(1.201), "{:?} {:?}", backoff, delay);
            }
        }
    }

    #[test]
    fn ten_minutes_are_ten_minutes() {
        assert_eq!(Backoff::REFUSED.delay(0, &mut Jitter::new(7)), Duration::from_mins(10));
        assert_eq!(Backoff::REFUSED.delay(9, &mut Jitter::new(7)), Duration::from_mins(10));
    }

    #[test]
    fn jitter_is_spread() {
        let mut jitter = Jitter::new(1);
        let numbers: Vec<f64> = (0..1_000).map(|_| jitter.next()).collect();
        let mean = numbers.iter().sum::<f64>() / 1_000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
    }
}
