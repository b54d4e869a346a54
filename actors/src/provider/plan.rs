//! What becomes of a provider's calls and processes, decided: who is next, on which process, when one is started again and when
//! the provider has failed (provider.md F1, F6, F14, F16, D16, D17). Pure; the doing is in `actor.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quartermaster_proto::provider::{ErrorCode, HostCode, Schema};

use super::conversation::{Conversation, Ending, Event, Talk};
use super::effect::{Effect, Input, Note, ProcessId};
use super::error::{CallError, Outcome};
use super::masks::Masks;
use super::messages::{Call, Ticket};
use super::settings::ProviderSettings;

#[derive(Debug)]
enum Seat {
    Empty,
    /// After a crash.
    Waiting(Instant),
    Starting(ProcessId),
    Live(ProcessId, Box<Conversation>),
}

#[derive(Debug)]
struct Failed {
    until: Instant,
    error: CallError,
}

#[derive(Debug, Clone, Copy)]
struct Closing {
    drained: Instant,
}

/// One provider: its queue and its processes.
#[derive(Debug)]
pub struct Plan {
    settings: Arc<ProviderSettings>,
    masks: Masks,
    schema: Option<Arc<Schema>>,
    queue: VecDeque<(Ticket, Arc<Call>)>,
    seats: Vec<Seat>,
    processes: ProcessId,
    crashes: VecDeque<Instant>,
    failed: Option<Failed>,
    warm: bool,
    closing: Option<Closing>,
    effects: Vec<Effect>,
}

impl Plan {
    /// A provider without a process.
    pub fn new(settings: Arc<ProviderSettings>, masks: Masks) -> Self {
        // The first one tells how many are needed.
        let seats = if settings.at_once.is_some() { 1 } else { settings.instances.get() };
        let seats = (0..seats).map(|_| Seat::Empty).collect();
        Self {
            warm: settings.eager,
            settings,
            masks,
            schema: None,
            queue: VecDeque::new(),
            seats,
            processes: 0,
            crashes: VecDeque::new(),
            failed: None,
            closing: None,
            effects: Vec::new(),
        }
    }

    /// What the first process declared; all later ones have to declare the same.
    pub const fn schema(&self) -> Option<&Arc<Schema>> {
        self.schema.as_ref()
    }

    /// How many calls wait.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How many calls are open on processes.
    pub fn open(&self) -> usize {
        self.live().map(|(_, talk)| talk.open()).sum()
    }

    /// Whom or what the only open call of this process is for; nothing when it has none, or several.
    pub fn about(&self, process: ProcessId) -> Option<&Arc<str>> {
        self.live().find(|(live, _)| *live == process)?.1.about()
    }

    /// The processes that are ready for calls.
    pub fn ready(&self) -> usize {
        self.live().filter(|(_, talk)| talk.is_ready()).count()
    }

    /// It is being ended, or has been.
    pub const fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Why it is not started at present, if it has failed.
    pub fn failure(&self) -> Option<&CallError> {
        self.failed.as_ref().map(|failed| &failed.error)
    }

    /// When `Input::Due` is to be reported next.
    pub fn due(&self) -> Option<Instant> {
        let seats = self.seats.iter().filter_map(|seat| match seat {
            Seat::Waiting(until) => Some(*until),
            Seat::Live(_, talk) => talk.due(),
            Seat::Empty | Seat::Starting(_) => None,
        });
        let again = self.failed.as_ref().filter(|_| self.warm).map(|failed| failed.until);
        let drained = self.closing.map(|closing| closing.drained);
        let drained = drained.filter(|_| self.live().any(|(_, talk)| !talk.is_ending()));
        seats.chain(again).chain(drained).min()
    }

    /// Takes what happened and says what to do. `dice` is uniform in `[0, 1)`.
    pub fn handle(&mut self, input: Input, now: Instant, dice: f64) -> Vec<Effect> {
        match input {
            Input::Ask(ticket, call) => self.ask(ticket, call, now),
            Input::Abandon(ticket) => {
                self.abandon(ticket, now);
            }
            Input::CallBack(ticket) => self.call_back(ticket, now),
            Input::Started(process, result) => self.started(process, result, now, dice),
            Input::Heard(process, event) => self.heard(process, event, now, dice),
            Input::Warm => {
                self.forgive(now);
                self.warm = true;
            }
            Input::Close(drain) => self.close(drain, now),
            Input::Due => self.due_now(now, dice),
        }
        self.pump(now);
        self.settle_close(now);
        std::mem::take(&mut self.effects)
    }

    fn live(&self) -> impl Iterator<Item = (ProcessId, &Conversation)> {
        self.seats.iter().filter_map(|seat| match seat {
            Seat::Live(process, talk) => Some((*process, talk.as_ref())),
            _ => None,
        })
    }

    fn ask(&mut self, ticket: Ticket, call: Arc<Call>, now: Instant) {
        self.forgive(now);
        let refused = if self.closing.is_some() {
            Some(self.error(HostCode::Closed, "is being shut down"))
        } else if let Some(failed) = &self.failed {
            Some(failed.error.clone())
        } else if self.queue.len() >= self.settings.queue {
            Some(self.error(HostCode::Overloaded, &format!("has {} calls waiting already", self.queue.len())))
        } else {
            None
        };
        match refused {
            Some(error) => self.effects.push(Effect::Answer(ticket, None, Err(error))),
            None => self.queue.push_back((ticket, call)),
        }
    }

    /// A provider that failed is tried again once its window has passed.
    fn forgive(&mut self, now: Instant) {
        if self.failed.as_ref().is_some_and(|failed| failed.until <= now) {
            self.failed = None;
        }
    }

    fn error(&self, code: HostCode, what: &str) -> CallError {
        CallError::host(Outcome::NotSent, code, format!("provider `{}` {what}", self.settings.name))
    }

    /// Whether it was surely not sent, and never will be.
    fn abandon(&mut self, ticket: Ticket, now: Instant) -> bool {
        let before = self.queue.len();
        self.queue.retain(|(waiting, _)| *waiting != ticket);
        let mut unsent = self.queue.len() < before;
        for index in 0..self.seats.len() {
            if unsent {
                break;
            }
            if let Some(Seat::Live(process, talk)) = self.seats.get_mut(index) {
                let process = *process;
                unsent = talk.abandon(ticket, now);
                self.carry_out(process, now, 0.0);
            }
        }
        unsent
    }

    fn call_back(&mut self, ticket: Ticket, now: Instant) {
        if self.abandon(ticket, now) {
            let error = CallError::refused(ErrorCode::Cancelled, "called off before it was sent");
            self.effects.push(Effect::Answer(ticket, None, Err(error)));
        }
    }

    fn started(&mut self, process: ProcessId, result: Result<(), CallError>, now: Instant, dice: f64) {
        let Some(index) =
            self.seats.iter().position(|seat| matches!(seat, Seat::Starting(this) if *this == process))
        else {
            // Nobody waits for it any more.
            self.effects.push(Effect::End(process));
            return;
        };
        match result {
            Ok(()) if self.closing.is_some() => {
                self.effects.push(Effect::End(process));
                self.set(index, Seat::Empty);
            }
            Ok(()) => {
                let talk = Conversation::new(
                    Arc::clone(&self.settings),
                    self.masks.clone(),
                    self.schema.clone(),
                    now,
                );
                self.set(index, Seat::Live(process, Box::new(talk)));
                self.carry_out(process, now, dice);
            }
            Err(error) => {
                self.over(index, process, Ending::of_start(error), now, dice);
                self.effects.push(Effect::End(process));
            }
        }
    }

    fn set(&mut self, index: usize, seat: Seat) {
        if let Some(place) = self.seats.get_mut(index) {
            *place = seat;
        }
    }

    fn heard(&mut self, process: ProcessId, event: Event, now: Instant, dice: f64) {
        if let Some(talk) = self.talk(process) {
            talk.handle(event, now);
            self.carry_out(process, now, dice);
        }
    }

    fn talk(&mut self, process: ProcessId) -> Option<&mut Conversation> {
        self.seats.iter_mut().find_map(|seat| match seat {
            Seat::Live(this, talk) if *this == process => Some(talk.as_mut()),
            _ => None,
        })
    }

    /// Turns what a conversation wants into effects.
    fn carry_out(&mut self, process: ProcessId, now: Instant, dice: f64) {
        let Some(talk) = self.talk(process) else { return };
        for want in talk.take_wants() {
            match want {
                Talk::Write(frame) => self.effects.push(Effect::Write(process, frame)),
                Talk::Sent(ticket) => self.effects.push(Effect::Sent(ticket)),
                Talk::CloseInput => self.effects.push(Effect::CloseInput(process)),
                Talk::Terminate => self.effects.push(Effect::Terminate(process)),
                Talk::Kill => self.effects.push(Effect::Kill(process)),
                Talk::Answer(ticket, result) => {
                    self.effects.push(Effect::Answer(ticket, Some(process), result));
                }
                Talk::GiveBack(calls) => {
                    self.take_back(calls);
                }
                Talk::Progress(ticket, progress) => self.effects.push(Effect::Progress(ticket, progress)),
                Talk::Odd(what) => self.effects.push(Effect::Note(Note::Odd(process, what))),
                Talk::BadFrame => self.effects.push(Effect::Note(Note::BadFrame(process))),
                Talk::Late => self.effects.push(Effect::Note(Note::Late(process))),
                Talk::Ready(schema) => {
                    self.seat_all(&schema);
                    self.schema.get_or_insert(schema);
                    self.warm = self.settings.eager;
                    self.effects.push(Effect::Note(Note::Ready(process)));
                }
                Talk::Over(ending) => {
                    let index = self
                        .seats
                        .iter()
                        .position(|seat| matches!(seat, Seat::Live(this, _) if *this == process));
                    if let Some(index) = index {
                        self.over(index, process, ending, now, dice);
                    }
                    // Last, since its last words explain what it ended.
                    self.effects.push(Effect::End(process));
                }
            }
        }
    }

    /// Once it is known how many calls one process takes, there is a seat for each that is needed.
    fn seat_all(&mut self, schema: &Schema) {
        let Some(wanted) = self.settings.at_once.filter(|_| self.schema.is_none()) else { return };
        let declared = schema.extensions.as_ref().map_or(1, |declared| declared.max_in_flight);
        let each = usize::try_from(declared).unwrap_or(usize::MAX).min(self.settings.max_in_flight.get());
        let needed = wanted.get().div_ceil(each.max(1));
        self.seats.resize_with(needed.max(self.seats.len()), || Seat::Empty);
    }

    /// Calls that were not sent are made elsewhere, before those that came later.
    fn take_back(&mut self, calls: Vec<(Ticket, Arc<Call>)>) {
        if self.closing.is_some() {
            let error = self.error(HostCode::Closed, "was shut down before the call was sent");
            for (ticket, _) in calls {
                self.effects.push(Effect::Answer(ticket, None, Err(error.clone())));
            }
            return;
        }
        for entry in calls.into_iter().rev() {
            self.queue.push_front(entry);
        }
    }

    /// A process has ended, or was never there.
    fn over(&mut self, index: usize, process: ProcessId, ending: Ending, now: Instant, dice: f64) {
        self.set(index, Seat::Empty);
        match ending {
            Ending::Closed => self.effects.push(Effect::Note(Note::Ended(process))),
            Ending::Replaced(why) => self.effects.push(Effect::Note(Note::Replaced(process, why))),
            Ending::Crashed(error) if self.closing.is_none() => {
                self.crashed(index, process, error, now, dice);
            }
            Ending::Refused(error) if self.closing.is_none() => self.fail(error, now, Some(process)),
            Ending::Crashed(_) | Ending::Refused(_) => {
                self.effects.push(Effect::Note(Note::Ended(process)));
            }
        }
    }

    fn crashed(&mut self, index: usize, process: ProcessId, error: CallError, now: Instant, dice: f64) {
        let restart = self.settings.restart;
        self.crashes.push_back(now);
        while self.crashes.front().is_some_and(|crash| now.saturating_duration_since(*crash) > restart.window)
        {
            self.crashes.pop_front();
        }
        if self.crashes.len() >= restart.limit {
            let many = self.crashes.len();
            let message =
                format!("{} (given up after {many} crashes within {:?})", error.message(), restart.window);
            self.fail(error.with_message(message), now, Some(process));
            return;
        }
        let doublings = u32::try_from(self.crashes.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let longest = restart.min.saturating_mul(2u32.saturating_pow(doublings)).min(restart.max);
        let delay = longest.mul_f64(if dice.is_finite() { dice.clamp(0.0, 1.0) } else { 1.0 });
        self.effects.push(Effect::Note(Note::Crashed(process, error.message().to_owned(), delay)));
        self.set(index, Seat::Waiting(now + delay));
    }

    /// Fails fast from now on, until the window has passed.
    fn fail(&mut self, error: CallError, now: Instant, process: Option<ProcessId>) {
        let error = error.not_sent();
        self.effects.push(Effect::Note(Note::Failed(process, error.clone())));
        for (ticket, _) in std::mem::take(&mut self.queue) {
            self.effects.push(Effect::Answer(ticket, process, Err(error.clone())));
        }
        self.crashes.clear();
        self.warm = self.settings.eager;
        self.failed = Some(Failed { until: now + self.settings.restart.window, error });
    }

    fn due_now(&mut self, now: Instant, dice: f64) {
        self.forgive(now);
        for index in 0..self.seats.len() {
            match self.seats.get_mut(index) {
                Some(Seat::Waiting(until)) if *until <= now => self.set(index, Seat::Empty),
                Some(Seat::Live(process, talk)) if talk.due().is_some_and(|due| due <= now) => {
                    let process = *process;
                    talk.handle(Event::Due, now);
                    self.carry_out(process, now, dice);
                }
                _ => {}
            }
        }
    }

    fn close(&mut self, drain: Duration, now: Instant) {
        if self.closing.is_none() {
            self.closing = Some(Closing { drained: now + drain });
        }
        let error = self.error(HostCode::Closed, "was shut down before the call was sent");
        for (ticket, _) in std::mem::take(&mut self.queue) {
            self.effects.push(Effect::Answer(ticket, None, Err(error.clone())));
        }
    }

    fn settle_close(&mut self, now: Instant) {
        let Some(closing) = self.closing else { return };
        for index in 0..self.seats.len() {
            match self.seats.get_mut(index) {
                Some(Seat::Waiting(_)) => self.set(index, Seat::Empty),
                Some(Seat::Starting(process)) => {
                    self.effects.push(Effect::End(*process));
                    self.set(index, Seat::Empty);
                }
                Some(Seat::Live(process, talk))
                    if !talk.is_ending() && (talk.open() == 0 || now >= closing.drained) =>
                {
                    let process = *process;
                    talk.close(now);
                    self.carry_out(process, now, 0.0);
                }
                _ => {}
            }
        }
        if self.seats.iter().all(|seat| matches!(seat, Seat::Empty)) {
            self.effects.push(Effect::Closed);
        }
    }

    /// Sends what may be sent, starts what is needed.
    fn pump(&mut self, now: Instant) {
        while let Some((_, call)) = self.queue.front() {
            let exclusive = self.is_exclusive(call);
            let busy = self.open() > 0;
            let taken = self.live().any(|(_, talk)| talk.is_taken());
            if taken || (exclusive && busy) {
                break;
            }
            let free = self
                .seats
                .iter_mut()
                .filter_map(|seat| match seat {
                    Seat::Live(process, talk) if talk.has_room() => Some((*process, talk)),
                    _ => None,
                })
                .min_by_key(|(_, talk)| talk.open());
            let Some((process, talk)) = free else { break };
            let Some((ticket, call)) = self.queue.pop_front() else { break };
            talk.call(ticket, call, exclusive, now);
            self.carry_out(process, now, 0.0);
        }
        self.start_needed();
    }

    fn is_exclusive(&self, call: &Call) -> bool {
        let action = call.action().and_then(|action| self.schema.as_ref()?.actions.get(action));
        action.is_some_and(|action| action.exclusive)
    }

    fn start_needed(&mut self) {
        if self.closing.is_some() || self.failed.is_some() {
            return;
        }
        let starting = self
            .seats
            .iter()
            .filter(|seat| match seat {
                Seat::Starting(_) => true,
                Seat::Live(_, talk) => talk.is_starting(),
                Seat::Empty | Seat::Waiting(_) => false,
            })
            .count();
        let wanted = if self.warm { self.seats.len() } else { self.queue.len() };
        let mut missing = wanted.saturating_sub(starting);
        if self.schema.is_none() {
            // The first one tells what all the others have to declare.
            missing = missing.min(1usize.saturating_sub(starting));
        }
        for index in 0..self.seats.len() {
            if missing > 0 && matches!(self.seats.get(index), Some(Seat::Empty)) {
                missing -= 1;
                self.processes += 1;
                let process = self.processes;
                self.set(index, Seat::Starting(process));
                self.effects.push(Effect::Start(process));
            }
        }
    }

    /// How many processes were started so far.
    pub const fn started_processes(&self) -> ProcessId {
        self.processes
    }

    /// The failure with the last words of the process that caused it.
    pub fn explain_failure(&mut self, error: &CallError) {
        if let Some(failed) = &mut self.failed {
            failed.error = error.clone();
        }
    }
}
