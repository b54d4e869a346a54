//! Every host this instance knows, what it is doing, and who is next. Pure: time and luck arrive as arguments.
//!
//! A host is in the roster before its first remote call and leaves it only through an ending. One host has one entry and
//! one state, so nothing can be queued twice.

mod endings;
mod operator;
mod provided;
mod restore;
mod sightings;
mod time;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;

pub use self::provided::LeftBehind;
pub use self::restore::Clocks;
use super::entry::{Entry, Phase, State};
use super::terms::{Admission, Counts, Noticed, RosterSettings};
use crate::host::{Resume, Step};

/// How long a host that was told to restart is expected to go on answering discovery (2 s of delay, the process start and
/// some margin; choria.md 4.5). A sighting within it is no sign that the host is still to be provisioned.
const RESTART_GRACE: Duration = Duration::from_secs(15);
/// The cause of a failure after which the host may have restarted all the same: the name of the step.
const LOST_RESTART: &str = Step::Restart.name();
/// The cause of a failure whose actor ended without saying how its cycle went.
pub(super) const ENDED: &str = "actor";
/// The cause of a failure whose actor made no progress.
pub(super) const STUCK: &str = "stuck";
/// How long a host that updates itself is left alone before a sighting counts again.
const UPDATE_GRACE: Duration = Duration::from_secs(10);
/// How long it is remembered of a host that is not to be seen that it was configured, or may have been: it may be behind a
/// broker that hangs, and must not be configured once more when it can be reached again.
const UNFINISHED_GRACE: Duration = Duration::from_mins(15);
/// Of five hosts taken from the queue, this many may be newcomers before one that waits for a retry gets its turn.
const FRESH_IN_A_ROW: u32 = 4;

/// The roster.
#[derive(Debug)]
pub struct Roster {
    settings: RosterSettings,
    hosts: HashMap<Identity, Entry>,
    fresh: VecDeque<Identity>,
    again: VecDeque<Identity>,
    /// Hosts that an earlier cycle left between configure and restart.
    unfinished: VecDeque<Identity>,
    fresh_in_a_row: u32,
    due: BTreeSet<(Instant, Identity)>,
    cycles: HashMap<u64, Identity>,
    next_cycle: u64,
    counts: Counts,
    aged_out: Vec<Identity>,
    steps_over: Vec<Identity>,
    left_behind: Vec<LeftBehind>,
}

impl Roster {
    /// An empty roster.
    pub fn new(settings: RosterSettings) -> Self {
        Self {
            settings,
            hosts: HashMap::new(),
            fresh: VecDeque::new(),
            again: VecDeque::new(),
            unfinished: VecDeque::new(),
            fresh_in_a_row: 0,
            due: BTreeSet::new(),
            cycles: HashMap::new(),
            next_cycle: 1,
            counts: Counts::default(),
            aged_out: Vec::new(),
            steps_over: Vec::new(),
            left_behind: Vec::new(),
        }
    }

    /// How many hosts are in which state. `known` hosts are those a full queue turned away.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Every host with its entry, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (&Identity, &Entry)> {
        self.hosts.iter()
    }

    /// The entry of one host.
    pub fn get(&self, identity: &Identity) -> Option<&Entry> {
        self.hosts.get(identity)
    }

    /// The attempt under way for this host, or the next one.
    pub fn attempt_of(&self, identity: &Identity) -> u32 {
        self.hosts.get(identity).map_or(1, Entry::attempt)
    }

    /// When the cycle of a host that is in flight began.
    pub fn began(&self, identity: &Identity) -> Option<Instant> {
        match self.hosts.get(identity)?.state {
            State::InFlight { since, .. } => Some(since),
            _ => None,
        }
    }

    /// When [`Self::pass`] has something to do next.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(when, _)| *when)
    }

    /// The next host whose cycle may start, when a place is free.
    pub fn admit(&mut self, now: Instant) -> Option<Admission> {
        self.admit_next(now, Self::take_next)
    }

    /// The next host that was left between configure and restart, when a place is free: it is nothing new.
    pub fn admit_unfinished(&mut self, now: Instant) -> Option<Admission> {
        self.admit_next(now, |me| me.unfinished.pop_front())
    }

    fn admit_next(&mut self, now: Instant, next: fn(&mut Self) -> Option<Identity>) -> Option<Admission> {
        loop {
            if self.counts.in_flight - self.counts.silent >= self.settings.in_flight {
                return None;
            }
            let identity = next(self)?;
            let Some(entry) = self.hosts.get_mut(&identity) else { continue };
            let State::Waiting { since } = entry.state else { continue };
            let gone = now.saturating_duration_since(entry.last_seen) >= 2 * self.settings.interval;
            if gone && !entry.takes_back() {
                // Discovery would have seen it again by now: it has gone, and a call would only wait for nobody.
                if !self.keep_unfinished(&identity, now) && !self.stays_to_take_back(&identity, now) {
                    self.leave(&identity);
                    self.hosts.remove(&identity);
                    self.aged_out.push(identity);
                }
                continue;
            }
            let cycle = self.next_cycle;
            self.next_cycle += 1;
            let resume = entry.resume.clone();
            let (phase, committed) = (Phase::Contacting, entry.goes_on());
            entry.state = State::InFlight { cycle, since: now, phase, committed, serves: false };
            entry.waited = now.saturating_duration_since(since);
            let admission = Admission {
                identity: identity.clone(),
                cycle,
                attempt: entry.attempt(),
                kept: entry.kept.take(),
                resume,
                waited: entry.waited,
            };
            self.cycles.insert(cycle, identity);
            self.counts.waiting -= 1;
            self.counts.in_flight += 1;
            return Some(admission);
        }
    }

    /// The host of this cycle has not answered within a short patience: its place is given to another while it is
    /// waited for, so that machines that vanished cannot hold up those that are there.
    pub fn went_silent(&mut self, cycle: u64) {
        if self.counts.silent >= self.settings.silent {
            return;
        }
        if let Some(phase) = self.phase_of(cycle)
            && *phase == Phase::Contacting
        {
            *phase = Phase::Silent;
            self.counts.silent += 1;
        }
    }

    /// The host of this cycle has answered for the first time.
    pub fn answered(&mut self, cycle: u64) {
        if let Some(phase) = self.phase_of(cycle) {
            let was_silent = *phase == Phase::Silent;
            *phase = Phase::Talking;
            if was_silent {
                self.counts.silent -= 1;
            }
        }
    }

    /// The host of this cycle may be configured, or told to restart, from now on; `resume` is what its next cycle has to make
    /// good if this one is cut off. False when the cycle is not (or no longer) this roster's: then it must not be configured.
    pub fn commit(&mut self, cycle: u64, resume: Resume) -> bool {
        let Some(identity) = self.cycles.get(&cycle) else { return false };
        let Some(entry) = self.hosts.get_mut(identity) else { return false };
        let State::InFlight { committed, .. } = &mut entry.state else { return false };
        *committed = true;
        entry.resume = Some(resume);
        true
    }

    /// Forgets every host that is not in a cycle (leadership was lost); answers which.
    pub fn forget_idle(&mut self, now: Instant) -> Vec<Identity> {
        let idle: Vec<_> = self
            .hosts
            .iter()
            .filter(|(_, entry)| !matches!(entry.state, State::InFlight { .. }))
            .map(|(identity, _)| identity.clone())
            .collect();
        self.fresh.clear();
        self.again.clear();
        self.unfinished.clear();
        let mut gone = Vec::with_capacity(idle.len());
        for identity in idle {
            let was_held =
                self.hosts.get(&identity).is_some_and(|entry| matches!(entry.state, State::Held { .. }));
            self.leave(&identity);
            if self.stays_idle(&identity, was_held, now) {
                continue;
            }
            self.hosts.remove(&identity);
            gone.push(identity);
        }
        gone
    }

    /// The host of a cycle that is in flight.
    pub fn host_of(&self, cycle: u64) -> Option<&Identity> {
        self.cycles.get(&cycle)
    }

    fn phase_of(&mut self, cycle: u64) -> Option<&mut Phase> {
        let identity = self.cycles.get(&cycle)?;
        match &mut self.hosts.get_mut(identity)?.state {
            State::InFlight { phase, .. } => Some(phase),
            _ => None,
        }
    }

    fn take_next(&mut self) -> Option<Identity> {
        if let Some(identity) = self.unfinished.pop_front() {
            return Some(identity);
        }
        let again_first = self.fresh_in_a_row >= FRESH_IN_A_ROW;
        let (first, second) =
            if again_first { (&mut self.again, &mut self.fresh) } else { (&mut self.fresh, &mut self.again) };
        let (taken, from_first) = match first.pop_front() {
            Some(identity) => (Some(identity), true),
            None => (second.pop_front(), false),
        };
        self.fresh_in_a_row = if again_first == from_first { 0 } else { self.fresh_in_a_row + 1 };
        taken
    }

    /// Puts a host into the queue, or, when that is full, leaves it known so that its next sighting takes it.
    fn enqueue(&mut self, identity: &Identity, now: Instant, again: bool) -> Noticed {
        let full = self.counts.waiting >= self.settings.queue;
        self.leave(identity);
        let Some(entry) = self.hosts.get_mut(identity) else { return Noticed::Known };
        let unfinished = entry.resume.is_some();
        // What was begun is bounded by the cycles there can be.
        if full && !unfinished {
            entry.state = State::Known;
            self.counts.known += 1;
            self.schedule(identity, now + 2 * self.settings.interval);
            return Noticed::QueueFull;
        }
        entry.state = State::Waiting { since: now };
        self.counts.waiting += 1;
        let queue = match (unfinished, again) {
            (true, _) => &mut self.unfinished,
            (false, true) => &mut self.again,
            (false, false) => &mut self.fresh,
        };
        queue.push_back(identity.clone());
        Noticed::Queued
    }

    /// Takes a host out of the count of its state and off the clock; the caller gives it its new state.
    fn leave(&mut self, identity: &Identity) {
        let Some(entry) = self.hosts.get_mut(identity) else { return };
        if let Some(when) = entry.due.take() {
            self.due.remove(&(when, identity.clone()));
        }
        if std::mem::take(&mut entry.counted) {
            self.counts.not_taken_back -= 1;
            self.counts.undecided -= usize::from(matches!(entry.state, State::GaveUp { .. }));
        }
        match &entry.state {
            State::Known => self.counts.known -= 1,
            State::Waiting { .. } => self.counts.waiting -= 1,
            State::InFlight { .. } => self.counts.in_flight -= 1,
            State::Held { .. } => self.counts.held -= 1,
            State::Cooling { .. } => self.counts.cooling -= 1,
            State::GaveUp { .. } => self.counts.gave_up -= 1,
            State::Done => {}
        }
        // Whatever follows sets the state; until then the host counts nowhere.
        entry.state = State::Done;
    }

    fn schedule(&mut self, identity: &Identity, when: Instant) {
        if let Some(entry) = self.hosts.get_mut(identity) {
            if let Some(old) = entry.due.replace(when) {
                self.due.remove(&(old, identity.clone()));
            }
            self.due.insert((when, identity.clone()));
        }
    }
}
