//! How the process is written to, and how it ends.

use std::time::{Duration, Instant};

use quartermaster_proto::provider::{CallId, HostCode};
use zeroize::Zeroizing;

use super::super::error::{CallError, Outcome};
use super::state::{Conversation, Ending, Outgoing, Phase, Talk, Writing};

/// How long the rest of a dead process's words is awaited.
const LINGER: Duration = Duration::from_millis(500);

impl Conversation {
    /// Puts a frame in line; the writer gets one at a time, so that it is always known which were surely not sent.
    pub(super) fn send(&mut self, id: Option<CallId>, bytes: Zeroizing<Vec<u8>>, now: Instant) {
        if self.input_closed {
            return;
        }
        self.outbox.push_back(Outgoing { id, bytes });
        self.write_next(now);
    }

    fn write_next(&mut self, now: Instant) {
        if self.writing.is_none()
            && let Some(frame) = self.outbox.pop_front()
        {
            self.writing = Some(Writing { id: frame.id, since: now });
            self.wants.push(Talk::Write(frame));
        }
    }

    pub(super) fn written(&mut self, now: Instant) {
        let Some(writing) = self.writing.take() else { return };
        if let Some(open) = writing.id.and_then(|id| self.open.get_mut(&id)) {
            self.wants.push(Talk::Sent(open.ticket));
            if open.is_running() {
                open.written(now);
            }
        }
        if let Phase::Configuring(id, due @ None) = &mut self.phase
            && writing.id == Some(*id)
        {
            *due = Some(now + self.settings.timeouts.configure);
        }
        self.write_next(now);
    }

    /// Nobody reads its input any more. What it has got already it may still answer.
    pub(super) fn write_failed(&mut self, untouched: bool) {
        let id = self.writing.take().and_then(|writing| writing.id);
        self.close_input();
        if self.is_ending() {
            return;
        }
        // Those behind it first: what is given back last is made first.
        self.give_back_unsent();
        if untouched && let Some(open) = id.and_then(|id| self.open.remove(&id)) {
            self.wants.push(Talk::GiveBack(vec![(open.ticket, open.call)]));
        }
        self.input_gone = true;
        let error = self.error(Outcome::Unknown, HostCode::Exited, "closed its standard input");
        self.poisoned.get_or_insert(Ending::Crashed(error));
    }

    /// Takes a frame back that was not handed to the writer yet.
    pub(super) fn unsend(&mut self, id: CallId) -> bool {
        let before = self.outbox.len();
        self.outbox.retain(|frame| frame.id != Some(id));
        self.outbox.len() < before
    }

    /// Gives all calls back whose frames were not handed to the writer yet.
    pub(super) fn give_back_unsent(&mut self) {
        let mut back = Vec::new();
        for frame in std::mem::take(&mut self.outbox) {
            if let Some(open) = frame.id.and_then(|id| self.open.remove(&id)) {
                back.push((open.ticket, open.call));
            }
        }
        if !back.is_empty() {
            self.wants.push(Talk::GiveBack(back));
        }
    }

    pub(super) fn close_input(&mut self) {
        if !self.input_closed {
            self.input_closed = true;
            self.wants.push(Talk::CloseInput);
        }
    }

    pub(super) fn timeout(&self, what: &str) -> CallError {
        self.error(Outcome::NotSent, HostCode::Timeout, what)
    }

    /// The handshake has failed.
    pub(super) fn refuse_start(&mut self, error: CallError, now: Instant) {
        self.die(Ending::of_start(error), now);
    }

    /// It failed us without a call being the reason.
    pub(super) fn crash(&mut self, code: HostCode, what: &str, now: Instant) {
        self.settle_open(code, what);
        let error = self.error(Outcome::Unknown, code, what);
        self.die(Ending::Crashed(error), now);
    }

    /// Answers what is open: the calls that were sent are unknown, the others are given back.
    pub(super) fn settle_open(&mut self, code: HostCode, what: &str) {
        self.give_back_unsent();
        for (_, open) in std::mem::take(&mut self.open) {
            let what = format!("{what} during `{}`", open.name());
            let error = self.error(Outcome::Unknown, code, &what);
            self.wants.push(Talk::Answer(open.ticket, Err(error)));
        }
    }

    /// Kills it and waits for its last words.
    pub(super) fn die(&mut self, ending: Ending, now: Instant) {
        if matches!(self.phase, Phase::Dying(..) | Phase::Over) {
            return;
        }
        self.close_input();
        self.outbox.clear();
        self.writing = None;
        self.wants.push(Talk::Kill);
        self.phase = Phase::Dying(ending, now + LINGER);
    }

    pub(super) fn over(&mut self) {
        if let Phase::Dying(ending, _) = std::mem::replace(&mut self.phase, Phase::Over) {
            self.wants.push(Talk::Over(ending));
        }
    }

    /// Looks whether it has ended, in whatever way.
    pub(super) fn look_for_the_end(&mut self, now: Instant) {
        let gone = self.exited.is_some() && self.errors_closed;
        match &self.phase {
            Phase::Over => {}
            Phase::Dying(..) => {
                if gone {
                    self.over();
                }
            }
            phase => {
                // While it is closing, its stages see to it as long as it lives.
                let closing = matches!(phase, Phase::Closing(..));
                let mute = self.output_closed || (self.input_gone && self.open.is_empty());
                if self.exited.is_none() && (closing || !mute) {
                    return;
                }
                // What it still had to say, and how it ended, is known in a moment.
                let until = *self.linger.get_or_insert(now + LINGER);
                if (gone && self.output_closed) || now >= until {
                    self.ended(closing, now);
                }
            }
        }
    }

    fn ended(&mut self, closing: bool, now: Instant) {
        let how = match (&self.exited, self.output_closed) {
            (Some(how), _) => how.clone(),
            (None, true) => "closed its standard output".to_owned(),
            (None, false) => "closed its standard input".to_owned(),
        };
        if closing {
            self.settle_open(HostCode::Closed, "was shut down");
            self.die(Ending::Closed, now);
        } else if self.is_starting() {
            let before = if matches!(self.phase, Phase::Describing(..)) {
                "before it had described itself"
            } else {
                "before it was configured"
            };
            let error = self.error(Outcome::NotSent, HostCode::Exited, &format!("{how} {before}"));
            self.refuse_start(error, now);
        } else if let Some(Ending::Replaced(why)) = self.poisoned.take() {
            self.settle_open(HostCode::Exited, &how);
            self.die(Ending::Replaced(why), now);
        } else {
            self.crash(HostCode::Exited, &how, now);
        }
        if self.exited.is_some() {
            self.over();
        }
    }
}
