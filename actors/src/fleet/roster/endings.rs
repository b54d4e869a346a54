//! What the end of a cycle means for its host.

use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;

use super::super::entry::{Failure, Phase, State};
use super::super::retry::spread;
use super::super::terms::Verdict;
use super::{ENDED, LOST_RESTART, RESTART_GRACE, Roster, STUCK};
use crate::host::{Ending, STEP_UNKNOWN};
use crate::journal::HelperRecord;

impl Roster {
    /// Whether the last thing that a cycle sent was a step that changes its host, without a reply: only then, or when its
    /// actor said nothing at all, has the next cycle anything to make good. Said before [`Self::finish`].
    pub fn note_reply(&mut self, cycle: u64, lost: bool) {
        if !lost
            && let Some(identity) = self.cycles.get(&cycle)
            && let Some(entry) = self.hosts.get_mut(identity)
        {
            entry.resume = None;
        }
    }

    /// A cycle has ended.
    pub fn finish(&mut self, cycle: u64, ending: Ending, now: Instant, luck: f64) -> Verdict {
        let Some(identity) = self.cycles.remove(&cycle) else { return Verdict::Unknown };
        let Some(entry) = self.hosts.get_mut(&identity) else { return Verdict::Unknown };
        let State::InFlight { cycle: current, since, phase, committed, serves } = entry.state else {
            return Verdict::Unknown;
        };
        if current != cycle {
            return Verdict::Unknown;
        }
        let (began, was_silent) = (since, phase == Phase::Silent);
        if was_silent {
            self.counts.silent -= 1;
        }
        let attempt = entry.attempt();
        self.settle_steps(&identity, &ending, serves);
        let Some(entry) = self.hosts.get_mut(&identity) else { return Verdict::Unknown };
        match ending {
            Ending::Provisioned | Ending::Updating | Ending::ShutDown { .. } | Ending::AlreadyServing => {
                entry.succeed();
                self.hold(&identity, ending, began, now, serves);
                Verdict::Held { took: now.duration_since(began) }
            }
            Ending::Interrupted | Ending::TakenBack => {
                self.enqueue(&identity, now, true);
                Verdict::Requeued
            }
            // It is worked on there; what was done here is taken back as soon as that ends.
            Ending::Elsewhere if entry.takes_back() => {
                let retry_in = spread(self.settings.interval, luck);
                self.cool(&identity, began, retry_in, now);
                Verdict::Requeued
            }
            Ending::Elsewhere => {
                self.leave(&identity);
                self.hosts.remove(&identity);
                Verdict::Elsewhere
            }
            Ending::Deferred { msg } => {
                entry.failure = Some(Failure::new("deferred", msg, now));
                let retry_in = spread(self.settings.interval, luck);
                self.cool(&identity, began, retry_in, now);
                Verdict::Retry { attempt, retry_in: Some(retry_in) }
            }
            Ending::Busy { kept } => {
                entry.kept = kept;
                entry.failure = Some(Failure::new("busy", "someone else holds its lock", now));
                // Only ever later than the lock's window: a second refusal would extend nobody's wait but ours.
                let retry_in = self.settings.busy + spread(self.settings.busy / 8, luck);
                self.cool(&identity, began, retry_in, now);
                Verdict::Retry { attempt, retry_in: Some(retry_in) }
            }
            // It came up as a server while it was asked in vain.
            Ending::Failed { .. } if serves => {
                entry.succeed();
                entry.resume = None;
                self.hold(&identity, Ending::Provisioned, began, now, true);
                Verdict::Held { took: now.duration_since(began) }
            }
            Ending::Failed { cause: ENDED | STUCK, .. } if committed => {
                let retry_in = self.lost_restart(&identity, began, now);
                Verdict::Retry { attempt, retry_in: Some(retry_in) }
            }
            // Another try would end the same: somebody has to look.
            Ending::Failed { cause: STEP_UNKNOWN, error } => {
                entry.failures += 1;
                entry.failing_since.get_or_insert(now);
                entry.failure = Some(Failure::new(STEP_UNKNOWN, error, now));
                self.give_up(&identity, now);
                Verdict::Retry { attempt, retry_in: None }
            }
            Ending::Failed { cause, error } => {
                let retry_in = self.fail(&identity, began, Failure::new(cause, error, now), luck);
                Verdict::Retry { attempt, retry_in }
            }
        }
    }

    /// Puts every cycle in flight back into the queue: its actors are gone. Used by a keeper that was restarted. A host
    /// that may be configured already is left time to restart first, which its actor, if it lives, still sees to. Answers
    /// which cycles were lost, and whose.
    pub fn recover(&mut self, now: Instant) -> Vec<(u64, Identity)> {
        let lost: Vec<_> = self.cycles.drain().collect();
        for (_, identity) in &lost {
            let Some(entry) = self.hosts.get_mut(identity) else { continue };
            let State::InFlight { phase, since, committed, .. } = entry.state else { continue };
            if phase == Phase::Silent {
                self.counts.silent -= 1;
            }
            self.settle_steps(identity, &Ending::Interrupted, false);
            let Some(entry) = self.hosts.get_mut(identity) else { continue };
            if committed {
                self.lost_restart(identity, since, now);
            } else {
                entry.lost += 1;
                self.enqueue(identity, now, true);
            }
        }
        lost
    }

    /// The actor of a host that may be configured is gone, and with it the knowledge whether the host was told to restart.
    /// It is left time to come up before it is tried again, so that it is not configured twice without need.
    fn lost_restart(&mut self, identity: &Identity, began: Instant, now: Instant) -> Duration {
        let error = "its actor or keeper ended while it was being configured";
        if let Some(entry) = self.hosts.get_mut(identity) {
            entry.failures += 1;
            entry.failing_since.get_or_insert(now);
            entry.failure = Some(Failure::new(LOST_RESTART, error, now));
        }
        let wait = 2 * RESTART_GRACE;
        self.cool(identity, began, wait, now);
        wait
    }

    pub(super) fn fail(
        &mut self,
        identity: &Identity,
        began: Instant,
        failure: Failure,
        luck: f64,
    ) -> Option<Duration> {
        let now = failure.at;
        let entry = self.hosts.get_mut(identity)?;
        entry.failures += 1;
        let failing_for = now.duration_since(*entry.failing_since.get_or_insert(now));
        let retry_in = self.settings.retry.delay(entry.failures, failing_for, luck);
        entry.failure = Some(failure);
        if let Some(delay) = retry_in {
            self.cool(identity, began, delay, now);
        } else {
            self.give_up(identity, now);
        }
        retry_in
    }

    /// Leaves a host alone: until an operator asks, or it starts anew, or it was not seen for so long that it has gone.
    pub(super) fn give_up(&mut self, identity: &Identity, since: Instant) {
        self.leave(identity);
        self.counts.gave_up += 1;
        if let Some(entry) = self.hosts.get_mut(identity) {
            entry.state = State::GaveUp { since };
            let when = entry.last_seen + self.gone_after();
            self.schedule(identity, when);
        }
        self.count_left(identity);
    }

    /// How long a host that was given up is remembered without being seen.
    pub(super) fn gone_after(&self) -> Duration {
        self.settings.retry.cap().max(2 * self.settings.interval)
    }

    pub(super) fn cool(&mut self, identity: &Identity, began: Instant, delay: Duration, now: Instant) {
        self.leave(identity);
        self.counts.cooling += 1;
        if let Some(entry) = self.hosts.get_mut(identity) {
            entry.state = State::Cooling { since: now, until: now + delay, began };
        }
        self.count_left(identity);
        self.schedule(identity, now + delay);
    }

    pub(super) fn hold(
        &mut self,
        identity: &Identity,
        ending: Ending,
        began: Instant,
        now: Instant,
        confirmed: bool,
    ) {
        self.leave(identity);
        self.counts.held += 1;
        if let Some(entry) = self.hosts.get_mut(identity) {
            entry.kept = None;
            entry.state = State::Held { since: now, began, ending, confirmed };
        }
        self.schedule(identity, now + self.settings.hold);
    }

    /// The helper run of the attempt that just failed, for whoever asks what happened.
    pub fn note_helper(&mut self, identity: &Identity, helper: Option<HelperRecord>, now: Instant) {
        if let Some(failure) = self.hosts.get_mut(identity).and_then(|entry| entry.failure.as_mut())
            && failure.at == now
        {
            failure.helper = helper;
        }
    }
}
