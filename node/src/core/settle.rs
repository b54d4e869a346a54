//! When changes are acted on: soon after a quiet time, together in a burst.

use std::time::Duration;

/// After a quiet time a change waits only this long, for others that come with it.
const SOON: Duration = Duration::from_millis(10);
/// In a burst changes wait until none came for this long.
const BURST: Duration = Duration::from_millis(100);
/// Items and consumers wait longer: they come from many modules and machines.
const BURST_OF_MANY: Duration = Duration::from_millis(200);
/// But no change waits longer than this.
const AT_MOST: Duration = Duration::from_secs(1);
/// How long nothing must have been acted on for a time to be quiet.
const QUIET: Duration = Duration::from_secs(1);
/// A program that was told is not told of further changes any sooner: so often at most is it restarted.
const BETWEEN_TELLINGS: Duration = Duration::from_secs(1);

/// Changes that wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Settle {
    first: Option<Duration>,
    due: Option<Duration>,
    /// When changes were looked at last; none when that came to nothing.
    looked: Option<Duration>,
    /// When changes were looked at last that went onto the disk or to a program.
    wrote: Option<Duration>,
    told: Option<Duration>,
}

impl Settle {
    /// Notes a change; answers when to look.
    pub fn changed(&mut self, now: Duration, of_many: bool) -> Duration {
        let acted = self.looked.max(self.wrote);
        let is_quiet = acted.is_none_or(|acted| now.saturating_sub(acted) >= QUIET);
        let wait = match (is_quiet, of_many) {
            (true, _) => SOON,
            (false, false) => BURST,
            (false, true) => BURST_OF_MANY,
        };
        let first = *self.first.get_or_insert(now);
        let due = (now + wait).min(first + AT_MOST);
        let due = self.told.map_or(due, |told| due.max(told + BETWEEN_TELLINGS));
        let due = self.due.map_or(due, |before| if is_quiet { before } else { due.max(before) });
        self.due = Some(due);
        due
    }

    /// A program was told of what is written. A change that waits already waits from now on; answers until when.
    pub fn told(&mut self, now: Duration) -> Option<Duration> {
        self.told = Some(now);
        self.due = self.due.map(|due| due.max(now + BETWEEN_TELLINGS));
        self.due
    }

    /// True when something waits.
    pub const fn is_waiting(&self) -> bool {
        self.due.is_some()
    }

    /// True when what waits is due.
    pub fn is_due(&self, now: Duration) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Everything was looked at; nothing waits any more.
    pub fn looked(&mut self, now: Duration) {
        let looked = if self.due.is_some() { Some(now) } else { self.looked };
        *self = Self { first: None, due: None, looked, ..*self };
    }

    /// What was looked at last went onto the disk or to a program, or did neither: then a change that comes now costs neither
    /// a second time, and has nothing to wait for.
    pub fn ended(&mut self, has_changed: bool) {
        if has_changed {
            self.wrote = self.looked.max(self.wrote);
        } else {
            self.looked = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn after_a_quiet_time_a_change_is_acted_on_soon() {
        let mut settle = Settle::default();
        assert_eq!(settle.changed(ms(5_000), false), ms(5_010));
        assert_eq!(settle.changed(ms(5_004), true), ms(5_010));
        assert!(!settle.is_due(ms(5_009)));
        assert!(settle.is_due(ms(5_010)));
        settle.looked(ms(5_010));
        assert!(!settle.is_due(ms(9_000)), "nothing waits any more");
    }

    #[test]
    fn what_changed_nothing_makes_no_burst() {
        let mut settle = Settle::default();
        settle.changed(ms(0), false);
        settle.looked(ms(10));
        settle.ended(false);
        assert_eq!(settle.changed(ms(20), false), ms(30), "as after a quiet time");
        settle.looked(ms(30));
        assert_eq!(settle.changed(ms(31), false), ms(131), "its end is not known yet");
        settle.looked(ms(131));
        settle.ended(true);
        settle.changed(ms(200), false);
        settle.looked(ms(300));
        settle.ended(false);
        assert_eq!(settle.changed(ms(310), false), ms(410), "what was written before that counts");
    }

    /// Acts on changes at these times and tells a program each time; when it was told.
    fn tellings(changes: &[u64]) -> Vec<u64> {
        let mut settle = Settle::default();
        let mut told = Vec::new();
        for now in 0..4_000 {
            if changes.contains(&now) {
                settle.changed(ms(now), false);
            }
            if settle.is_due(ms(now)) {
                settle.looked(ms(now));
                settle.told(ms(now));
                told.push(now);
            }
        }
        told
    }

    #[test]
    fn a_program_is_told_at_most_twice_of_all_changes_of_a_second() {
        // However they lie in it: close together, evenly, with gaps.
        let changes = |step: u64| (0..10).map(|change| change * step).collect::<Vec<_>>();
        for step in [1, 50, 100, 101, 110] {
            assert!(tellings(&changes(step)).len() <= 2, "{step} ms between");
        }
        assert_eq!(tellings(&[0, 1, 300, 301, 600, 601, 900, 901, 950, 999]), [10, 1_099]);
        assert_eq!(tellings(&[0, 500, 1_600]), [10, 1_010, 2_010], "and of a later one in time");
        assert_eq!(tellings(&[0, 2_500]), [10, 2_510], "after a quiet time at once");
    }

    /// The same, where telling takes this long and what comes meanwhile waits for its end.
    fn tellings_that_take(took: u64, changes: &[u64]) -> Vec<u64> {
        let mut settle = Settle::default();
        let (mut told, mut end, mut is_dirty) = (Vec::new(), None, false);
        for now in 0..6_000 {
            if end == Some(now) {
                (end, _) = (None, settle.told(ms(now)));
                if std::mem::take(&mut is_dirty) {
                    settle.changed(ms(now), false);
                }
            }
            if changes.contains(&now) {
                settle.changed(ms(now), false);
            }
            if settle.is_due(ms(now)) {
                settle.looked(ms(now));
                if end.is_some() {
                    is_dirty = true;
                } else {
                    told.push(now);
                    end = Some(now + took);
                }
            }
        }
        told
    }

    #[test]
    fn a_change_that_came_while_a_program_was_told_waits_from_the_end_of_that() {
        assert_eq!(tellings_that_take(500, &[0, 450, 900]), [10, 1_510]);
        assert_eq!(tellings_that_take(500, &[0, 100, 450, 900]), [10, 1_510]);
        assert_eq!(tellings_that_take(2_000, &[0, 450, 900]), [10, 3_010]);
    }

    #[test]
    fn where_no_program_is_told_a_change_waits_for_the_burst_alone() {
        let mut settle = Settle::default();
        settle.changed(ms(0), false);
        settle.looked(ms(10));
        assert_eq!(settle.changed(ms(300), false), ms(400));
    }

    #[test]
    fn changes_without_end_are_acted_on_every_second() {
        let mut settle = Settle::default();
        let mut acted = Vec::new();
        for now in 0..4_000 {
            if now % 50 == 0 {
                settle.changed(ms(now), true);
            }
            if settle.is_due(ms(now)) {
                settle.looked(ms(now));
                acted.push(now);
            }
        }
        assert_eq!(acted, [10, 1_050, 2_100, 3_150]);
    }
}
