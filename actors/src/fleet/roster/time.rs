//! What time brings about in the roster.

use std::time::Instant;

use quartermaster_proto::choria::identity::Identity;

use super::super::entry::{Entry, State};
use super::super::terms::{Noticed, Passed};
use super::{Roster, UNFINISHED_GRACE};
use crate::host::Ending;

impl Roster {
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
            let over = match &entry.state {
                State::Done => true,
                State::Known | State::Cooling { .. } => stale,
                _ => false,
            };
            if over && self.keep_unfinished(&identity, now) {
                continue;
            }
            let Some(entry) = self.hosts.get(&identity) else { continue };
            match &entry.state {
                State::Cooling { .. } if !stale => {
                    if self.enqueue(&identity, now, true) == Noticed::Queued {
                        passed.push(Passed::Requeued(identity));
                    }
                }
                State::Held { ending, confirmed, .. } => {
                    if *ending == Ending::Provisioned && !*confirmed {
                        passed.push(Passed::Unconfirmed(identity.clone()));
                        self.steps_over(&identity);
                    } else {
                        passed.push(Passed::Released(identity.clone()));
                    }
                    self.leave(&identity);
                    if let Some(entry) = self.hosts.get_mut(&identity) {
                        entry.state = State::Done;
                    }
                    self.schedule(&identity, now + 2 * self.settings.interval);
                }
                // Its operator has still to decide.
                State::GaveUp { .. } if entry.takes_back() => {
                    self.schedule(&identity, now + 2 * self.settings.interval);
                }
                State::GaveUp { .. } => {
                    let when = entry.last_seen + self.gone_after();
                    if when > now {
                        self.schedule(&identity, when);
                    } else if !self.stays_to_take_back(&identity, now) {
                        self.leave(&identity);
                        self.hosts.remove(&identity);
                        passed.push(Passed::AgedOut(identity));
                    }
                }
                State::Waiting { .. } | State::InFlight { .. } => {}
                State::Known | State::Cooling { .. } if !stale => {
                    let when = entry.last_seen + 2 * self.settings.interval;
                    self.schedule(&identity, when);
                }
                State::Done => {
                    let unfinished = entry.resume.is_some();
                    self.hosts.remove(&identity);
                    if unfinished {
                        passed.push(Passed::AgedOut(identity));
                    }
                }
                State::Known | State::Cooling { .. } => {
                    if !self.stays_to_take_back(&identity, now) {
                        self.leave(&identity);
                        self.hosts.remove(&identity);
                        passed.push(Passed::AgedOut(identity));
                    }
                }
            }
        }
        passed
    }

    /// Lets a host that has gone be remembered for a while, when a cycle left something of it to make good. False when nothing
    /// was left, or when that is too long ago.
    pub(super) fn keep_unfinished(&mut self, identity: &Identity, now: Instant) -> bool {
        let until = |entry: &Entry| entry.last_seen + self.gone_after().max(UNFINISHED_GRACE);
        let unfinished = self.hosts.get(identity).filter(|entry| entry.goes_on());
        let Some(until) = unfinished.map(until).filter(|until| *until > now) else { return false };
        self.leave(identity);
        if let Some(entry) = self.hosts.get_mut(identity) {
            entry.state = State::Done;
        }
        self.schedule(identity, until);
        true
    }
}
