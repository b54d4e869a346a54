//! What the roster makes of hosts that are noticed.

use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;

use super::super::entry::{Entry, Failure, State};
use super::super::terms::{Noticed, Sighting};
use super::{LOST_RESTART, RESTART_GRACE, Roster, UPDATE_GRACE};
use crate::host::Ending;

impl Roster {
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
        if started && !matches!(entry.state, State::InFlight { .. }) {
            // A new process in provisioning mode: what an earlier one was sent has not taken.
            entry.drop_resume();
        }
        match &entry.state {
            State::Held { since, ending, .. } => match ending {
                // It was told to restart by a cycle that got no answer, and never heard it.
                Ending::Provisioned if entry.goes_on() && now.duration_since(*since) >= RESTART_GRACE => {
                    self.enqueue(identity, now, true)
                }
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
        let took = self.confirmed(identity, now);
        if took.is_some() {
            self.steps_over(identity);
        }
        took
    }

    fn confirmed(&mut self, identity: &Identity, now: Instant) -> Option<Duration> {
        let entry = self.hosts.get_mut(identity)?;
        let (takes_back, goes_on) = (entry.takes_back(), entry.goes_on());
        match &mut entry.state {
            State::Held { ending: Ending::Provisioned, confirmed, began, .. } if !*confirmed => {
                *confirmed = true;
                entry.resume = None;
                Some(now.duration_since(*began))
            }
            // The reply to its configuration or to the restart was lost, but it restarted all the same.
            State::Cooling { began, .. } | State::GaveUp { since: began }
                if (goes_on || entry.failure.as_ref().is_some_and(|f| f.cause == LOST_RESTART))
                    && !takes_back =>
            {
                let began = *began;
                entry.succeed();
                entry.resume = None;
                self.hold(identity, Ending::Provisioned, began, now, true);
                Some(now.duration_since(began))
            }
            // While it is told to restart, or asked whether it must be.
            State::InFlight { committed: true, serves, .. } => {
                *serves = true;
                None
            }
            _ => None,
        }
    }

    fn is_stale(&self, sighting: Sighting) -> bool {
        let Sighting::Started { stamp, now, .. } = sighting else { return false };
        let age = now.saturating_sub(stamp);
        let limit = i64::try_from(2 * self.settings.interval.as_secs()).unwrap_or(i64::MAX);
        age > limit
    }

    fn came_back(&mut self, identity: &Identity, now: Instant, luck: f64) -> Noticed {
        let Some(entry) = self.hosts.get_mut(identity) else { return Noticed::Known };
        let began = match &entry.state {
            State::Held { began, .. } => *began,
            _ => now,
        };
        entry.drop_resume();
        let attempt = entry.attempt();
        let error = "it came back in provisioning mode after its restart";
        let retry_in = self.fail(identity, began, Failure::new("came_back", error, now), luck);
        Noticed::CameBack { attempt, retry_in }
    }
}
