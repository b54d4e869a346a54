//! What providers did for hosts, as far as the roster is concerned: until it is over, a host stays in the roster, and nothing else
//! is begun for it before it was taken back.

use std::time::Instant;

use quartermaster_proto::choria::identity::Identity;

use super::super::entry::{Entry, State};
use super::Roster;
use crate::host::{Ending, Resume};
use crate::journal::Stand;
use crate::steps::{Ledger, Left, StepLog};

/// Something providers did that nobody takes back any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// The host.
    pub host: Identity,
    /// What.
    pub left: Vec<Left>,
}

impl Entry {
    /// Its next cycle goes on where the last one was cut off.
    pub(super) fn goes_on(&self) -> bool {
        self.resume.as_ref().is_some_and(|resume| *resume != Resume::TakeBack)
    }

    /// Its next cycle has nothing else to do than to take back what providers did.
    pub(super) fn takes_back(&self) -> bool {
        self.resume == Some(Resume::TakeBack)
    }

    /// Whether providers did something for it that is to be taken back when it fails.
    fn has_left(&self) -> bool {
        self.steps.as_ref().is_some_and(|log| log.look(|ledger| !ledger.left().is_empty()))
    }

    /// What providers did for it in an earlier life: it goes on, is kept until the host is seen as a server, or is taken back. Some
    /// when all of it is over.
    pub(super) fn restore_steps(&mut self, ledger: Ledger, stand: &Stand) -> Option<()> {
        let undoing = ledger.taking_back().is_some();
        let is_left = !ledger.left().is_empty();
        let held = match stand {
            Stand::Held { ending, confirmed, .. } if ending == Ending::Provisioned.name() => Some(*confirmed),
            _ => None,
        };
        if held == Some(true) || !(is_left || self.goes_on()) {
            return Some(());
        }
        self.steps = Some(StepLog::of(ledger));
        if undoing || (held.is_none() && !self.goes_on()) {
            self.resume = Some(Resume::TakeBack);
        }
        None
    }

    /// What it was in the middle of is no more: what providers did is taken back.
    pub(super) fn drop_resume(&mut self) {
        self.resume = self.has_left().then_some(Resume::TakeBack);
    }
}

impl Roster {
    /// The log of what providers do for a host, a new one if there is none.
    pub fn step_log(&mut self, identity: &Identity) -> StepLog {
        self.hosts
            .get_mut(identity)
            .map(|entry| entry.steps.get_or_insert_default().clone())
            .unwrap_or_default()
    }

    /// The log of what providers did for a host, if they did anything.
    pub fn known_step_log(&self, identity: &Identity) -> Option<StepLog> {
        self.hosts.get(identity)?.steps.clone()
    }

    /// The hosts for which what providers did is over since the last time: their records may go.
    pub fn take_steps_over(&mut self) -> Vec<Identity> {
        std::mem::take(&mut self.steps_over)
    }

    /// What providers did that nobody takes back any more, since the last time.
    pub fn take_left_behind(&mut self) -> Vec<LeftBehind> {
        std::mem::take(&mut self.left_behind)
    }

    /// An operator wants a host to go on that only an operator can tell about: true when that decides something.
    pub fn decide_steps(&self, identity: &Identity) -> bool {
        let Some(entry) = self.hosts.get(identity) else { return false };
        if !matches!(entry.state, State::GaveUp { .. }) {
            return false;
        }
        entry.steps.as_ref().is_some_and(|log| {
            let asks = log.look(|ledger| ledger.left().iter().any(Left::asks_operator));
            if asks {
                log.decide();
            }
            asks
        })
    }

    /// A cycle ends: what becomes of what providers did. Said before the host gets its new state.
    pub(super) fn settle_steps(&mut self, identity: &Identity, ending: &Ending, serves: bool) {
        let Some(entry) = self.hosts.get_mut(identity) else { return };
        let Some(log) = &entry.steps else { return };
        let (is_left, undoing) =
            log.look(|ledger| (!ledger.left().is_empty(), ledger.taking_back().is_some()));
        let provisioned =
            *ending == Ending::Provisioned || (serves && matches!(ending, Ending::Failed { .. }));
        let keeps = match ending {
            // Until it was seen as a server, it may come back.
            Ending::Provisioned => is_left && !serves,
            _ if provisioned => false,
            _ if entry.goes_on() && !undoing => true,
            _ => is_left,
        };
        if !keeps {
            return self.steps_over(identity);
        }
        if !provisioned && (undoing || !entry.goes_on()) {
            entry.resume = Some(Resume::TakeBack);
        }
    }

    /// A host waits, or is left alone: counts it when something that providers did for it could not be taken back.
    pub(super) fn count_left(&mut self, identity: &Identity) {
        let Some(entry) = self.hosts.get_mut(identity) else { return };
        if entry.takes_back() && !entry.counted {
            entry.counted = true;
            self.counts.not_taken_back += 1;
            self.counts.undecided += usize::from(matches!(entry.state, State::GaveUp { .. }));
        }
    }

    /// What providers did for a host is over: it stays as it is, or was taken back.
    pub(super) fn steps_over(&mut self, identity: &Identity) {
        if let Some(entry) = self.hosts.get_mut(identity)
            && entry.steps.take().is_some()
        {
            if std::mem::take(&mut entry.counted) {
                self.counts.not_taken_back -= 1;
                self.counts.undecided -= usize::from(matches!(entry.state, State::GaveUp { .. }));
            }
            if entry.takes_back() {
                entry.resume = None;
            }
            self.steps_over.push(identity.clone());
        }
    }

    /// What providers did for a host is left as it is, and named.
    pub(super) fn leave_behind(&mut self, identity: &Identity) {
        let Some(log) = self.hosts.get(identity).and_then(|entry| entry.steps.as_ref()) else { return };
        // A cycle that still goes on may do nothing more.
        log.give_to(0);
        let left = log.look(Ledger::left);
        if !left.is_empty() {
            self.left_behind.push(LeftBehind { host: identity.clone(), left });
        }
        self.steps_over(identity);
    }

    /// A host is about to leave the roster for good: true when it stays, because what providers did is taken back first.
    pub(super) fn stays_to_take_back(&mut self, identity: &Identity, now: Instant) -> bool {
        let Some(entry) = self.hosts.get_mut(identity) else { return false };
        if !entry.has_left() {
            self.steps_over(identity);
            return false;
        }
        entry.resume = Some(Resume::TakeBack);
        self.enqueue(identity, now, true);
        true
    }

    /// The right to work was lost: a host for which providers did something is kept until this instance may take it back. One that
    /// is provisioned is left as it is.
    pub(super) fn stays_idle(&mut self, identity: &Identity, was_held: bool, now: Instant) -> bool {
        let stays = self.hosts.get(identity).is_some_and(Entry::has_left) && !was_held;
        if !stays {
            self.steps_over(identity);
            return false;
        }
        if let Some(entry) = self.hosts.get_mut(identity) {
            entry.resume = Some(Resume::TakeBack);
        }
        self.cool(identity, now, self.settings.interval, now);
        true
    }

    /// Takes back a host of which nothing is remembered but what providers did for it.
    pub fn restore_provided(&mut self, host: Identity, ledger: Ledger, now: Instant) {
        if ledger.left().is_empty() {
            self.steps_over.push(host);
            return;
        }
        let mut entry = Entry::new(now);
        entry.steps = Some(StepLog::of(ledger));
        entry.resume = Some(Resume::TakeBack);
        self.hosts.insert(host.clone(), entry);
        self.counts.known += 1;
        self.enqueue(&host, now, true);
    }
}
