//! A bound on lines that a stranger can cause, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lines of one kind that are let through in one window.
const LINES: u64 = 10;
/// The length of a window.
const WINDOW: Duration = Duration::from_secs(1);

/// Lets a few through in each window and counts the rest.
#[derive(Debug)]
pub(super) struct Throttle {
    born: Instant,
    window: AtomicU64,
    said: AtomicU64,
    unsaid: AtomicU64,
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            born: Instant::now(),
            window: AtomicU64::new(0),
            said: AtomicU64::new(0),
            unsaid: AtomicU64::new(0),
        }
    }
}

impl Throttle {
    /// Some when the line may be said now, with the number of those left unsaid since the last one that was. Threads that
    /// meet at the edge of a window may let a few more through; none is ever lost from the count for good.
    pub(super) fn admit(&self) -> Option<u64> {
        self.admit_at(self.born.elapsed())
    }

    fn admit_at(&self, since_birth: Duration) -> Option<u64> {
        let window = since_birth.as_secs() / WINDOW.as_secs();
        if self.window.swap(window, Ordering::Relaxed) != window {
            self.said.store(0, Ordering::Relaxed);
        }
        if self.said.fetch_add(1, Ordering::Relaxed) < LINES {
            Some(self.unsaid.swap(0, Ordering::Relaxed))
        } else {
            self.unsaid.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_says_ten_lines_a_second_and_the_next_line_says_how_many_were_left_out() {
        let throttle = Throttle::default();
        let at = |ms| throttle.admit_at(Duration::from_millis(ms));
        let said = (0..5000).filter(|n| at(n / 10).is_some()).count();
        assert_eq!(said, 10);
        assert_eq!(at(1000), Some(4990));
        assert_eq!(at(1001), Some(0));
    }
}
