//! Wall-clock time as a value. This package never reads a clock: time arrives as an argument.

use std::time::Duration;

/// Whole milliseconds.
pub fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A moment of wall-clock time, in nanoseconds since the Unix epoch (protocol 2 sends exactly this number, protocol 1 and
/// tokens send whole seconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallClock {
    nanos: i64,
}

impl WallClock {
    /// The moment `nanos` nanoseconds after the Unix epoch.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// The moment `seconds` seconds after the Unix epoch; saturates beyond the year 2262.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self { nanos: seconds.saturating_mul(1_000_000_000) }
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn nanos(self) -> i64 {
        self.nanos
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub const fn seconds(self) -> i64 {
        self.nanos.div_euclid(1_000_000_000)
    }

    /// This moment moved by `seconds` (may be negative); saturates.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self { nanos: self.nanos.saturating_add(seconds.saturating_mul(1_000_000_000)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_down_also_before_the_epoch() {
        assert_eq!(WallClock::from_nanos(1_999_999_999).seconds(), 1);
        assert_eq!(WallClock::from_nanos(-1).seconds(), -1);
    }

    #[test]
    fn far_times_saturate() {
        assert_eq!(WallClock::from_seconds(i64::MAX).nanos(), i64::MAX);
        assert_eq!(WallClock::from_seconds(5).plus_seconds(-3), WallClock::from_seconds(2));
    }
}
