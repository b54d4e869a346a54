//! Every host this instance knows, what it is doing, and who is next. Pure: time and luck arrive as arguments.
//!
//! A host is in the roster before its first remote call and leaves it only through an ending. One host has one entry and
//! one state, so nothing can be queued twice.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;

use super::entry::{Entry, Failure, Phase, State};
use super::retry::spread;
use super::terms::{Admission, Counts, Noticed, Passed, RosterSettings, Sighting, Verdict};
use crate::host::{Ending, Step};

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
/// Of five hosts taken from the queue, this many may be newcomers before one that waits for a retry gets its turn.
const FRESH_IN_A_ROW: u32 = 4;

/// The roster.
#[derive(Debug)]
pub struct Roster {
    settings: RosterSettings,
    hosts: HashMap<Identity, Entry>,
    fresh: VecDeque<Identity>,
    again: VecDeque<Identity>,
    fresh_in_a_row: u32,
    due: BTreeSet<(Instant, Identity)>,
    cycles: HashMap<u64, Identity>,
    next_cycle: u64,
    counts: Counts,
    aged_out: Vec<Identity>,
}

impl Roster {
    /// An empty roster.
    pub fn new(settings: RosterSettings) -> Self {
        Self {
            settings,
            hosts: HashMap::new(),
            fresh: VecDeque::new(),
            again: VecDeque::new(),
            fresh_in_a_row: 0,
            due: BTreeSet::new(),
            cycles: HashMap::new(),
            next_cycle: 1,
            counts: Counts::default(),
            aged_out: Vec::new(),
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

    /// When [`Self::pass`] has something to do next.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(when, _)| *when)
    }

    /// A host was noticed in provisioning mode.
    pub fn notice(&mut self, identity: &Identity, sighting: Sighting, now: Instant, luck: f64) -> Noticed {
        if self.is_stale(sighting) {
            return Noticed::Replayed;
        }
        let Some(entry) = self.hosts.get_mut(identity) else {
            let mut entry = Entry::new(now);
            entry.remember(sighting);
            self.hosts.insert(identity.clone(), entry);
            self.counts.known += 1;
            return self.enqueue(identity, now, false);
        };
        if let Sighting::Started { event, stamp, .. } = sighting
            && entry.has_seen(event, stamp)
        {
            return Noticed::Replayed;
        }
        entry.last_seen = now;
        entry.remember(sighting);
        let started = matches!(sighting, Sighting::Started { .. });
        match &entry.state {
            State::Held { since, ending, .. } => match ending {
                Ending::Provisioned if started || now.duration_since(*since) >= RESTART_GRACE => {
                    self.came_back(identity, now, luck)
                }
                Ending::Updating if started || now.duration_since(*since) >= UPDATE_GRACE => {
                    self.enqueue(identity, now, true)
                }
                Ending::ShutDown { .. } if started => self.enqueue(identity, now, false),
                _ => Noticed::Known,
            },
            // Turned away by a full queue before, or seen again after its hold has run out: it wants to be provisioned.
            State::Known | State::Done => self.enqueue(identity, now, false),
            State::Cooling { since, .. }
                if started && now.duration_since(*since) >= self.settings.retry.first() =>
            {
                self.enqueue(identity, now, true)
            }
            State::GaveUp { since } if started && now.duration_since(*since) >= self.settings.retry.cap() => {
                self.enqueue(identity, now, true)
            }
            State::Waiting { .. } | State::InFlight { .. } | State::Cooling { .. } | State::GaveUp { .. } => {
                Noticed::Known
            }
        }
    }

    /// A host came up as an ordinary server. True when that confirms a cycle of ours; the duration is the time since
    /// its cycle began.
    pub fn confirm(&mut self, identity: &Identity, now: Instant) -> Option<Duration> {
        let entry = self.hosts.get_mut(identity)?;
        match &mut entry.state {
            State::Held { ending: Ending::Provisioned, confirmed, began, .. } if !*confirmed => {
                *confirmed = true;
                Some(now.duration_since(*began))
            }
            // The reply to the restart was lost, but it restarted all the same.
            State::Cooling { began, .. }
                if entry.failure.as_ref().is_some_and(|f| f.cause == LOST_RESTART) =>
            {
                let began = *began;
                entry.succeed();
                self.hold(identity, Ending::Provisioned, began, now, true);
                Some(now.duration_since(began))
            }
            _ => None,
        }
    }

    /// The next host whose cycle may start, when a place is free.
    pub fn admit(&mut self, now: Instant) -> Option<Admission> {
        loop {
            if self.counts.in_flight - self.counts.silent >= self.settings.in_flight {
                return None;
            }
            let identity = self.take_next()?;
            let Some(entry) = self.hosts.get_mut(&identity) else { continue };
            let State::Waiting { since } = entry.state else { continue };
            if now.duration_since(entry.last_seen) >= 2 * self.settings.interval {
                // Discovery would have seen it again by now: it has gone, and a call would only wait for nobody.
                self.leave(&identity);
                self.hosts.remove(&identity);
                self.aged_out.push(identity);
                continue;
            }
            let cycle = self.next_cycle;
            self.next_cycle += 1;
            entry.state = State::InFlight { cycle, since: now, phase: Phase::Contacting };
            let admission = Admission {
                identity: identity.clone(),
                cycle,
                attempt: entry.failures + 1,
                kept: entry.kept.take(),
                waited: now.duration_since(since),
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

    /// The host of this cycle may be configured from now on. False when the cycle is not (or no longer) this roster's: then
    /// it must not be configured.
    pub fn commit(&mut self, cycle: u64) -> bool {
        self.answered(cycle);
        let Some(phase) = self.phase_of(cycle) else { return false };
        *phase = Phase::Committed;
        true
    }

    /// A cycle has ended.
    pub fn finish(&mut self, cycle: u64, ending: Ending, now: Instant, luck: f64) -> Verdict {
        let Some(identity) = self.cycles.remove(&cycle) else { return Verdict::Unknown };
        let Some(entry) = self.hosts.get_mut(&identity) else { return Verdict::Unknown };
        let State::InFlight { cycle: current, since, phase } = &entry.state else { return Verdict::Unknown };
        if *current != cycle {
            return Verdict::Unknown;
        }
        let (began, was_silent, committed) = (*since, *phase == Phase::Silent, *phase == Phase::Committed);
        if was_silent {
            self.counts.silent -= 1;
        }
        let attempt = entry.failures + 1;
        match ending {
            Ending::Provisioned | Ending::Updating | Ending::ShutDown { .. } | Ending::AlreadyServing => {
                entry.succeed();
                self.hold(&identity, ending, began, now, false);
                Verdict::Held { took: now.duration_since(began) }
            }
            Ending::Interrupted => {
                self.enqueue(&identity, now, true);
                Verdict::Requeued
            }
            Ending::Deferred { msg } => {
                entry.failure = Some(Failure { cause: "deferred", error: msg, at: now });
                let retry_in = spread(self.settings.interval, luck);
                self.cool(&identity, began, retry_in, now);
                Verdict::Retry { attempt, retry_in: Some(retry_in) }
            }
            Ending::Busy { kept } => {
                entry.kept = kept;
                entry.failure =
                    Some(Failure { cause: "busy", error: "someone else holds its lock".into(), at: now });
                // Only ever later than the lock's window: a second refusal would extend nobody's wait but ours.
                let retry_in = self.settings.busy + spread(self.settings.busy / 8, luck);
                self.cool(&identity, began, retry_in, now);
                Verdict::Retry { attempt, retry_in: Some(retry_in) }
            }
            Ending::Failed { cause: ENDED | STUCK, .. } if committed => {
                let retry_in = self.lost_restart(&identity, began, now);
                Verdict::Retry { attempt, retry_in: Some(retry_in) }
            }
            Ending::Failed { cause, error } => {
                let retry_in = self.fail(&identity, began, Failure { cause, error, at: now }, luck);
                Verdict::Retry { attempt, retry_in }
            }
        }
    }

    /// Lets time pass: cooling hosts that are still there wait again, those that are not leave, holds end. At most
    /// `most` entries a call, so that a huge roster cannot keep its actor from its messages.
    pub fn pass(&mut self, now: Instant, most: usize) -> Vec<Passed> {
        let mut passed: Vec<_> = self.aged_out.drain(..).map(Passed::AgedOut).collect();
        for _ in 0..most {
            let Some((when, _)) = self.due.first() else { break };
            if *when > now {
                break;
            }
            let Some((_, identity)) = self.due.pop_first() else { break };
            let Some(entry) = self.hosts.get_mut(&identity) else { continue };
            entry.due = None;
            let stale = now.duration_since(entry.last_seen) >= 2 * self.settings.interval;
            match &entry.state {
                State::Cooling { .. } if !stale => {
                    if self.enqueue(&identity, now, true) == Noticed::Queued {
                        passed.push(Passed::Requeued(identity));
                    }
                }
                State::Held { ending, confirmed, .. } => {
                    if *ending == Ending::Provisioned && !*confirmed {
                        passed.push(Passed::Unconfirmed(identity.clone()));
                    }
                    self.leave(&identity);
                    if let Some(entry) = self.hosts.get_mut(&identity) {
                        entry.state = State::Done;
                    }
                    self.schedule(&identity, now + 2 * self.settings.interval);
                }
                State::Waiting { .. } | State::InFlight { .. } | State::GaveUp { .. } => {}
                State::Known | State::Cooling { .. } if !stale => {
                    let when = entry.last_seen + 2 * self.settings.interval;
                    self.schedule(&identity, when);
                }
                State::Done => {
                    self.hosts.remove(&identity);
                }
                State::Known | State::Cooling { .. } => {
                    self.leave(&identity);
                    self.hosts.remove(&identity);
                    passed.push(Passed::AgedOut(identity));
                }
            }
        }
        passed
    }

    /// Puts every cycle in flight back into the queue: its actors are gone. Used by a keeper that was restarted. A host
    /// that may be configured already is left time to restart first, which its actor, if it lives, still sees to.
    pub fn recover(&mut self, now: Instant) -> usize {
        let lost: Vec<_> = self.cycles.drain().map(|(_, identity)| identity).collect();
        for identity in &lost {
            let Some(entry) = self.hosts.get(identity) else { continue };
            let State::InFlight { phase, since, .. } = entry.state else { continue };
            match phase {
                Phase::Committed => {
                    self.lost_restart(identity, since, now);
                }
                Phase::Silent => {
                    self.counts.silent -= 1;
                    self.enqueue(identity, now, true);
                }
                Phase::Contacting | Phase::Talking => {
                    self.enqueue(identity, now, true);
                }
            }
        }
        lost.len()
    }

    /// The actor of a host that may be configured is gone, and with it the knowledge whether the host was told to restart.
    /// It is left time to come up before it is tried again, so that it is not configured twice without need.
    fn lost_restart(&mut self, identity: &Identity, began: Instant, now: Instant) -> Duration {
        let error = "its actor or keeper ended while it was being configured".to_owned();
        if let Some(entry) = self.hosts.get_mut(identity) {
            entry.failures += 1;
            entry.failing_since.get_or_insert(now);
            entry.failure = Some(Failure { cause: LOST_RESTART, error, at: now });
        }
        let wait = 2 * RESTART_GRACE;
        self.cool(identity, began, wait, now);
        wait
    }

    /// Forgets every host that is not in a cycle (leadership was lost).
    pub fn forget_idle(&mut self) {
        let idle: Vec<_> = self
            .hosts
            .iter()
            .filter(|(_, entry)| !matches!(entry.state, State::InFlight { .. }))
            .map(|(identity, _)| identity.clone())
            .collect();
        for identity in idle {
            self.leave(&identity);
            self.hosts.remove(&identity);
        }
        self.fresh.clear();
        self.again.clear();
    }

    /// The host of a cycle that is in flight.
    pub fn host_of(&self, cycle: u64) -> Option<&Identity> {
        self.cycles.get(&cycle)
    }

    fn is_stale(&self, sighting: Sighting) -> bool {
        let Sighting::Started { stamp, now, .. } = sighting else { return false };
        let age = now.saturating_sub(stamp);
        let limit = i64::try_from(2 * self.settings.interval.as_secs()).unwrap_or(i64::MAX);
        age > limit
    }

    fn phase_of(&mut self, cycle: u64) -> Option<&mut Phase> {
        let identity = self.cycles.get(&cycle)?;
        match &mut self.hosts.get_mut(identity)?.state {
            State::InFlight { phase, .. } => Some(phase),
            _ => None,
        }
    }

    fn take_next(&mut self) -> Option<Identity> {
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

    fn came_back(&mut self, identity: &Identity, now: Instant, luck: f64) -> Noticed {
        let Some(entry) = self.hosts.get_mut(identity) else { return Noticed::Known };
        let began = match &entry.state {
            State::Held { began, .. } => *began,
            _ => now,
        };
        let attempt = entry.failures + 1;
        let error = "it came back in provisioning mode after its restart".to_owned();
        let retry_in = self.fail(identity, began, Failure { cause: "came_back", error, at: now }, luck);
        Noticed::CameBack { attempt, retry_in }
    }

    fn fail(&mut self, identity: &Identity, began: Instant, failure: Failure, luck: f64) -> Option<Duration> {
        let now = failure.at;
        let entry = self.hosts.get_mut(identity)?;
        entry.failures += 1;
        let failing_for = now.duration_since(*entry.failing_since.get_or_insert(now));
        let retry_in = self.settings.retry.delay(entry.failures, failing_for, luck);
        entry.failure = Some(failure);
        if let Some(delay) = retry_in {
            self.cool(identity, began, delay, now);
        } else {
            self.leave(identity);
            self.counts.gave_up += 1;
            if let Some(entry) = self.hosts.get_mut(identity) {
                entry.state = State::GaveUp { since: now };
            }
        }
        retry_in
    }

    fn cool(&mut self, identity: &Identity, began: Instant, delay: Duration, now: Instant) {
        self.leave(identity);
        self.counts.cooling += 1;
        if let Some(entry) = self.hosts.get_mut(identity) {
            entry.state = State::Cooling { since: now, until: now + delay, began };
        }
        self.schedule(identity, now + delay);
    }

    fn hold(&mut self, identity: &Identity, ending: Ending, began: Instant, now: Instant, confirmed: bool) {
        self.leave(identity);
        self.counts.held += 1;
        if let Some(entry) = self.hosts.get_mut(identity) {
            entry.kept = None;
            entry.state = State::Held { since: now, began, ending, confirmed };
        }
        self.schedule(identity, now + self.settings.hold);
    }

    /// Puts a host into the queue, or, when that is full, leaves it known so that its next sighting takes it.
    fn enqueue(&mut self, identity: &Identity, now: Instant, again: bool) -> Noticed {
        let full = self.counts.waiting >= self.settings.queue;
        self.leave(identity);
        let Some(entry) = self.hosts.get_mut(identity) else { return Noticed::Known };
        if full {
            entry.state = State::Known;
            self.counts.known += 1;
            self.schedule(identity, now + 2 * self.settings.interval);
            return Noticed::QueueFull;
        }
        entry.state = State::Waiting { since: now };
        self.counts.waiting += 1;
        if again { &mut self.again } else { &mut self.fresh }.push_back(identity.clone());
        Noticed::Queued
    }

    /// Takes a host out of the count of its state and off the clock; the caller gives it its new state.
    fn leave(&mut self, identity: &Identity) {
        let Some(entry) = self.hosts.get_mut(identity) else { return };
        if let Some(when) = entry.due.take() {
            self.due.remove(&(when, identity.clone()));
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
