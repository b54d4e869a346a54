//! The conversation as it stands, and what its owner may do with it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quartermaster_proto::provider::{CallId, CallIds, HostCode, Progress, Schema};
use zeroize::Zeroizing;

use super::super::error::{CallError, Outcome};
use super::super::frames::{self, Terms};
use super::super::masks::Masks;
use super::super::messages::{Answer, Call, Ticket};
use super::super::open::{Open, Why};
use super::super::settings::ProviderSettings;

/// Something of the process.
#[derive(Debug)]
pub enum Event {
    /// A line of its standard output, without its end.
    Line(Bytes),
    /// What it wrote after its last line's end, when it has closed its standard output.
    Rest(Bytes),
    /// A line that is longer than a frame may be; nothing more is read.
    Overlong,
    /// The frame handed out last was written whole.
    Written,
    /// It could not be; true when not a byte of it was.
    WriteFailed(bool),
    /// Nobody holds its standard output any more.
    OutputClosed,
    /// Nobody holds its standard error any more.
    ErrorsClosed,
    /// It has ended, in these words: `exited with status 3`.
    Exited(String),
    /// The time `Conversation::due` named has come.
    Due,
}

/// A frame on its way out. May hold secrets.
#[derive(Clone)]
pub struct Outgoing {
    /// The call it belongs to, if any.
    pub id: Option<CallId>,
    /// The line, with its end.
    pub bytes: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outgoing").field("id", &self.id).field("bytes", &self.bytes.len()).finish()
    }
}

/// What a conversation wants of its surroundings.
#[derive(Debug)]
pub enum Talk {
    /// Write this; `Event::Written` or `Event::WriteFailed` comes before the next one is wanted.
    Write(Outgoing),
    /// The frame of this call has been written whole.
    Sent(Ticket),
    /// Close its standard input.
    CloseInput,
    /// Ask its group to stop.
    Terminate,
    /// Kill its group.
    Kill,
    /// A call has ended.
    Answer(Ticket, Result<Answer, CallError>),
    /// These calls were surely not sent and may be made elsewhere.
    GiveBack(Vec<(Ticket, Arc<Call>)>),
    /// How far a call is.
    Progress(Ticket, Progress),
    /// Something odd that changes nothing.
    Odd(String),
    /// A line that is no frame, or a frame that answers nothing.
    BadFrame,
    /// An answer that nobody waits for any more.
    Late,
    /// Described and configured.
    Ready(Arc<Schema>),
    /// The process is of no use any more.
    Over(Ending),
}

/// How a process came to its end.
#[derive(Debug, Clone)]
pub enum Ending {
    /// We asked for it.
    Closed,
    /// A call could not be called back, so the process had to go.
    Replaced(String),
    /// By itself, or by a fault of its own.
    Crashed(CallError),
    /// The same would happen again.
    Refused(CallError),
}

impl Ending {
    pub fn of_start(error: CallError) -> Self {
        if error.is_permanent() { Self::Refused(error) } else { Self::Crashed(error) }
    }
}

#[derive(Debug)]
pub(super) enum Phase {
    Describing(CallId, Instant),
    Configuring(CallId, Option<Instant>),
    Ready,
    /// Since when, the request for it, and how many of the stages are done.
    Closing(Instant, Option<CallId>, u32),
    /// Killed; its last words are awaited until then.
    Dying(Ending, Instant),
    Over,
}

#[derive(Debug)]
pub(super) struct Writing {
    pub id: Option<CallId>,
    pub since: Instant,
}

/// The conversation with one process, from its start to its end.
#[derive(Debug)]
pub struct Conversation {
    pub(super) settings: Arc<ProviderSettings>,
    pub(super) masks: Masks,
    pub(super) expected: Option<Arc<Schema>>,
    pub(super) terms: Option<Terms>,
    pub(super) phase: Phase,
    pub(super) ids: CallIds,
    pub(super) open: BTreeMap<CallId, Open>,
    /// Nobody waits for these answers any more.
    pub(super) given_up: BTreeSet<CallId>,
    pub(super) outbox: VecDeque<Outgoing>,
    pub(super) writing: Option<Writing>,
    /// Nothing new is sent, and the process goes once nothing is open.
    pub(super) poisoned: Option<Ending>,
    pub(super) exited: Option<String>,
    pub(super) output_closed: bool,
    pub(super) errors_closed: bool,
    pub(super) input_closed: bool,
    /// Nobody reads its input any more.
    pub(super) input_gone: bool,
    pub(super) linger: Option<Instant>,
    pub(super) heard: Instant,
    pub(super) idle: Instant,
    pub(super) ping: Option<(CallId, Instant)>,
    pub(super) misses: u32,
    pub(super) remarks: BTreeSet<String>,
    pub(super) wants: Vec<Talk>,
}

impl Conversation {
    /// A process that was just started. It has to declare what is `expected`, if anything is.
    pub fn new(
        settings: Arc<ProviderSettings>,
        masks: Masks,
        expected: Option<Arc<Schema>>,
        now: Instant,
    ) -> Self {
        let mut ids = CallIds::new();
        let id = ids.issue().unwrap_or(CallId(1));
        let due = now + settings.timeouts.describe;
        let mut this = Self {
            settings,
            masks,
            expected,
            terms: None,
            phase: Phase::Describing(id, due),
            ids,
            open: BTreeMap::new(),
            given_up: BTreeSet::new(),
            outbox: VecDeque::new(),
            writing: None,
            poisoned: None,
            exited: None,
            output_closed: false,
            errors_closed: false,
            input_closed: false,
            input_gone: false,
            linger: None,
            heard: now,
            idle: now,
            ping: None,
            misses: 0,
            remarks: BTreeSet::new(),
            wants: Vec::new(),
        };
        this.send(Some(id), frames::describe(id), now);
        this
    }

    /// What it wants, since the last time.
    pub fn take_wants(&mut self) -> Vec<Talk> {
        std::mem::take(&mut self.wants)
    }

    /// How many calls are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whom or what its only open call is for.
    pub fn about(&self) -> Option<&Arc<str>> {
        let mut open = self.open.values();
        open.next().filter(|_| self.open.len() == 1)?.call.about.as_ref()
    }

    /// Described, configured, and not ending.
    pub const fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready) && self.poisoned.is_none()
    }

    /// Not ready yet.
    pub const fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Describing(..) | Phase::Configuring(..))
    }

    /// On its way out, by whatever way.
    pub const fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Closing(..) | Phase::Dying(..) | Phase::Over)
    }

    /// A call is open that bears no other beside it.
    pub fn is_taken(&self) -> bool {
        self.open.values().any(|open| open.exclusive)
    }

    /// One more call may be sent.
    pub fn has_room(&self) -> bool {
        let Some(terms) = &self.terms else { return false };
        let most = terms.max_in_flight.min(self.settings.max_in_flight.get());
        let pinged = usize::from(self.ping.is_some());
        let overdue = self.open.values().any(|open| !open.is_running());
        self.is_ready()
            && self.linger.is_none()
            && self.open.len() + pinged < most
            && (terms.cancel || !overdue)
    }

    /// Makes a call. It must have room.
    pub fn call(&mut self, ticket: Ticket, call: Arc<Call>, exclusive: bool, now: Instant) {
        let Some(terms) = &self.terms else {
            self.wants.push(Talk::GiveBack(vec![(ticket, call)]));
            return;
        };
        let limit = terms.limit(&call, &self.settings);
        let framed = match self.ids.issue() {
            Some(id) => {
                frames::ask(id, &call, terms, limit, &self.settings, &self.masks).map(|bytes| (id, bytes))
            }
            None => Err(CallError::host(Outcome::NotSent, HostCode::Closed, "the ids are used up")),
        };
        match framed {
            Ok((id, bytes)) => {
                self.open.insert(id, Open::new(ticket, call, exclusive, limit));
                self.send(Some(id), bytes, now);
            }
            Err(error) => self.wants.push(Talk::Answer(ticket, Err(error))),
        }
    }

    /// This call is not wanted any more. Whether it was surely not sent, and never will be.
    pub fn abandon(&mut self, ticket: Ticket, now: Instant) -> bool {
        let found = self.open.iter().find(|(_, open)| open.ticket == ticket && open.is_running());
        let Some((&id, _)) = found else { return false };
        if self.unsend(id) {
            self.open.remove(&id);
            self.after_answer(now);
            true
        } else {
            self.call_back(id, Why::Abandoned, now);
            false
        }
    }

    /// Asks the process to end.
    pub fn close(&mut self, now: Instant) {
        if self.is_ending() {
            return;
        }
        if self.is_starting() {
            self.die(Ending::Closed, now);
            return;
        }
        self.give_back_unsent();
        let id = self.ids.issue();
        self.phase = Phase::Closing(now, id, 0);
        if let Some(id) = id {
            self.send(Some(id), frames::shutdown(id), now);
        }
    }

    /// Takes what happened.
    pub fn handle(&mut self, event: Event, now: Instant) {
        match event {
            Event::Line(line) => self.line(&line, now),
            Event::Rest(rest) => self.rest(&rest, now),
            Event::Overlong => self.overlong(now),
            Event::Written => self.written(now),
            Event::WriteFailed(untouched) => self.write_failed(untouched),
            Event::OutputClosed => self.output_closed = true,
            Event::ErrorsClosed => self.errors_closed = true,
            Event::Exited(how) => self.exited = Some(how),
            Event::Due => self.due_now(now),
        }
        self.look_for_the_end(now);
    }
}
