//! The threads that the hosts' actors share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use actix::Addr;
use actix_rt::{Arbiter, ArbiterHandle};
use futures::future::join_all;
use tokio::time::{sleep, timeout};

use crate::host::HostProvisioner;
use crate::supervise::Ping;

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

    /// Ends it once none of these cycles, which run on it, goes on. One that answers no more is not waited for; how often is
    /// looked says `every`.
    pub(super) fn stop_after(&self, cycles: Vec<Addr<HostProvisioner>>, every: Duration) {
        // Refused only by a thread that has ended.
        let _ = self.arbiter.spawn(async move {
            let mut left: Vec<_> = cycles.into_iter().map(|cycle| (cycle, 0)).collect();
            while !left.is_empty() {
                sleep(every).await;
                let looks = left.into_iter().map(|(cycle, missed)| async move {
                    match timeout(every, cycle.send(Ping)).await {
                        Ok(Ok(_)) => Some((cycle, 0)),
                        Err(_) if missed + 1 < MISSED_PINGS => Some((cycle, missed + 1)),
                        Ok(Err(_)) | Err(_) => None,
                    }
                });
                left = join_all(looks).await.into_iter().flatten().collect();
            }
            Arbiter::current().stop();
        });
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

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[actix::test]
    async fn a_thread_without_cycles_ends_with_all_that_is_on_it() {
        let thread = HostThread::start(1);
        let (on_it, ended) = oneshot::channel::<()>();
        let kept = thread.handle().spawn(async move {
            let _on_it = on_it;
            std::future::pending::<()>().await;
        });
        assert!(kept);
        thread.stop_after(Vec::new(), Duration::from_millis(10));
        let ended = timeout(Duration::from_secs(20), ended).await.expect("the thread has ended");
        assert!(ended.is_err(), "its work was dropped");
    }
}
