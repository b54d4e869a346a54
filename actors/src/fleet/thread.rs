//! The threads that the hosts' actors share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use actix_rt::{Arbiter, ArbiterHandle};

/// A host's actor, or a thread of them, that left this many unanswered is abandoned.
pub(super) const MISSED_PINGS: u32 = 3;

/// A thread that hosts' actors share. One hung actor is no reason to take it from the others, so it is asked itself.
pub(super) struct HostThread {
    number: u64,
    arbiter: Arbiter,
    answered: Arc<AtomicU32>,
    asked: u32,
}

impl HostThread {
    pub(super) fn start(number: u64) -> Self {
        Self { number, arbiter: Arbiter::new(), answered: Arc::new(AtomicU32::new(0)), asked: 0 }
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn handle(&self) -> ArbiterHandle {
        self.arbiter.handle()
    }

    /// Ends it, once it runs again, with all that is on it.
    pub(super) fn stop(&self) {
        self.arbiter.stop();
    }

    pub(super) fn ask(&mut self) {
        self.asked = self.asked.wrapping_add(1);
        let (answered, asked) = (Arc::clone(&self.answered), self.asked);
        // Refused only by a thread that has ended, which then counts as blocked.
        let _ = self.arbiter.spawn_fn(move || answered.store(asked, Ordering::Relaxed));
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.asked.wrapping_sub(self.answered.load(Ordering::Relaxed)) >= MISSED_PINGS
    }
}
