//! What the FleetKeeper answers to those who ask, and does for operators.

use quartermaster_proto::time::whole_ms;
use std::time::Instant;

use actix::{Context, Handler, MessageResult};
use quartermaster_proto::choria::identity::Identity;

use super::actor::FleetKeeper;
use super::entry::{Entry, State};
use super::messages::{
    ForgetHost, ObserveHost, ObserveHosts, ObserveOverview, ObserveTroubled, RetryHost, RunningAttempt,
};
use super::roster::Roster;
use super::view::{FailureView, FleetOverview, Forgot, HostPage, HostView, OldestWaiting, SlowestStep};
use crate::host::CycleStopAsked;
use crate::journal::AttemptRecord;
use crate::metrics::{Fact, StepFact};
use crate::steps::Record;

impl FleetKeeper {
    fn view(&self, identity: &Identity, entry: &Entry, now: Instant) -> HostView {
        let since = |then: Instant| whole_ms(now.saturating_duration_since(then));
        let mut view = HostView {
            identity: identity.clone(),
            state: entry.state.name().to_owned(),
            in_state_ms: since(entry.since()),
            attempt: entry.attempt(),
            failures: entry.failures,
            step: None,
            step_tries: None,
            in_step_ms: None,
            waited_ms: whole_ms(entry.waited),
            retry_in_ms: None,
            held_after: None,
            confirmed: None,
            first_seen_ms: since(entry.first_seen),
            last_seen_ms: since(entry.last_seen),
            failure: entry.failure.as_ref().map(|failure| FailureView {
                cause: failure.cause.to_string(),
                error: failure.error.clone(),
                ago_ms: since(failure.at),
                helper: failure.helper.clone(),
            }),
        };
        match &entry.state {
            State::InFlight { cycle, .. } => {
                let step = self.running.get(cycle).and_then(|running| running.board.current());
                if let Some(step) = step {
                    view.step = Some(step.step.name().to_owned());
                    view.step_tries = Some(step.tries);
                    view.in_step_ms = Some(since(step.began));
                }
            }
            State::Waiting { since: then } => view.waited_ms = since(*then),
            State::Cooling { until, .. } => {
                view.retry_in_ms = Some(whole_ms(until.saturating_duration_since(now)));
            }
            State::Held { ending, confirmed, .. } => {
                view.held_after = Some(ending.name().to_owned());
                view.confirmed = (*ending == crate::host::Ending::Provisioned).then_some(*confirmed);
            }
            State::Known | State::GaveUp { .. } | State::Done => {}
        }
        view
    }

    /// Hosts with a failure, newest failure first.
    fn failures(&self, roster: &Roster, most: usize, now: Instant) -> Vec<HostView> {
        let at = |entry: &Entry| entry.failure.as_ref().map(|failure| failure.at);
        let mut failed: Vec<_> =
            roster.entries().filter_map(|(identity, entry)| Some((at(entry)?, identity, entry))).collect();
        failed.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        failed.truncate(most);
        failed.into_iter().map(|(_, identity, entry)| self.view(identity, entry, now)).collect()
    }

    fn slowest_step(&self, roster: &Roster, now: Instant) -> Option<SlowestStep> {
        let steps = self.running.iter().filter_map(|(cycle, running)| {
            let step = running.board.current()?;
            Some((roster.host_of(*cycle)?, step))
        });
        let (identity, step) = steps.min_by_key(|(_, step)| step.began)?;
        Some(SlowestStep {
            identity: identity.clone(),
            step: step.step.name().to_owned(),
            tries: step.tries,
            took_ms: whole_ms(now.saturating_duration_since(step.began)),
        })
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl Handler<ObserveTroubled> for FleetKeeper {
    type Result = MessageResult<ObserveTroubled>;

    fn handle(&mut self, ObserveTroubled { most }: ObserveTroubled, _: &mut Self::Context) -> Self::Result {
        let now = now();
        let roster = self.settings.shelf.roster();
        let mut views: Vec<_> = roster
            .entries()
            .filter(|(_, entry)| entry.failure.is_some() || matches!(entry.state, State::InFlight { .. }))
            .map(|(identity, entry)| self.view(identity, entry, now))
            .collect();
        drop(roster);
        views.sort_by(|a, b| a.identity.cmp(&b.identity));
        views.truncate(most);
        MessageResult(views)
    }
}

impl Handler<ObserveHosts> for FleetKeeper {
    type Result = MessageResult<ObserveHosts>;

    fn handle(&mut self, ObserveHosts(query): ObserveHosts, _: &mut Self::Context) -> Self::Result {
        let now = now();
        let roster = self.settings.shelf.roster();
        let (names, total) = roster.page(&query);
        let hosts: Vec<_> = names
            .iter()
            .filter_map(|identity| Some(self.view(identity, roster.get(identity)?, now)))
            .collect();
        let full = hosts.len() >= query.most.clamp(1, super::view::MAX_PAGE);
        let next = hosts.last().map(|host| host.identity.clone()).filter(|_| full);
        MessageResult(HostPage { hosts, next, total })
    }
}

impl Handler<ObserveHost> for FleetKeeper {
    type Result = MessageResult<ObserveHost>;

    fn handle(&mut self, ObserveHost(identity): ObserveHost, _: &mut Self::Context) -> Self::Result {
        let now = now();
        let roster = self.settings.shelf.roster();
        MessageResult(roster.get(&identity).map(|entry| self.view(&identity, entry, now)))
    }
}

impl Handler<ObserveOverview> for FleetKeeper {
    type Result = MessageResult<ObserveOverview>;

    fn handle(
        &mut self,
        ObserveOverview { failures }: ObserveOverview,
        _: &mut Self::Context,
    ) -> Self::Result {
        let now = now();
        let roster = self.settings.shelf.roster();
        MessageResult(FleetOverview {
            counts: roster.counts(),
            oldest_waiting: roster.oldest_waiting().map(|(identity, since)| OldestWaiting {
                identity: identity.clone(),
                waited_ms: whole_ms(now.saturating_duration_since(since)),
            }),
            slowest_step: self.slowest_step(&roster, now),
            failures: self.failures(&roster, failures, now),
        })
    }
}

impl Handler<RunningAttempt> for FleetKeeper {
    type Result = MessageResult<RunningAttempt>;

    fn handle(&mut self, RunningAttempt(identity): RunningAttempt, _: &mut Self::Context) -> Self::Result {
        let now = now();
        let roster = self.settings.shelf.roster();
        let found = roster.get(&identity).and_then(|entry| match entry.state {
            State::InFlight { cycle, since, .. } => Some((entry.attempt(), cycle, since)),
            _ => None,
        });
        drop(roster);
        MessageResult(found.and_then(|(attempt, cycle, since)| {
            let board = &self.running.get(&cycle)?.board;
            let wall_ms = (self.settings.wall_ms)();
            let took_ms = whole_ms(now.saturating_duration_since(since));
            Some(AttemptRecord {
                attempt,
                cycle,
                began_ms: wall_ms.saturating_sub_unsigned(took_ms),
                took_ms,
                ending: "running".to_owned(),
                cause: None,
                error: None,
                steps: board.records(now, wall_ms),
                helper: board.helper(),
            })
        }))
    }
}

impl Handler<RetryHost> for FleetKeeper {
    type Result = bool;

    fn handle(&mut self, RetryHost(identity): RetryHost, ctx: &mut Context<Self>) -> bool {
        let known = {
            let mut roster = self.settings.shelf.roster();
            let decided = roster.decide_steps(&identity);
            let known = roster.retry(&identity, now());
            drop(roster);
            if decided {
                self.settings.journal.note_step(&identity, &Record::Decided, (self.settings.wall_ms)());
                self.settings.recorder.record(Fact::Step(StepFact::decided(identity.as_str())));
            }
            known
        };
        if known {
            self.remember(&identity);
        }
        self.pump(ctx);
        known
    }
}

impl Handler<ForgetHost> for FleetKeeper {
    type Result = MessageResult<ForgetHost>;

    fn handle(&mut self, ForgetHost(identity): ForgetHost, ctx: &mut Context<Self>) -> Self::Result {
        let (mut forgot, ended) = self.settings.shelf.roster().forget(&identity);
        if let Some(running) = ended.and_then(|cycle| self.running.remove(&cycle)) {
            running.addr.do_send(CycleStopAsked);
        }
        if forgot != Forgot::Committed && self.settings.journal.forget(&identity, (self.settings.wall_ms)()) {
            forgot = Forgot::Forgotten;
        }
        self.pump(ctx);
        MessageResult(forgot)
    }
}
