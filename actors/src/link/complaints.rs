//! Keeps a repeated complaint readable: the first at once, then at most one a minute with how many were held back. Pure.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two reports of the same trouble.
const PERIOD: Duration = Duration::from_mins(1);

/// Troubles that repeat, each kind for itself: the wording may change from time to time, the kind counts.
#[derive(Debug, Default)]
pub struct Complaints {
    kinds: BTreeMap<&'static str, Said>,
}

#[derive(Debug)]
struct Said {
    at: Instant,
    held_back: u64,
}

impl Complaints {
    /// The line to log now for trouble of this kind, if any.
    pub fn line(&mut self, kind: &'static str, text: &str, now: Instant) -> Option<String> {
        let Some(said) = self.kinds.get_mut(kind) else {
            self.kinds.insert(kind, Said { at: now, held_back: 0 });
            return Some(text.to_owned());
        };
        if now.saturating_duration_since(said.at) < PERIOD {
            said.held_back += 1;
            return None;
        }
        let held_back = std::mem::take(&mut said.held_back);
        said.at = now;
        Some(if held_back == 0 {
            text.to_owned()
        } else {
            format!("{text} ({held_back} more like it since)")
        })
    }

    /// Says that the trouble is over: the next one is news again.
    pub fn reset(&mut self) {
        self.kinds.clear();
    }
}

/// Lets so many through in each minute and counts the rest. Pure.
#[derive(Debug)]
pub struct Allowance {
    per_period: u32,
    left: u32,
    period_start: Option<Instant>,
}

impl Allowance {
    /// So many a minute.
    pub const fn per_minute(count: u32) -> Self {
        Self { per_period: count, left: count, period_start: None }
    }

    /// True when this one may pass.
    pub fn take(&mut self, now: Instant) -> bool {
        let start = *self.period_start.get_or_insert(now);
        if now.saturating_duration_since(start) >= PERIOD {
            self.period_start = Some(now);
            self.left = self.per_period;
        }
        let passes = self.left > 0;
        self.left = self.left.saturating_sub(1);
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_said_at_once_and_then_one_a_minute_with_a_count() {
        let start = Instant::now();
        let mut complaints = Complaints::default();
        let said: Vec<_> = (0..130)
            .filter_map(|second| complaints.line("refused", "refused", start + Duration::from_secs(second)))
            .collect();
        assert_eq!(said, ["refused", "refused (59 more like it since)", "refused (59 more like it since)"]);
    }

    #[test]
    fn kinds_that_alternate_do_not_hide_or_repeat_each_other() {
        let start = Instant::now();
        let mut complaints = Complaints::default();
        let said = (0..60)
            .filter_map(|second| {
                let kind = if second % 2 == 0 { "refused" } else { "unreachable" };
                complaints.line(kind, kind, start + Duration::from_secs(second))
            })
            .count();
        assert_eq!(said, 2);
    }

    #[test]
    fn after_the_trouble_is_over_it_is_news_again() {
        let start = Instant::now();
        let mut complaints = Complaints::default();
        assert!(complaints.line("refused", "refused", start).is_some());
        complaints.reset();
        assert!(complaints.line("refused", "refused", start).is_some());
    }

    #[test]
    fn an_allowance_comes_back_each_minute() {
        let start = Instant::now();
        let mut allowance = Allowance::per_minute(3);
        let passed = (0..120).filter(|second| allowance.take(start + Duration::from_secs(*second))).count();
        assert_eq!(passed, 6);
    }
}
