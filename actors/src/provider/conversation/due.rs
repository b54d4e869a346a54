//! What time brings: limits, signs of life, the stages of an end.

use std::time::{Duration, Instant};

use quartermaster_proto::provider::{CallId, HostCode};

use super::super::error::{CallError, Outcome};
use super::super::frames;
use super::super::open::{Open, Stage, Why};
use super::state::{Conversation, Ending, Phase, Talk};

/// So many signs of life in a row may be missed.
const MISSES: u32 = 3;

impl Conversation {
    /// When `Event::Due` is to be reported.
    pub fn due(&self) -> Option<Instant> {
        let phase = match &self.phase {
            Phase::Describing(_, due) | Phase::Dying(_, due) => Some(*due),
            Phase::Configuring(_, due) => *due,
            Phase::Closing(since, _, stage) => Some(*since + self.stage_time(*stage)),
            Phase::Ready => self.idle_due(),
            Phase::Over => return None,
        };
        if matches!(self.phase, Phase::Dying(..)) {
            return phase;
        }
        let writing = self.writing.as_ref().map(|writing| writing.since + self.settings.timeouts.write);
        let open = self.open.values().filter_map(Open::due).min();
        let ping = self.ping.map(|(_, due)| due);
        // While it is closing, its stages see to it as long as it lives.
        let staged = matches!(self.phase, Phase::Closing(..)) && self.exited.is_none();
        let linger = self.linger.filter(|_| !staged);
        [phase, writing, open, ping, linger].into_iter().flatten().min()
    }

    fn idle_due(&self) -> Option<Instant> {
        if !self.open.is_empty() || self.ping.is_some() || !self.is_ready() {
            return None;
        }
        let stop = self.settings.idle_stop.map(|stop| self.idle + stop);
        let ping = self.pings().then(|| self.heard + self.settings.timeouts.ping_every);
        [stop, ping].into_iter().flatten().min()
    }

    fn pings(&self) -> bool {
        self.settings.compat.ping_probe || self.terms.as_ref().is_some_and(|terms| terms.ping)
    }

    fn stage_time(&self, stage: u32) -> Duration {
        self.settings.timeouts.shutdown * (3 + stage.min(2)) / 5
    }

    pub(super) fn due_now(&mut self, now: Instant) {
        match &self.phase {
            Phase::Describing(_, due) if *due <= now => {
                let limit = self.settings.timeouts.describe;
                self.refuse_start(self.timeout(&format!("did not describe itself within {limit:?}")), now);
            }
            Phase::Configuring(_, Some(due)) if *due <= now => {
                let limit = self.settings.timeouts.configure;
                self.refuse_start(self.timeout(&format!("was not configured within {limit:?}")), now);
            }
            Phase::Closing(since, id, stage) if *since + self.stage_time(*stage) <= now => {
                let (since, id, stage) = (*since, *id, *stage);
                self.phase = Phase::Closing(since, id, stage + 1);
                match stage {
                    0 => self.close_input(),
                    1 => self.wants.push(Talk::Terminate),
                    _ => {
                        self.settle_open(HostCode::Closed, "was shut down");
                        self.die(Ending::Closed, now);
                    }
                }
            }
            Phase::Dying(_, due) if *due <= now => self.over(),
            _ => {}
        }
        if matches!(self.phase, Phase::Dying(..) | Phase::Over) {
            return;
        }
        self.write_due(now);
        self.open_due(now);
        self.idle_now(now);
    }

    fn write_due(&mut self, now: Instant) {
        let limit = self.settings.timeouts.write;
        let Some(id) = self.writing.as_ref().filter(|writing| writing.since + limit <= now).map(|w| w.id)
        else {
            return;
        };
        if self.is_starting() {
            self.refuse_start(self.timeout(&format!("read nothing for {limit:?}")), now);
            return;
        }
        // The frame cannot be taken back, and none can follow it.
        self.give_back_unsent();
        self.close_input();
        self.writing = None;
        let abandon = self.settings.timeouts.abandon;
        if let Some(open) = id.and_then(|id| self.open.get_mut(&id)) {
            open.overdue(Why::Blocked(limit), now + abandon);
        }
        let why = format!("read nothing for {limit:?}");
        self.poisoned.get_or_insert(Ending::Replaced(why));
        self.after_answer(now);
    }

    fn open_due(&mut self, now: Instant) {
        let due: Vec<CallId> = self
            .open
            .iter()
            .filter(|(_, open)| open.due().is_some_and(|due| due <= now))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            let Some(open) = self.open.get(&id) else { continue };
            match open.stage {
                Stage::Running => {
                    let limit = open.limit.unwrap_or_default();
                    self.call_back(id, Why::TimedOut(limit), now);
                }
                Stage::Overdue(why, _) => self.give_up(id, why, now),
            }
        }
    }

    /// The call is over for whoever made it, unless its answer still comes.
    pub(super) fn call_back(&mut self, id: CallId, why: Why, now: Instant) {
        let timeouts = self.settings.timeouts;
        let told = self.terms.as_ref().is_some_and(|terms| terms.cancel) && !self.is_ending();
        let wait = if told { timeouts.cancel } else { timeouts.abandon };
        if let Some(open) = self.open.get_mut(&id) {
            open.overdue(why, now + wait);
        }
        if told {
            let frame = frames::cancel(id, why.reason(), timeouts.cancel);
            self.send(None, frame, now);
        }
    }

    fn give_up(&mut self, id: CallId, why: Why, now: Instant) {
        let Some(open) = self.open.remove(&id) else { return };
        self.given_up.insert(id);
        let what = format!("`{}` {}", open.name(), why.text());
        let error = CallError::host(
            Outcome::Unknown,
            HostCode::Timeout,
            format!("provider `{}`: {what}", self.settings.name),
        );
        self.wants.push(Talk::Answer(open.ticket, Err(error)));
        self.poisoned.get_or_insert(Ending::Replaced(what));
        self.give_back_unsent();
        self.after_answer(now);
    }

    /// Something is not open any more.
    pub(super) fn after_answer(&mut self, now: Instant) {
        self.idle = now;
        if self.open.is_empty()
            && !self.input_gone
            && !self.is_ending()
            && let Some(ending) = self.poisoned.take()
        {
            self.die(ending, now);
        }
    }

    fn idle_now(&mut self, now: Instant) {
        if let Some((id, due)) = self.ping
            && due <= now
        {
            self.ping = None;
            self.heard = now;
            self.given_up.insert(id);
            self.misses += 1;
            if self.misses >= MISSES {
                let what = format!("gave no sign of life, {MISSES} times in a row");
                self.crash(HostCode::Timeout, &what, now);
                return;
            }
        }
        if self.idle_due().is_none_or(|due| due > now) {
            return;
        }
        if self.settings.idle_stop.is_some_and(|stop| self.idle + stop <= now) {
            self.close(now);
        } else if let Some(id) = self.ids.issue() {
            self.ping = Some((id, now + self.settings.timeouts.ping));
            self.send(Some(id), frames::ping(id), now);
        }
    }
}
