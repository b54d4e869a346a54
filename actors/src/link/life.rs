//! What one life of the link works with, and the three things it does for others: call, discover, publish.
//!
//! Everything here runs on the link's own thread, in plain futures: a panic in one costs that one request.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use quartermaster_proto::choria::filter::Filter;
use quartermaster_proto::choria::{Identity, discovery, envelope, rpc, subject};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::broker::{RawMessage, Session};
use super::complaints::{Allowance, Complaints};
use super::handle::{LinkParts, Shared};
use super::messages::{Answer, Call, CallError, Discovered, IdentitySink};
use super::pending::{Expected, Heard, Pending};
use super::requests::{Draft, request_id, seal};
use super::settings::LinkSettings;
use super::snapshot::{Counters, LinkState};
use super::text::printable;
use super::window::{Sighting, Window};
use crate::metrics::Fact;

/// Rejected replies that are told of in one minute; the rest are only counted.
const REJECTIONS_TOLD: u32 = 30;

/// A discovery reply carries a few hundred bytes; one above this is not decoded.
const MAX_SIGHTING_BYTES: usize = 64 * 1024;

/// Whoever waits for one answer.
pub(super) type Waiter = oneshot::Sender<Result<Answer, CallError>>;

/// A connection with what belongs to it.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) session: Arc<dyn Session>,
    /// The address that was connected to.
    pub(super) server: String,
    /// The caller id this connection's replies go to.
    pub(super) caller: String,
}

struct Run {
    window: Window,
    sink: IdentitySink,
    dropped: usize,
    first_reply: Rc<Notify>,
}

/// One life of the link.
pub(super) struct Life {
    pub(super) settings: Arc<LinkSettings>,
    pub(super) parts: LinkParts,
    pub(super) shared: Arc<Shared>,
    /// Which life this is; another number in `shared` means that it has been replaced.
    pub(super) number: u64,
    /// Tells this life's inboxes from those of others with the same login.
    pub(super) aside: String,
    pub(super) connected: RefCell<Option<Connected>>,
    pub(super) connection_changed: Notify,
    pub(super) deadlines_changed: Notify,
    pub(super) complaints: RefCell<Complaints>,
    pending: RefCell<Pending<Waiter>>,
    runs: RefCell<HashMap<String, Run>>,
    rejections: RefCell<Allowance>,
    waiting_for_connection: Cell<usize>,
}

impl Life {
    pub(super) fn new(
        settings: Arc<LinkSettings>,
        parts: LinkParts,
        shared: Arc<Shared>,
        number: u64,
    ) -> Self {
        let pending = Pending::new(
            settings.generation,
            settings.max_pending,
            settings.invalid_grace,
            settings.conflict_memory,
        );
        let aside = hex::encode((parts.random)());
        Self {
            settings,
            parts,
            shared,
            number,
            aside,
            connected: RefCell::new(None),
            connection_changed: Notify::new(),
            deadlines_changed: Notify::new(),
            complaints: RefCell::new(Complaints::default()),
            pending: RefCell::new(pending),
            runs: RefCell::new(HashMap::new()),
            rejections: RefCell::new(Allowance::per_minute(REJECTIONS_TOLD)),
            waiting_for_connection: Cell::new(0),
        }
    }

    fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    fn count_pending(&self) {
        let waiting = u64::try_from(self.pending.borrow().waiting()).unwrap_or(u64::MAX);
        self.counters().pending.store(waiting, Ordering::Relaxed);
    }

    /// The connection, waiting a little for one that is being made.
    async fn connection(&self, patience: Duration) -> Result<Connected, CallError> {
        let until = Instant::now() + patience;
        loop {
            let changed = self.connection_changed.notified();
            if let Some(connected) = self.connected.borrow().clone() {
                return Ok(connected);
            }
            let not_connected = || CallError::NotConnected { detail: self.shared.last_error() };
            if self.waiting_for_connection.get() >= self.settings.max_pending {
                return Err(CallError::QueueFull);
            }
            self.waiting_for_connection.set(self.waiting_for_connection.get() + 1);
            let waited = tokio::time::timeout_at(until, changed).await;
            self.waiting_for_connection.set(self.waiting_for_connection.get().saturating_sub(1));
            waited.map_err(|_| not_connected())?;
        }
    }

    /// One remote call, from its encoding to its answer.
    pub(super) async fn call(self: Rc<Self>, call: Call) -> Result<Answer, CallError> {
        let deadline = self.settings.deadline(call.agent);
        let connected = self.connection(self.settings.reconnect_grace.min(deadline)).await?;
        let time = (self.parts.clock)();
        let id = request_id(self.settings.generation, time, (self.parts.random)());
        let payload = rpc::encode_request(call.agent, call.action, &call.data)
            .map_err(|error| CallError::Sign { reason: error.to_string() })?;
        let draft = Draft {
            id: &id,
            caller: &connected.caller,
            agent: call.agent,
            filter: Filter::for_agent(call.agent),
            payload,
            server: &connected.server,
            time,
        };
        let bytes = seal(&self.settings, self.parts.credentials.as_ref(), draft).await?;
        fits(&bytes, connected.session.as_ref())?;

        let (waiter, answer) = oneshot::channel();
        let target = subject::node(&self.settings.collective, &call.identity);
        let expected = Expected {
            identity: call.identity,
            agent: call.agent,
            action: call.action,
            conflict: call.conflict,
            waiter,
        };
        let now = Instant::now();
        let sooner = {
            let mut pending = self.pending.borrow_mut();
            let due = pending.next_due();
            let registered = pending.register(&id, expected, now.into_std(), deadline);
            registered.map_err(|_| CallError::QueueFull)?;
            pending.next_due() != due
        };
        // Most calls end long before their deadline: who waits for the first one is woken only by one that comes before it.
        if sooner {
            self.deadlines_changed.notify_one();
        }
        self.count_pending();
        Counters::add(&self.counters().requests);

        let sent = tokio::time::timeout(deadline, connected.session.publish(target, bytes.into())).await;
        let refused = match sent {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(CallError::NotConnected { detail: fault.to_string() }),
            Err(_) => Some(CallError::TimedOut { after: deadline }),
        };
        if let Some(error) = refused {
            self.pending.borrow_mut().withdraw(&id);
            self.count_pending();
            return Err(error);
        }
        answer.await.unwrap_or(Err(CallError::Down))
    }

    /// Publishes as it is.
    pub(super) async fn publish(self: Rc<Self>, subject: String, payload: Bytes) -> Result<(), CallError> {
        let connected = self.connection(self.settings.reconnect_grace).await?;
        fits(&payload, connected.session.as_ref())?;
        let sent = connected.session.publish(subject, payload).await;
        sent.map_err(|fault| CallError::NotConnected { detail: fault.to_string() })
    }

    /// One broadcast discovery, from its request to the end of its window.
    pub(super) async fn discover(self: Rc<Self>, sink: IdentitySink) -> Result<Discovered, CallError> {
        let connected = self.connection(self.settings.reconnect_grace).await?;
        let time = (self.parts.clock)();
        let id = request_id(self.settings.generation, time, (self.parts.random)());
        let draft = Draft {
            id: &id,
            caller: &connected.caller,
            agent: "discovery",
            filter: Filter::for_agent("choria_provision"),
            payload: discovery::ping_payload(self.settings.generation).into(),
            server: &connected.server,
            time,
        };
        let bytes = seal(&self.settings, self.parts.credentials.as_ref(), draft).await?;
        fits(&bytes, connected.session.as_ref())?;
        let window = Window::new(
            Instant::now().into_std(),
            self.settings.discovery_window,
            self.settings.discovery_timeout,
        );
        let first_reply = Rc::new(Notify::new());
        let run = Run { window, sink, dropped: 0, first_reply: Rc::clone(&first_reply) };
        self.runs.borrow_mut().insert(id.clone(), run);
        let target = subject::broadcast(&self.settings.collective, "discovery");
        if let Err(fault) = connected.session.publish(target, bytes.into()).await {
            self.runs.borrow_mut().remove(&id);
            return Err(CallError::NotConnected { detail: fault.to_string() });
        }
        loop {
            let end = self.runs.borrow().get(&id).map(|run| run.window.ends_at());
            let Some(end) = end else { return Err(CallError::Down) };
            if end <= Instant::now().into_std() {
                break;
            }
            // The first reply brings the end closer; every later one moves it back.
            tokio::select! {
                () = tokio::time::sleep_until(Instant::from_std(end)) => {}
                () = first_reply.notified() => {}
            }
        }
        let Some(run) = self.runs.borrow_mut().remove(&id) else { return Err(CallError::Down) };
        let took = run.window.took(Instant::now().into_std());
        Ok(Discovered { found: run.window.found(), dropped: run.dropped, took })
    }

    /// A message on the reply subscription, whose subjects start with `prefix`.
    pub(super) fn heard(&self, message: &RawMessage, prefix: &str) {
        let id =
            message.subject.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
        // The client library's own inboxes lie one level deeper under the same prefix.
        if id.contains('.') {
            return;
        }
        if self.runs.borrow().contains_key(id) {
            self.sighted(id, &message.payload);
            return;
        }
        let heard = self.pending.borrow_mut().handle(id, &message.payload, Instant::now().into_std());
        match heard {
            Heard::Answered { waiter, answer } => {
                Counters::add(&self.counters().replies);
                // The caller may have given up meanwhile; then nobody misses the answer.
                let _ = waiter.send(Ok(answer));
                self.count_pending();
            }
            Heard::Rejected { identity, reason } => {
                self.inside_cycle(id, || self.rejected(identity.as_str(), reason));
                self.deadlines_changed.notify_one();
            }
            Heard::Conflict { identity, agent, action } => {
                Counters::add(&self.counters().conflicts);
                let host = identity.as_str().to_owned();
                self.inside_cycle(id, || self.parts.record(Fact::ReplyConflict { host, agent, action }));
            }
            Heard::Excess => Counters::add(&self.counters().rejected),
            Heard::Repeated | Heard::Late => Counters::add(&self.counters().late),
        }
    }

    /// Says something about the cycle that sent this request.
    fn inside_cycle(&self, id: &str, say: impl FnOnce()) {
        let flag = self.pending.borrow().cycle_of(id);
        flag.map_or_else(tracing::Span::none, |flag| flag.cycle().clone()).in_scope(say);
    }

    /// A reply to a broadcast.
    fn sighted(&self, id: &str, payload: &[u8]) {
        let identity = match sighting(payload, id, &self.settings) {
            Ok(identity) => identity,
            Err((host, reason)) => return self.rejected(&host, reason),
        };
        let mut runs = self.runs.borrow_mut();
        let Some(run) = runs.get_mut(id) else { return };
        if run.window.found() == 0 {
            run.first_reply.notify_one();
        }
        if run.window.handle(&identity, Instant::now().into_std()) == Sighting::New
            && (run.sink)(identity).is_err()
        {
            run.dropped += 1;
            Counters::add(&self.counters().dropped);
            self.parts.record(Fact::SightingDropped { lane: "discovery" });
        }
    }

    fn rejected(&self, host: &str, reason: String) {
        Counters::add(&self.counters().rejected);
        if self.rejections.borrow_mut().take(Instant::now().into_std()) {
            self.parts.record(Fact::ReplyRejected { host: printable(host), reason });
        }
    }

    /// Ends the calls whose time is up, for as long as this life lasts.
    pub(super) async fn expire(self: Rc<Self>) {
        loop {
            let now = Instant::now();
            let ended = self.pending.borrow_mut().expire(now.into_std());
            for (waiter, error) in ended {
                let _ = waiter.send(Err(error));
            }
            self.count_pending();
            // Answered requests are forgotten in passing; an idle link looks at them now and then.
            let idle = now + Duration::from_secs(5);
            let due = self.pending.borrow().next_due().map_or(idle, Instant::from_std).min(idle);
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = self.deadlines_changed.notified() => {}
            }
        }
    }

    /// This life is over, in whatever way: everybody who waits is told, and the connection does not outlive it.
    pub(super) fn end(&self) {
        for waiter in self.pending.borrow_mut().clear() {
            let _ = waiter.send(Err(CallError::Down));
        }
        self.runs.borrow_mut().clear();
        if self.shared.is_current(self.number) {
            self.shared.session.send_replace(None);
            self.shared.publish_state(LinkState::Connecting {
                rounds: 0,
                last_error: "the link is being restarted".to_owned(),
                refused: false,
            });
        }
        let connected = self.connected.borrow_mut().take();
        if let (Some(connected), Ok(runtime)) = (connected, tokio::runtime::Handle::try_current()) {
            runtime.spawn(connected.session.close());
        }
    }

    /// The connection is gone.
    pub(super) fn lost(&self) {
        self.connected.borrow_mut().take();
        self.pending.borrow_mut().hasten(self.settings.lost_grace, Instant::now().into_std());
        self.deadlines_changed.notify_one();
    }
}

fn fits(bytes: &[u8], session: &dyn Session) -> Result<(), CallError> {
    let limit = session.max_payload();
    if bytes.len() > limit {
        return Err(CallError::TooLarge { size: bytes.len(), limit });
    }
    Ok(())
}

/// Who answered a broadcast; otherwise what can be said of the host, and what is wrong.
fn sighting(payload: &[u8], id: &str, settings: &LinkSettings) -> Result<Identity, (String, String)> {
    if payload.len() > MAX_SIGHTING_BYTES {
        return Err((String::new(), format!("a discovery reply of {} bytes", payload.len())));
    }
    let open =
        envelope::open_reply(payload).map_err(|error| (String::new(), printable(&error.to_string())))?;
    let host = open.reply.sender;
    let fault = |reason: &str| (host.clone(), reason.to_owned());
    if open.generation != settings.generation {
        return Err(fault("it speaks the other protocol generation"));
    }
    if open.reply.request != id || open.reply.agent != "discovery" {
        return Err(fault("it answers another request"));
    }
    if open.transport_sender != host {
        return Err(fault("its layers name different senders"));
    }
    Identity::parse(&host).map_err(|error| fault(&error.to_string()))
}
