//! The fleet's counters: written by every connection, read by anybody.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::Notify;

use super::record::{PHASES, Phase};
use super::server::Note;

/// What the fleet has seen so far. All counts are of events but the phases, which are of servers now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct FleetStats {
    /// Servers of the fleet.
    pub servers: u64,
    /// Not started yet.
    pub down: u64,
    /// In provisioning mode.
    pub provisioning: u64,
    /// About to restart.
    pub restarting: u64,
    /// Back as ordinary servers.
    pub provisioned: u64,
    /// About to shut down, or shut down as told.
    pub stopped: u64,
    /// Gone without being told.
    pub vanished: u64,
    /// Without power, and back later.
    pub off: u64,
    /// Requests handled.
    pub requests: u64,
    /// Requests dropped without a reply: not for this server, or not valid.
    pub dropped: u64,
    /// Frames that were no request at all.
    pub unreadable: u64,
    /// Successful `configure` calls.
    pub configures: u64,
    /// Successful `configure` calls of servers that had been configured before and not fallen back to provisioning mode
    /// since.
    pub repeated_configures: u64,
    /// Restarts.
    pub restarts: u64,
    /// Configured servers that came back in provisioning mode.
    pub relapses: u64,
    /// Upgrades.
    pub updates: u64,
    /// Calls refused because somebody else held the lock.
    pub lock_refusals: u64,
    /// Calls refused for a wrong token.
    pub token_refusals: u64,
    /// Things servers held against what they were given.
    pub complaints: u64,
    /// Replies to work that was done which a fault withheld or made unreadable.
    pub lost_replies: u64,
    /// Times a server lost its power and had it again.
    pub power_cuts: u64,
    /// Messages over the broker's size limit, not sent.
    pub unsendable: u64,
    /// Connections that are up.
    pub connected: u64,
    /// Times a connection came up.
    pub connects: u64,
}

/// The live counters behind [`FleetStats`].
#[derive(Debug, Default)]
pub struct Ledger {
    phases: [AtomicU64; PHASES.len()],
    notes: [AtomicU64; 12],
    unreadable: AtomicU64,
    unsendable: AtomicU64,
    connected: AtomicU64,
    connects: AtomicU64,
    cycles: Mutex<Vec<u32>>,
    /// When the first server started and when the latest one was configured.
    worked: Mutex<Option<(Instant, Instant)>>,
    /// When the first request was handled.
    asked: OnceLock<Instant>,
    changed: Notify,
}

impl Ledger {
    /// The books of a fleet of `servers`, none of them started.
    pub fn new(servers: usize) -> Self {
        let ledger = Self::default();
        ledger.phase(Phase::Down).store(servers as u64, Ordering::Relaxed);
        ledger
    }

    /// Enters what happened to a server.
    pub fn note(&self, note: Note) {
        match note {
            Note::Phase(before, after) => {
                if before == Phase::Down {
                    let now = Instant::now();
                    self.worked.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((now, now));
                }
                self.phase(before).fetch_sub(1, Ordering::Relaxed);
                self.phase(after).fetch_add(1, Ordering::Relaxed);
                self.changed.notify_waiters();
            }
            Note::Cycle(took) => {
                let millis = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
                self.cycles.lock().unwrap_or_else(PoisonError::into_inner).push(millis);
            }
            Note::Configured(again) => {
                self.count(Slot::Configured);
                if let Some((_, latest)) = &mut *self.worked.lock().unwrap_or_else(PoisonError::into_inner) {
                    *latest = Instant::now();
                }
                if again {
                    self.count(Slot::Repeated);
                }
                self.changed.notify_waiters();
            }
            Note::Request => {
                self.asked.get_or_init(Instant::now);
                self.count(Slot::Request);
            }
            Note::Dropped => self.count(Slot::Dropped),
            Note::Restarted => self.count(Slot::Restarted),
            Note::Relapsed => self.count(Slot::Relapsed),
            Note::Updated => self.count(Slot::Updated),
            Note::LockRefused => {
                self.count(Slot::LockRefused);
                self.changed.notify_waiters();
            }
            Note::TokenRefused => self.count(Slot::TokenRefused),
            Note::Complaint => self.count(Slot::Complaint),
            Note::ReplyLost => self.count(Slot::ReplyLost),
            Note::PowerCut => self.count(Slot::PowerCut),
        }
    }

    /// A frame that was no request.
    pub fn unreadable(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// A message over the broker's limit.
    pub fn unsendable(&self) {
        self.unsendable.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection came up or went down.
    pub fn connection(&self, up: bool) {
        if up {
            self.connected.fetch_add(1, Ordering::Relaxed);
            self.connects.fetch_add(1, Ordering::Relaxed);
        } else {
            self.connected.fetch_sub(1, Ordering::Relaxed);
        }
        self.changed.notify_waiters();
    }

    /// Completes at the next change. Create it, enable it, then look: nothing is missed.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// The counters now.
    pub fn stats(&self) -> FleetStats {
        let phase = |phase| self.phase(phase).load(Ordering::Relaxed);
        let count = |slot: Slot| self.slot(slot).load(Ordering::Relaxed);
        FleetStats {
            servers: PHASES.iter().map(|each| phase(*each)).sum(),
            down: phase(Phase::Down),
            provisioning: phase(Phase::Provisioning),
            restarting: phase(Phase::Restarting),
            provisioned: phase(Phase::Provisioned),
            stopped: phase(Phase::Stopping) + phase(Phase::Stopped),
            vanished: phase(Phase::Vanished),
            off: phase(Phase::Off),
            requests: count(Slot::Request),
            dropped: count(Slot::Dropped),
            unreadable: self.unreadable.load(Ordering::Relaxed),
            configures: count(Slot::Configured),
            repeated_configures: count(Slot::Repeated),
            restarts: count(Slot::Restarted),
            relapses: count(Slot::Relapsed),
            updates: count(Slot::Updated),
            lock_refusals: count(Slot::LockRefused),
            token_refusals: count(Slot::TokenRefused),
            complaints: count(Slot::Complaint),
            lost_replies: count(Slot::ReplyLost),
            power_cuts: count(Slot::PowerCut),
            unsendable: self.unsendable.load(Ordering::Relaxed),
            connected: self.connected.load(Ordering::Relaxed),
            connects: self.connects.load(Ordering::Relaxed),
        }
    }

    /// The median time from a server's first provisioning request to its restart request.
    pub fn median_cycle(&self) -> Option<Duration> {
        let mut cycles = self.cycles.lock().unwrap_or_else(PoisonError::into_inner).clone();
        cycles.sort_unstable();
        cycles.get(cycles.len() / 2).map(|millis| Duration::from_millis(u64::from(*millis)))
    }

    /// The time from the start of the first server to the latest `configure`; none before that.
    pub fn worked(&self) -> Option<Duration> {
        let worked = *self.worked.lock().unwrap_or_else(PoisonError::into_inner);
        worked.map(|(first, latest)| latest - first).filter(|took| !took.is_zero())
    }

    /// The time from the first request to the latest `configure`; none before that.
    pub fn served(&self) -> Option<Duration> {
        let (_, latest) = (*self.worked.lock().unwrap_or_else(PoisonError::into_inner))?;
        latest.checked_duration_since(*self.asked.get()?).filter(|took| !took.is_zero())
    }

    fn phase(&self, phase: Phase) -> &AtomicU64 {
        #[expect(clippy::indexing_slicing, reason = "the array has a place for each phase")]
        &self.phases[phase as usize]
    }

    fn slot(&self, slot: Slot) -> &AtomicU64 {
        #[expect(clippy::indexing_slicing, reason = "the array has a place for each slot")]
        &self.notes[slot as usize]
    }

    fn count(&self, slot: Slot) {
        self.slot(slot).fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    Request,
    Dropped,
    Configured,
    Repeated,
    Restarted,
    Relapsed,
    Updated,
    LockRefused,
    TokenRefused,
    Complaint,
    ReplyLost,
    PowerCut,
}
