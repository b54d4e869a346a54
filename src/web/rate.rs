//! How fast hosts are provisioned, from totals read at regular times. Plain code; time arrives as an argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time between two samples.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_secs(2);
/// Samples that make one point of the line.
const SAMPLES_PER_POINT: usize = 2;
/// Points of the line: ten minutes.
const POINTS: usize = 150;
/// Samples kept.
const MAX_SAMPLES: usize = SAMPLES_PER_POINT * POINTS + 1;
/// The time over which the rate is told.
const WINDOW: Duration = Duration::from_mins(1);

/// Totals at one time.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    provisioned: u64,
    failed: u64,
}

/// The samples.
#[derive(Debug, Default)]
pub(super) struct Rates {
    samples: VecDeque<Sample>,
}

/// Rates as shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct RateLine {
    /// Hosts provisioned in a minute, over the last one.
    pub provisioned: u64,
    /// Cycles that failed in a minute, over the last one.
    pub failed: u64,
    /// Hosts provisioned in each few seconds, oldest first, as hosts in a minute.
    pub points: Vec<u64>,
}

impl Rates {
    /// Notes the totals.
    pub fn sample(&mut self, provisioned: u64, failed: u64, now: Instant) {
        if self.samples.len() >= MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at: now, provisioned, failed });
    }

    /// The rates as of the last sample.
    pub fn line(&self) -> RateLine {
        let Some(last) = self.samples.back() else { return RateLine::default() };
        let within = |sample: &&Sample| last.at.saturating_duration_since(sample.at) <= WINDOW;
        let first = self.samples.iter().find(within).unwrap_or(last);
        let points = self
            .samples
            .iter()
            .rev()
            .step_by(SAMPLES_PER_POINT)
            .zip(self.samples.iter().rev().step_by(SAMPLES_PER_POINT).skip(1))
            .map(|(later, earlier)| per_minute(earlier, later, |sample| sample.provisioned))
            .collect::<Vec<_>>();
        RateLine {
            provisioned: per_minute(first, last, |sample| sample.provisioned),
            failed: per_minute(first, last, |sample| sample.failed),
            points: points.into_iter().rev().collect(),
        }
    }
}

/// The growth of a total between two samples, per minute, rounded to the nearest whole number.
fn per_minute(earlier: &Sample, later: &Sample, total: impl Fn(&Sample) -> u64) -> u64 {
    let grown = u128::from(total(later).saturating_sub(total(earlier)));
    let millis = later.at.saturating_duration_since(earlier.at).as_millis();
    let rounded = grown
        .saturating_mul(WINDOW.as_millis())
        .saturating_add(millis / 2)
        .checked_div(millis)
        .unwrap_or_default();
    u64::try_from(rounded).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Totals that grow by `step` with each sample.
    fn growing(samples: u64, step: u64) -> RateLine {
        let (mut rates, now) = (Rates::default(), Instant::now());
        for n in 0..samples {
            rates.sample(n * step, n, now + SAMPLE_EVERY * u32::try_from(n).unwrap());
        }
        rates.line()
    }

    #[test]
    fn nothing_and_one_sample_are_no_rate() {
        assert_eq!(growing(0, 7), RateLine::default());
        assert_eq!(growing(1, 7), RateLine::default());
    }

    #[test]
    fn a_steady_growth_is_one_rate_whatever_the_time_it_was_watched() {
        for samples in [2, 6, 31, 100, 5000] {
            let line = growing(samples, 10);
            assert_eq!((line.provisioned, line.failed), (300, 30), "{samples}");
            assert!(line.points.iter().all(|point| *point == 300), "{line:?}");
        }
        assert_eq!(growing(5000, 10).points.len(), POINTS);
        assert_eq!(growing(6, 10).points.len(), 2);
    }

    #[test]
    fn the_rate_is_that_of_the_last_minute_and_the_line_shows_what_was_before() {
        let (mut rates, mut now) = (Rates::default(), Instant::now());
        for total in 0..=30 {
            rates.sample(total * 100, 0, now);
            now += SAMPLE_EVERY;
        }
        for _ in 0..60 {
            rates.sample(3000, 0, now);
            now += SAMPLE_EVERY;
        }
        let line = rates.line();
        assert_eq!(line.provisioned, 0);
        assert_eq!(line.points.first(), Some(&3000));
        assert_eq!(line.points.last(), Some(&0));
    }

    #[test]
    fn a_total_that_falls_is_no_growth() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        rates.sample(50, 5, now);
        rates.sample(0, 0, now + SAMPLE_EVERY);
        assert_eq!((rates.line().provisioned, rates.line().failed), (0, 0));
    }
}
