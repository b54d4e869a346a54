//! What people ask of the roster: hosts by page, another try, to forget one.

use std::collections::BinaryHeap;
use std::time::Instant;

use quartermaster_proto::choria::identity::Identity;

use super::super::entry::{Entry, Phase, State};
use super::super::view::{Forgot, HostQuery, MAX_PAGE};
use super::Roster;

impl Roster {
    /// The names of the hosts that a query asks for, ordered, and how many fit it in all.
    pub fn page(&self, query: &HostQuery) -> (Vec<Identity>, usize) {
        let most = query.most.clamp(1, MAX_PAGE);
        let mut first = BinaryHeap::with_capacity(most + 1);
        let mut total = 0;
        for (identity, entry) in &self.hosts {
            if !fits(identity, entry, query) {
                continue;
            }
            total += 1;
            if query.after.as_ref().is_some_and(|after| identity <= after) {
                continue;
            }
            if first.len() < most {
                first.push(identity);
            } else if first.peek().is_some_and(|last| identity < *last) {
                first.pop();
                first.push(identity);
            }
        }
        (first.into_sorted_vec().into_iter().cloned().collect(), total)
    }

    /// The host that has been in the queue for longest.
    pub fn oldest_waiting(&self) -> Option<(&Identity, Instant)> {
        let waiting = |identity: &Identity| match self.hosts.get_key_value(identity)? {
            (identity, Entry { state: State::Waiting { since }, .. }) => Some((identity, *since)),
            _ => None,
        };
        // Both queues are in the order of waiting, but for places whose host has left.
        let fronts = [&self.unfinished, &self.fresh, &self.again];
        fronts.into_iter().filter_map(|queue| queue.iter().find_map(waiting)).min_by_key(|(_, since)| *since)
    }

    /// Tries a host again now: whatever it waits for, and however often it failed. False when nobody knows it.
    pub fn retry(&mut self, identity: &Identity, now: Instant) -> bool {
        let Some(entry) = self.hosts.get_mut(identity) else { return false };
        match entry.state {
            State::InFlight { .. } | State::Waiting { .. } => {}
            State::Known
            | State::Held { .. }
            | State::Cooling { .. }
            | State::GaveUp { .. }
            | State::Done => {
                (entry.failures, entry.lost) = (0, 0);
                entry.failing_since = None;
                // An operator's word is as good as a sighting.
                entry.last_seen = now;
                self.enqueue(identity, now, true);
            }
        }
        true
    }

    /// Another instance has provisioned the host: it leaves, unless this one is at work on it.
    pub fn give_away(&mut self, identity: &Identity) {
        if self.hosts.get(identity).is_some_and(|entry| !matches!(entry.state, State::InFlight { .. })) {
            self.leave_behind(identity);
            self.leave(identity);
            self.hosts.remove(identity);
        }
    }

    /// Forgets a host, unless it must be restarted first. A cycle in flight is no longer this roster's.
    pub fn forget(&mut self, identity: &Identity) -> (Forgot, Option<u64>) {
        let Some(entry) = self.hosts.get(identity) else { return (Forgot::Unknown, None) };
        let mut ended = None;
        if let State::InFlight { cycle, phase, committed, .. } = entry.state {
            if committed {
                return (Forgot::Committed, None);
            }
            if phase == Phase::Silent {
                self.counts.silent -= 1;
            }
            self.cycles.remove(&cycle);
            ended = Some(cycle);
        }
        self.leave_behind(identity);
        self.leave(identity);
        self.hosts.remove(identity);
        (Forgot::Forgotten, ended)
    }
}

fn fits(identity: &Identity, entry: &Entry, query: &HostQuery) -> bool {
    query.state.as_ref().is_none_or(|state| state == entry.state.name())
        && query.text.as_ref().is_none_or(|text| identity.as_str().contains(text.as_str()))
}
