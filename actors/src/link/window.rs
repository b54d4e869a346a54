//! A broadcast discovery: who answered so far and when it ends. Pure.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use quartermaster_proto::choria::Identity;

/// Replies to one broadcast that are looked at; a fleet is smaller, a flood is not.
const MAX_REPLIES: usize = 500_000;

/// One running discovery. It ends when no reply came for the window, or at its limit; before the first reply only the
/// limit counts.
#[derive(Debug)]
pub struct Window {
    quiet: Duration,
    limit: Instant,
    started: Instant,
    last: Option<Instant>,
    replies: usize,
    found: HashSet<Identity>,
}

/// What a reply to a broadcast meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// A host seen for the first time in this discovery.
    New,
    /// One seen before.
    Known,
    /// One of too many.
    Excess,
}

impl Window {
    /// A discovery that starts now and ends after `quiet` without a reply, or after `limit`.
    pub fn new(now: Instant, quiet: Duration, limit: Duration) -> Self {
        Self { quiet, limit: now + limit, started: now, last: None, replies: 0, found: HashSet::new() }
    }

    /// Takes note of a reply by `identity`.
    pub fn handle(&mut self, identity: &Identity, now: Instant) -> Sighting {
        if self.replies >= MAX_REPLIES {
            return Sighting::Excess;
        }
        self.replies += 1;
        self.last = Some(now);
        if self.found.insert(identity.clone()) { Sighting::New } else { Sighting::Known }
    }

    /// When it ends, unless another reply comes before.
    pub fn ends_at(&self) -> Instant {
        self.last.map_or(self.limit, |last| self.limit.min(last + self.quiet))
    }

    /// Distinct hosts so far.
    pub fn found(&self) -> usize {
        self.found.len()
    }

    /// Since its start.
    pub fn took(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(300);
    const LIMIT: Duration = Duration::from_secs(2);

    /// Runs replies given as (milliseconds after the start, identity); answers end and number found.
    fn check(replies: &[(u64, &str)], end_ms: u64, found: usize) {
        let start = Instant::now();
        let mut window = Window::new(start, WINDOW, LIMIT);
        for (at, name) in replies {
            let now = start + Duration::from_millis(*at);
            assert!(now < window.ends_at(), "a reply after {at} ms comes too late");
            window.handle(&Identity::parse(name).unwrap(), now);
        }
        assert_eq!(window.ends_at(), start + Duration::from_millis(end_ms));
        assert_eq!(window.found(), found);
    }

    #[test]
    fn silence_lasts_to_the_limit() {
        check(&[], 2000, 0);
    }

    #[test]
    fn it_ends_a_window_after_the_last_reply() {
        check(&[(10, "a.example.net"), (200, "b.example.net")], 500, 2);
    }

    #[test]
    fn a_host_that_answers_twice_is_found_once() {
        check(&[(10, "a.example.net"), (20, "a.example.net")], 320, 1);
    }

    #[test]
    fn steady_replies_cannot_hold_it_open_past_the_limit() {
        check(
            &[
                (250, "a.b"),
                (500, "b.b"),
                (750, "c.b"),
                (1000, "d.b"),
                (1250, "e.b"),
                (1500, "f.b"),
                (1790, "g.b"),
            ],
            2000,
            7,
        );
    }
}
