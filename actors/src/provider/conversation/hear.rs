//! What the process says.

use std::sync::Arc;
use std::time::Instant;

use quartermaster_proto::provider::{
    Body, ErrorCode, Executed, Frame, FrameError, HostCode, Invocation, Progress, ProviderError, Read, Reply,
    Schema, Warning, decode,
};

use super::super::error::{CallError, Outcome};
use super::super::frames::{self, Terms};
use super::super::messages::{Answer, Ask};
use super::super::open::Open;
use super::state::{Conversation, Ending, Phase, Talk};

/// So many different remarks on one process go to the log; each goes once.
const REMARKS: usize = 32;

impl Conversation {
    pub(super) fn line(&mut self, line: &[u8], now: Instant) {
        if matches!(self.phase, Phase::Dying(..) | Phase::Over) {
            return;
        }
        match decode(line, &frames::limits(&self.settings)) {
            Ok(decoded) => {
                self.remark(&decoded.warnings);
                match decoded.frame {
                    Frame::Blank => {}
                    Frame::Reply(reply) => self.reply(reply, line, now),
                    Frame::Progress(progress) => self.progress(progress, now),
                    Frame::Dropped => self.heard = now,
                }
            }
            Err(error)
                if error.is_stray() && self.settings.compat.log_stray_stdout && !self.is_starting() =>
            {
                let shown = self.excerpt(line);
                self.wants.push(Talk::BadFrame);
                self.wants.push(Talk::Odd(format!("wrote a line that is no frame: {shown}")));
            }
            Err(error) => self.bad_frame(&error, line, now),
        }
    }

    /// A line without its end counts if it is a frame; if not, it died in the middle of one.
    pub(super) fn rest(&mut self, rest: &[u8], now: Instant) {
        if decode(rest, &frames::limits(&self.settings)).is_ok() {
            self.line(rest, now);
        }
    }

    /// Each kind of remark once, and not too many kinds.
    fn remark(&mut self, warnings: &[Warning]) {
        for warning in warnings {
            let text = warning.to_string();
            if self.remarks.len() < REMARKS && self.remarks.insert(text.clone()) {
                self.wants.push(Talk::Odd(text));
            }
        }
    }

    fn reply(&mut self, reply: Reply, line: &[u8], now: Instant) {
        self.heard = now;
        let id = reply.id;
        match self.phase {
            Phase::Describing(asked, _) if asked == id => return self.described(reply.body, now),
            Phase::Configuring(asked, _) if asked == id => return self.configured(reply.body, now),
            Phase::Closing(since, Some(asked), stage) if asked == id => {
                self.phase = Phase::Closing(since, None, stage.max(1));
                self.close_input();
                return;
            }
            _ => {}
        }
        if self.ping.is_some_and(|(asked, _)| asked == id) {
            // Whatever it says, it lives.
            self.ping = None;
            self.misses = 0;
        } else if let Some(open) = self.open.remove(&id) {
            let result = self.read(&open, reply.body);
            if let Err(error) = &result
                && error.outcome == Outcome::Unknown
            {
                // It is no answer to what was asked.
                let what = format!("answered `{}` with something else: {}", open.name(), error.message());
                let error =
                    self.error(Outcome::Unknown, HostCode::BadFrame, &what).with_detail(self.excerpt(line));
                self.open.insert(id, open);
                self.fail_all(&error, now);
                return;
            }
            self.wants.push(Talk::Answer(open.ticket, result));
            self.after_answer(now);
        } else if self.given_up.remove(&id) {
            self.wants.push(Talk::Late);
        } else if self.ids.issued(id) {
            self.wants.push(Talk::Odd(format!("answered call {id} twice; the second answer was dropped")));
        } else {
            self.bad_frame(&FrameError::NotIssued { id }, line, now);
        }
    }

    /// The answer to what was asked. An error of outcome unknown is a frame that answers nothing.
    fn read(&mut self, open: &Open, body: Body) -> Result<Answer, CallError> {
        let failed = |error: ProviderError| {
            if error.host_code() == Some(HostCode::BadFrame) {
                CallError { outcome: Outcome::Unknown, error: Box::new(error), stderr: Vec::new() }
            } else {
                CallError::answered(error)
            }
        };
        match &open.call.ask {
            Ask::Execute(action) => {
                let read = body.execute().map_err(|error| self.told(failed(error), action.undo))?;
                self.executed(read, &action.action)
            }
            Ask::Relay(relayed) => {
                let read = body.execute().map_err(|error| self.told(failed(error), false))?;
                self.executed(read, &relayed.action)
            }
            Ask::Lookup(_) => {
                let Read { value, warnings } = body.lookup().map_err(failed)?;
                self.remark(&warnings);
                Ok(Answer::Found(value))
            }
            Ask::Validate(..) => body.validate().map(Answer::Diagnosed).map_err(failed),
        }
    }

    fn executed(&mut self, read: Read<Executed>, action: &str) -> Result<Answer, CallError> {
        let Read { value: done, mut warnings } = read;
        let Some(terms) = &self.terms else { return Ok(Answer::Executed(done)) };
        frames::cover_undo(&done.undo, terms, &self.masks);
        let known = |name: &str| terms.schema.actions.contains_key(name);
        warnings.extend(Invocation::undeclared(&done.undo, known));
        let (done, complaint) = frames::outputs(terms, action, done, &self.settings, &self.masks);
        self.remark(&warnings);
        let Some(what) = complaint else { return Ok(Answer::Executed(done)) };
        let what = format!("the outputs of `{action}` are not as declared: {what}");
        if self.settings.strict_outputs {
            let message = format!("provider `{}`: {what}", self.settings.name);
            let mut error = CallError::host(Outcome::Failed, HostCode::BadOutputs, message);
            // The effect has happened, and this is what takes it back.
            error.error.more.undo = done.undo;
            return Err(error);
        }
        self.wants.push(Talk::Odd(what));
        Ok(Answer::Executed(done))
    }

    /// A provider's error, with what else there is to say about it.
    fn told(&self, mut error: CallError, undo: bool) -> CallError {
        if let Some(terms) = &self.terms {
            frames::cover_undo(&error.error.more.undo, terms, &self.masks);
        }
        // Whether it stumbled over the wish for an undo, and whether anything was done, cannot be known: so nothing is repeated.
        if undo && self.settings.compat.undo && *error.code() == ErrorCode::InvalidRequest {
            let hint = "if it does not know `undo`, set `compat.undo: never`";
            let detail =
                error.error.detail.take().map_or_else(|| hint.to_owned(), |said| format!("{said}; {hint}"));
            error = error.with_detail(detail);
        }
        error
    }

    fn progress(&mut self, progress: Progress, now: Instant) {
        self.heard = now;
        if !self.terms.as_ref().is_some_and(|terms| terms.progress) {
            self.remark(&[Warning::Dropped { method: "`x/progress`".to_owned() }]);
            return;
        }
        if let Some(open) = self.open.get_mut(&progress.id) {
            open.progressed(now);
            self.wants.push(Talk::Progress(open.ticket, progress));
        }
    }

    fn described(&mut self, body: Body, now: Instant) {
        let read = match body.describe() {
            Ok(read) => read,
            Err(error) => return self.refuse_start(self.of_handshake(error, "describe"), now),
        };
        self.remark(&read.warnings);
        let schema = Arc::new(read.value);
        let changed =
            self.expected.as_ref().map(|expected| expected.differences(&schema)).unwrap_or_default();
        if !changed.is_empty() {
            let what = format!("declares another schema than before: {}", changed.join("; "));
            let error = self.error(Outcome::NotSent, HostCode::SchemaChanged, &what);
            return self.refuse_start(error, now);
        }
        let probed = self.settings.probed.as_ref().filter(|_| self.expected.is_none());
        for difference in probed.map(|probed| probed.differences(&schema)).unwrap_or_default() {
            self.wants.push(Talk::Odd(format!("declares something else than with `schema`: {difference}")));
        }
        self.take_terms(schema, now);
    }

    fn take_terms(&mut self, schema: Arc<Schema>, now: Instant) {
        let Some(id) = self.ids.issue() else { return };
        let configured = Terms::agree(schema, &self.settings)
            .and_then(|terms| Ok((frames::configure(id, &terms, &self.settings, &self.masks)?, terms)));
        match configured {
            Ok((frame, terms)) => {
                self.terms = Some(terms);
                self.phase = Phase::Configuring(id, None);
                self.send(Some(id), frame, now);
            }
            Err(error) => self.refuse_start(error, now),
        }
    }

    fn configured(&mut self, body: Body, now: Instant) {
        match body.configure() {
            Ok(()) => {
                self.phase = Phase::Ready;
                self.idle = now;
                if let Some(terms) = &self.terms {
                    self.wants.push(Talk::Ready(Arc::clone(&terms.schema)));
                }
            }
            Err(error) => self.refuse_start(self.of_handshake(error, "configure"), now),
        }
    }

    /// The handshake's errors name the provider and what was asked of it.
    fn of_handshake(&self, mut error: ProviderError, method: &str) -> CallError {
        error.message = format!("provider `{}`, {method}: {}", self.settings.name, error.message);
        CallError { outcome: Outcome::NotSent, error: Box::new(error), stderr: Vec::new() }
    }

    pub(super) fn overlong(&mut self, now: Instant) {
        let what = format!("wrote a line over the limit of {} bytes", self.settings.max_frame);
        let error = self.error(Outcome::Unknown, HostCode::FrameTooLarge, &what);
        self.fail_all(&error, now);
    }

    fn bad_frame(&mut self, error: &FrameError, line: &[u8], now: Instant) {
        let error =
            self.error(Outcome::Unknown, error.code(), &error.to_string()).with_detail(self.excerpt(line));
        self.fail_all(&error, now);
    }

    fn excerpt(&self, line: &[u8]) -> String {
        self.masks.excerpt(line)
    }

    /// Nothing the process says can be trusted any more.
    fn fail_all(&mut self, error: &CallError, now: Instant) {
        self.wants.push(Talk::BadFrame);
        if self.is_starting() {
            self.refuse_start(error.clone().not_sent(), now);
            return;
        }
        self.give_back_unsent();
        for (_, open) in std::mem::take(&mut self.open) {
            self.wants.push(Talk::Answer(open.ticket, Err(error.clone())));
        }
        let ending = if self.is_ending() { Ending::Closed } else { Ending::Crashed(error.clone()) };
        self.die(ending, now);
    }

    pub(super) fn error(&self, outcome: Outcome, code: HostCode, what: &str) -> CallError {
        CallError::host(outcome, code, format!("provider `{}`: {what}", self.settings.name))
    }
}
