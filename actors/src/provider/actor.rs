//! The runner of one provider: carries out what the plan decides, on real processes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use actix::{Actor, AsyncContext as _, Context, Handler, SpawnHandle};
use quartermaster_proto::provider::{HostCode, Schema};
use rustix::process::Signal;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::board::Board;
use super::conversation::Event;
use super::effect::{Effect, Input, Note, ProcessId};
use super::error::{CallError, Outcome};
use super::fact::{CallEnded, Happening, Load, ProviderFact, ProviderSink};
use super::masks::Masks;
use super::messages::{
    AbandonCall, Answer, AskProvider, Call, CallBack, CloseProvider, Heard, ProcessStarted, ProgressSink,
    Ticket, WarmUp,
};
use super::plan::Plan;
use super::process::{self, Process, Running};
use super::settings::ProviderSettings;
use super::stderr::Stderr;
use super::trace::{TraceLine, TraceSink};
use crate::child::Orphans;
use crate::supervise::ExitNotice;

/// Messages that may wait: answers of processes wait for their turn, calls are counted by the plan's own queue.
const MAILBOX: usize = 1_024;

/// What every life of a runner is made of; its owner's factory keeps one and hands out clones.
pub struct ProviderParts {
    settings: Arc<ProviderSettings>,
    record: ProviderSink,
    trace: Option<TraceSink>,
    orphans: Orphans,
    board: Arc<Board>,
}

impl fmt::Debug for ProviderParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderParts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ProviderParts {
    /// Parts for a runner of this provider.
    pub fn new(settings: ProviderSettings, record: ProviderSink, orphans: Orphans) -> Self {
        let board = Arc::new(Board::new(&settings));
        Self { settings: Arc::new(settings), record, trace: None, orphans, board }
    }

    /// The same, with every frame shown.
    #[must_use]
    pub fn traced(mut self, trace: TraceSink) -> Self {
        self.trace = Some(trace);
        self
    }

    /// The settings.
    pub fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    pub(super) const fn board(&self) -> &Arc<Board> {
        &self.board
    }
}

/// A call somebody waits for.
struct Asked {
    call: Arc<Call>,
    answer: oneshot::Sender<Result<Answer, CallError>>,
    progress: Option<ProgressSink>,
    since: Instant,
    sent: Option<Instant>,
}

/// The runner. Its processes are killed with it, and whoever waits for a call hears that it was lost.
pub struct ProviderRunner {
    parts: Arc<ProviderParts>,
    plan: Plan,
    masks: Masks,
    asked: HashMap<Ticket, Asked>,
    processes: HashMap<ProcessId, Running>,
    starting: JoinSet<()>,
    /// Those who wait for a process to be ready.
    warming: Vec<oneshot::Sender<Result<Arc<Schema>, CallError>>>,
    closing: Vec<oneshot::Sender<()>>,
    timer: Option<(SpawnHandle, Instant)>,
    born: Instant,
    load: Load,
    _notice: Option<ExitNotice>,
}

impl fmt::Debug for ProviderRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderRunner")
            .field("name", &self.parts.settings.name)
            .field("asked", &self.asked.len())
            .field("processes", &self.processes.len())
            .finish_non_exhaustive()
    }
}

impl ProviderRunner {
    /// A new life of the runner. `notice` tells its owner of its end.
    pub fn new(parts: Arc<ProviderParts>, notice: Option<ExitNotice>) -> Self {
        let masks = Masks::default();
        let plan = Plan::new(Arc::clone(&parts.settings), masks.clone());
        Self {
            parts,
            plan,
            masks,
            asked: HashMap::new(),
            processes: HashMap::new(),
            starting: JoinSet::new(),
            warming: Vec::new(),
            closing: Vec::new(),
            timer: None,
            born: Instant::now(),
            load: Load::default(),
            _notice: notice,
        }
    }

    fn feed(&mut self, input: Input, ctx: &mut Context<Self>) {
        let effects = self.plan.handle(input, Instant::now().into_std(), rand::random());
        let mut sent = None;
        for effect in effects {
            if let Effect::Write(process, _) = &effect {
                sent = Some(*process);
            }
            self.carry_out(effect, ctx);
        }
        // Until the next call, what it says is about the last one.
        if let Some(process) = sent
            && let Some(running) = self.processes.get(&process)
        {
            running.set_about(self.plan.about(process));
        }
        self.weigh();
        while self.starting.try_join_next().is_some() {}
        self.parts.board.show(&self.plan);
        self.set_timer(ctx);
    }

    fn weigh(&mut self) {
        let plan = &self.plan;
        let load = Load { ready: plan.ready(), queued: plan.queued(), open: plan.open() };
        if load != self.load {
            self.load = load;
            self.say(Happening::Loaded(load));
        }
    }

    /// The timer is only moved when it would be late: one that is early finds nothing to do and is set again.
    fn set_timer(&mut self, ctx: &mut Context<Self>) {
        let Some(due) = self.plan.due().map(Instant::from_std) else { return };
        if self.timer.is_some_and(|(_, set)| set <= due) {
            return;
        }
        if let Some((timer, _)) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let wait = due.saturating_duration_since(Instant::now());
        let timer = ctx.run_later(wait, |this, ctx| {
            this.timer = None;
            this.feed(Input::Due, ctx);
        });
        self.timer = Some((timer, due));
    }

    fn carry_out(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Start(process) => self.start(process, ctx),
            Effect::Write(process, frame) => {
                self.trace(process, true, &frame.bytes);
                self.say(Happening::Moved(0, frame.bytes.len() as u64));
                if let Some(running) = self.processes.get(&process) {
                    running.write(frame);
                }
            }
            Effect::Sent(ticket) => {
                if let Some(asked) = self.asked.get_mut(&ticket) {
                    asked.sent = Some(Instant::now());
                }
            }
            Effect::CloseInput(process) => {
                if let Some(running) = self.processes.get_mut(&process) {
                    running.close_input();
                }
            }
            Effect::Terminate(process) => self.signal(process, Signal::TERM),
            Effect::Kill(process) => self.signal(process, Signal::KILL),
            Effect::End(process) => {
                self.processes.remove(&process);
            }
            Effect::Answer(ticket, process, result) => self.answer(ticket, process, result),
            Effect::Progress(ticket, progress) => {
                if let Some(sink) = self.asked.get(&ticket).and_then(|asked| asked.progress.as_ref()) {
                    // What does not fit is dropped: the next one says more.
                    let _ = sink.try_send(progress);
                }
            }
            Effect::Note(note) => self.note(note),
            Effect::Closed => {
                for done in self.closing.drain(..) {
                    let _ = done.send(());
                }
            }
        }
    }

    fn signal(&self, process: ProcessId, signal: Signal) {
        if let Some(running) = self.processes.get(&process) {
            running.signal(signal);
        }
    }

    fn start(&mut self, number: ProcessId, ctx: &mut Context<Self>) {
        let settings = Arc::clone(&self.parts.settings);
        let orphans = self.parts.orphans.clone();
        let runner = ctx.address();
        self.starting.spawn_local(async move {
            let result = process::start(settings, orphans).await;
            // A runner that has gone needs no process; the message's end kills it.
            let _ = runner.send(process::arrival(number, result)).await;
        });
    }

    fn arrived(&mut self, number: ProcessId, process: Process, ctx: &mut Context<Self>) {
        let say = {
            let parts = Arc::clone(&self.parts);
            move |what| {
                (parts.record)(ProviderFact { provider: parts.settings.name.clone(), what });
            }
        };
        let stderr = Stderr::new(self.masks.clone());
        let max_frame = self.parts.settings.max_frame;
        let running = Running::new(number, process, stderr, &ctx.address(), max_frame, say);
        self.processes.insert(number, running);
    }

    fn answer(&mut self, ticket: Ticket, process: Option<ProcessId>, result: Result<Answer, CallError>) {
        let Some(asked) = self.asked.remove(&ticket) else { return };
        let result = result.map_err(|error| self.explained(error, process));
        let now = Instant::now();
        let sent = asked.sent.unwrap_or(now);
        let known = self.plan.schema().is_some_and(|schema| {
            asked.call.action().is_some_and(|action| schema.actions.contains_key(action))
        });
        self.say(Happening::Called(CallEnded {
            method: asked.call.method(),
            action: asked.call.action().filter(|_| known).unwrap_or_default().to_owned(),
            code: result.as_ref().map_or_else(|error| error.code().label(), |_| "ok"),
            waited: sent.saturating_duration_since(asked.since),
            took: now.saturating_duration_since(sent),
        }));
        // An asker who has gone needs no answer.
        let _ = asked.answer.send(result);
    }

    /// Masks an error, and adds the last words of its process where they may explain it.
    fn explained(&self, mut error: CallError, process: Option<ProcessId>) -> CallError {
        error.error.message = self.masks.text(&error.error.message);
        error.error.detail = error.error.detail.map(|detail| self.masks.text(&detail));
        for diagnostic in &mut error.error.more.diagnostics {
            diagnostic.message = self.masks.text(&diagnostic.message);
        }
        let telling = matches!(
            error.host_code(),
            Some(
                HostCode::Exited
                    | HostCode::Timeout
                    | HostCode::BadSchema
                    | HostCode::UnsupportedProtocol
                    | HostCode::BadFrame
                    | HostCode::FrameTooLarge
            )
        );
        if (telling || error.outcome == Outcome::NotSent)
            && error.stderr.is_empty()
            && let Some(running) = process.and_then(|process| self.processes.get(&process))
        {
            error.stderr = running.tail();
        }
        error
    }

    fn note(&mut self, note: Note) {
        match &note {
            Note::Ready(_) => {
                if let Some(schema) = self.plan.schema() {
                    for warmed in self.warming.drain(..) {
                        let _ = warmed.send(Ok(Arc::clone(schema)));
                    }
                }
            }
            Note::Failed(process, error) => {
                let error = self.explained(error.clone(), *process);
                self.plan.explain_failure(&error);
                for warmed in self.warming.drain(..) {
                    let _ = warmed.send(Err(error.clone()));
                }
                self.say(Happening::Noted(Note::Failed(*process, error)));
                return;
            }
            _ => {}
        }
        self.say(Happening::Noted(note.masked(&self.masks)));
    }

    fn say(&self, what: Happening) {
        (self.parts.record)(ProviderFact { provider: self.parts.settings.name.clone(), what });
    }

    fn trace(&self, process: ProcessId, ours: bool, frame: &[u8]) {
        if let Some(trace) = &self.parts.trace {
            let frame = self.masks.text(String::from_utf8_lossy(frame).trim_end());
            trace(TraceLine { at: self.born.elapsed(), process, ours, frame });
        }
    }
}

impl Actor for ProviderRunner {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        if self.parts.settings.eager {
            self.feed(Input::Warm, ctx);
        }
    }
}

crate::supervised!(ProviderRunner);

impl Handler<AskProvider> for ProviderRunner {
    type Result = ();

    fn handle(&mut self, ask: AskProvider, ctx: &mut Self::Context) {
        let AskProvider { ticket, call, progress, answer } = ask;
        if answer.is_closed() {
            return;
        }
        let asked = Asked { call: Arc::clone(&call), answer, progress, since: Instant::now(), sent: None };
        self.asked.insert(ticket, asked);
        self.feed(Input::Ask(ticket, call), ctx);
    }
}

impl Handler<AbandonCall> for ProviderRunner {
    type Result = ();

    fn handle(&mut self, abandoned: AbandonCall, ctx: &mut Self::Context) {
        if self.asked.remove(&abandoned.0).is_some() {
            self.feed(Input::Abandon(abandoned.0), ctx);
        }
    }
}

impl Handler<CallBack> for ProviderRunner {
    type Result = ();

    fn handle(&mut self, back: CallBack, ctx: &mut Self::Context) {
        if self.asked.contains_key(&back.0) {
            self.feed(Input::CallBack(back.0), ctx);
        }
    }
}

impl Handler<WarmUp> for ProviderRunner {
    type Result = ();

    fn handle(&mut self, warm: WarmUp, ctx: &mut Self::Context) {
        let ready = self.plan.schema().filter(|_| self.plan.ready() > 0).cloned();
        if ready.is_none() && !self.plan.is_closing() {
            self.feed(Input::Warm, ctx);
        }
        let closed = self.plan.is_closing().then(|| {
            let message = format!("provider `{}` is being shut down", self.parts.settings.name);
            CallError::host(Outcome::NotSent, HostCode::Closed, message)
        });
        let refused = closed.or_else(|| self.plan.failure().cloned());
        match ready.map(Ok).or_else(|| refused.map(Err)) {
            Some(answer) => {
                let _ = warm.0.send(answer);
            }
            None => self.warming.push(warm.0),
        }
    }
}

impl Handler<CloseProvider> for ProviderRunner {
    type Result = ();

    fn handle(&mut self, close: CloseProvider, ctx: &mut Self::Context) {
        self.closing.push(close.done);
        self.warming.clear();
        self.feed(Input::Close(close.drain), ctx);
    }
}

impl Handler<ProcessStarted> for ProviderRunner {
    type Result = ();

    fn handle(&mut self, started: ProcessStarted, ctx: &mut Self::Context) {
        let result = started.result.map(|process| self.arrived(started.process, process, ctx));
        self.feed(Input::Started(started.process, result), ctx);
    }
}

impl Handler<Heard> for ProviderRunner {
    type Result = ();

    fn handle(&mut self, heard: Heard, ctx: &mut Self::Context) {
        let Heard(process, event) = heard;
        let line = match &event {
            Event::Line(line) | Event::Rest(line) => Some(line.clone()),
            _ => None,
        };
        if !self.processes.contains_key(&process) {
            return;
        }
        self.feed(Input::Heard(process, event), ctx);
        // Only now is it known which of it is secret.
        if let Some(line) = line {
            self.trace(process, false, &line);
            self.say(Happening::Moved(line.len() as u64, 0));
        }
    }
}

impl Drop for ProviderRunner {
    fn drop(&mut self) {
        self.parts.board.clear();
        self.say(Happening::Loaded(Load::default()));
    }
}
