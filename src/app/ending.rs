//! How a running instance ends: by signal, by an operator's drain, or because it cannot go on.

use std::time::Duration;

use quartermaster_actors::control::ControlHandle;
use quartermaster_actors::fleet::{FleetHandle, FleetSnapshot};
use quartermaster_actors::supervise::OverseerHandle;

use super::signals::Signals;
use crate::exit::Exit;
use crate::notify;
use crate::operate::Operator;

/// After a signal, cycles in flight may run on for this long; then they end at their next safe point.
const FINISH_WITHIN: Duration = Duration::from_secs(10);
/// Time between two words about a drain that is under way.
const DRAINING_SAID_EVERY: Duration = Duration::from_secs(30);

/// What an end has to do with.
pub(super) struct Ending<'a> {
    pub control: &'a ControlHandle,
    pub fleet: &'a FleetHandle,
    pub overseer: &'a OverseerHandle,
    pub operator: &'a Operator,
}

/// How the work ended.
pub(super) enum Ended {
    /// In good order, or with a fault: everything is to be stopped properly.
    Properly(Exit),
    /// Asked a second time: everything is to be stopped at once.
    AtOnce,
}

impl Ending<'_> {
    /// Waits for the first cause of an end and for what is in flight.
    pub async fn wait(&self, signals: &mut Signals) -> Ended {
        let ended = tokio::select! {
            signal = signals.next() => self.stop(signal, signals).await,
            () = self.operator.drain_asked() => self.drain(signals).await,
            failed = self.failed() => failed,
        };
        notify::stopping();
        ended
    }

    async fn failed(&self) -> Ended {
        let fatal = self.overseer.fatal().await;
        tracing::error!("{fatal}");
        Ended::Properly(Exit::Failure)
    }

    /// An operator's drain: whatever is in flight is finished, however long it takes. A signal hurries it.
    async fn drain(&self, signals: &mut Signals) -> Ended {
        tracing::info!(
            component = "control",
            "Draining: nothing new is taken, what is in flight is finished"
        );
        tokio::select! {
            () = self.idle() => Ended::Properly(Exit::Success),
            signal = signals.next() => self.stop(signal, signals).await,
            failed = self.failed() => failed,
        }
    }

    async fn idle(&self) {
        let mut numbers = self.fleet.subscribe();
        while tokio::time::timeout(DRAINING_SAID_EVERY, numbers.wait_for(is_idle)).await.is_err() {
            let in_flight = self.fleet.snapshot().counts.in_flight;
            tracing::info!(component = "control", in_flight, "Draining: {in_flight} servers are in flight");
        }
    }

    async fn stop(&self, signal: &'static str, signals: &mut Signals) -> Ended {
        // Not at the begin of a drain: from this word on the service manager counts the time.
        notify::stopping();
        tracing::info!(signal, "stopping: nothing new is taken, what is in flight is finished");
        tokio::select! {
            () = self.finish() => Ended::Properly(Exit::Success),
            signal = signals.next() => {
                tracing::warn!(signal, "stopping at once, as asked a second time");
                Ended::AtOnce
            }
            failed = self.failed() => failed,
        }
    }

    /// Admits nothing more and waits for what is in flight: some time for whole cycles, then for those only that are
    /// between configure and restart, which are never left there.
    async fn finish(&self) {
        let Self { control, fleet, .. } = self;
        if let Err(error) = control.drain().await {
            tracing::warn!("could not set the run state: {error}");
        }
        let mut numbers = fleet.subscribe();
        if tokio::time::timeout(FINISH_WITHIN, numbers.wait_for(is_idle)).await.is_ok() {
            return;
        }
        tracing::info!(
            in_flight = fleet.snapshot().counts.in_flight,
            "ending cycles at their next safe point"
        );
        // Before the cycles hear of it: what one of them gives up must not be begun for the next in line.
        if let Err(error) = control.end().await {
            tracing::warn!("could not set the run state: {error}");
        }
        loop {
            // Repeated, because a keeper that was restarted meanwhile has not heard of it.
            if let Err(refused) = fleet.end_cycles() {
                tracing::debug!("{refused}");
            }
            if tokio::time::timeout(FINISH_WITHIN, numbers.wait_for(is_idle)).await.is_ok() {
                return;
            }
            tracing::info!(
                in_flight = fleet.snapshot().counts.in_flight,
                "waiting for servers between configure and restart; a second signal ends at once"
            );
        }
    }
}

const fn is_idle(now: &FleetSnapshot) -> bool {
    now.counts.in_flight == 0
}
