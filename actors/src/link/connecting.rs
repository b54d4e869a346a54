//! Staying connected: one round over all brokers after another, for ever, each from fresh addresses and credentials.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use quartermaster_proto::choria::subject;
use tokio::time::Instant;

use super::backoff::twenty_sec;
use super::broker::{Attempt, ConnectFault, RawMessage, Session};
use super::credentials::CredentialsError;
use super::life::{Connected, Life};
use super::servers::{ServerAddress, candidates};
use super::settings::{EventSubscription, Inbox, MAX_EVENT_BYTES, RawEvent};
use super::snapshot::{Counters, LinkState};
use crate::metrics::Fact;

/// How long the keeper of the keys may take over anything.
const CREDENTIALS_LIMIT: Duration = Duration::from_secs(10);

/// How long the connection of an earlier life is waited for.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// A connection that lasted this long was a good one: the next round starts at once and counts from zero.
const GOOD_CONNECTION: Duration = Duration::from_secs(10);

/// Why a session is over.
enum End {
    /// The connection is gone.
    Lost(String),
    /// Another life of the link has taken over.
    Replaced,
}

/// What one of the session's streams delivered.
enum Arrived {
    Reply(RawMessage),
    Event(usize, RawMessage),
    Notice(String),
    Ended,
}

impl Life {
    /// Connects, serves, reconnects; returns when another life has taken over.
    pub(super) async fn stay_connected(self: Rc<Self>) {
        self.close_predecessor().await;
        let mut failed: usize = 0;
        let mut advertised = Vec::new();
        while self.shared.is_current(self.number) {
            match self.round(&advertised).await {
                Ok(connected) => {
                    let began = Instant::now();
                    advertised = connected.session.advertised();
                    let session = Arc::clone(&connected.session);
                    let end = self.serve(connected).await;
                    self.lost();
                    let detail = match end {
                        End::Replaced => {
                            session.close().await;
                            return;
                        }
                        End::Lost(detail) => detail,
                    };
                    self.shared.session.send_replace(None);
                    session.close().await;
                    self.report_lost(&detail);
                    if began.elapsed() >= GOOD_CONNECTION {
                        failed = 0;
                        continue;
                    }
                }
                Err((address, fault)) => self.report_fault(address.as_ref(), &fault, failed),
            }
            let wait = twenty_sec(failed, (self.parts.random_u32)()).mul_f64(self.settings.backoff_scale);
            failed = failed.saturating_add(1);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.shared.replaced(self.number) => return,
            }
        }
    }

    /// A life that hangs cannot let go of its connection by itself, which would go on taking in every reply and event.
    async fn close_predecessor(&self) {
        let left = self.shared.session.send_replace(None);
        if let Some(session) = left {
            // A thread that is blocked takes the request in later, or ends.
            let _ = tokio::time::timeout(CLOSE_LIMIT, session.close()).await;
        }
    }

    /// Tries every broker once.
    async fn round(
        &self,
        advertised: &[ServerAddress],
    ) -> Result<Connected, (Option<ServerAddress>, ConnectFault)> {
        let caller = limited(self.parts.credentials.caller()).await.map_err(|fault| (None, fault))?;
        let found =
            candidates(&self.settings.servers, self.parts.resolver.as_ref(), &*self.parts.random_u32).await;
        if let Some(trouble) = &found.trouble {
            self.complain("resolve", trouble);
        }
        let mut addresses = found.addresses;
        let unknown: Vec<_> =
            advertised.iter().filter(|address| !addresses.contains(address)).cloned().collect();
        addresses.extend(unknown);
        let nowhere = found.trouble.unwrap_or_else(|| "no broker is configured".to_owned());
        let mut last = (None, ConnectFault::Network(nowhere));
        for address in addresses {
            match self.attempt(&address, &caller).await {
                Ok(session) => {
                    return Ok(Connected { session, server: address.to_string(), caller });
                }
                Err(fault) => {
                    // A refusal says more than an unreachable neighbour, so it is what the round is remembered by.
                    if !matches!(last.1, ConnectFault::Refused(_))
                        || matches!(fault, ConnectFault::Refused(_))
                    {
                        last = (Some(address), fault);
                    }
                }
            }
        }
        Err(last)
    }

    async fn attempt(&self, address: &ServerAddress, caller: &str) -> Result<Arc<dyn Session>, ConnectFault> {
        let tls = limited(self.parts.credentials.tls_config()).await?;
        let attempt = Attempt {
            address: address.clone(),
            tls,
            require_tls: self.settings.require_tls,
            name: self.settings.identity.clone(),
            inbox_prefix: self.inbox(caller),
            timeout: self.settings.connect_timeout,
            ping_interval: self.settings.ping_interval,
            credentials: Arc::clone(&self.parts.credentials),
        };
        self.parts.broker.connect(attempt).await
    }

    /// Where the client library has its own inboxes.
    fn inbox(&self, caller: &str) -> String {
        let calls = subject::reply_prefix(&self.settings.collective, caller);
        match self.settings.inbox {
            Inbox::Calls => calls,
            Inbox::Aside => format!("{calls}.{}", self.aside),
            Inbox::Plain => format!("_INBOX.{}", self.aside),
        }
    }

    /// Subscribes and passes on what arrives, until the connection ends.
    async fn serve(&self, connected: Connected) -> End {
        let mut arriving = match self.subscribe(&connected).await {
            Ok(streams) => streams,
            Err(detail) => return End::Lost(detail),
        };
        if !self.shared.is_current(self.number) {
            return End::Replaced;
        }
        let prefix = subject::reply_prefix(&self.settings.collective, &connected.caller);
        Counters::add(&self.shared.counters.connects);
        self.announce(&connected);
        loop {
            tokio::select! {
                arrived = arriving.next() => match arrived {
                    Some(Arrived::Reply(message)) => self.heard(&message, &prefix),
                    Some(Arrived::Event(index, message)) => self.event(index, message),
                    Some(Arrived::Notice(notice)) => self.complain("notice", &notice),
                    Some(Arrived::Ended) | None => {
                        return End::Lost(format!("the connection to {} ended", connected.server));
                    }
                },
                () = self.shared.replaced(self.number) => return End::Replaced,
            }
        }
    }

    async fn subscribe(
        &self,
        connected: &Connected,
    ) -> Result<SelectAll<BoxStream<'static, Arrived>>, String> {
        let session = &connected.session;
        let making = async {
            let mut streams = SelectAll::new();
            // One subscription there is in any case: its end is the connection's.
            let own = if self.settings.inbox == Inbox::Calls { ">" } else { "end" };
            let replies = format!("{}.{own}", self.inbox(&connected.caller));
            let replies = session.subscribe(replies).await?;
            streams.push(replies.map(Arrived::Reply).chain(futures::stream::iter([Arrived::Ended])).boxed());
            for (index, event) in self.settings.events.iter().enumerate() {
                let events = session.subscribe(event.subject.clone()).await?;
                streams.push(events.map(move |message| Arrived::Event(index, message)).boxed());
            }
            streams.push(session.notices().map(Arrived::Notice).boxed());
            // One connection keeps its order: the broker learns where replies go before it sees the first request.
            session.flush().await?;
            Ok::<_, super::broker::PublishFault>(streams)
        };
        match tokio::time::timeout(CREDENTIALS_LIMIT, making).await {
            Ok(done) => done.map_err(|fault| format!("could not subscribe at {}: {fault}", connected.server)),
            Err(_) => Err(format!("could not subscribe at {} in time", connected.server)),
        }
    }

    fn announce(&self, connected: &Connected) {
        let server_name = connected.session.server_name();
        let detail =
            format!("connected to {} (broker {})", connected.server, super::text::printable(&server_name));
        self.complaints.borrow_mut().reset();
        // The session before the state: whoever hears of "connected" must find it.
        self.shared.session.send_replace(Some(Arc::clone(&connected.session)));
        self.shared.publish_state(LinkState::Connected {
            server: connected.server.clone(),
            server_name,
            max_payload: connected.session.max_payload(),
        });
        self.connected.replace(Some(connected.clone()));
        self.connection_changed.notify_waiters();
        self.parts.record(Fact::LinkChanged { connected: true, detail });
    }

    fn event(&self, index: usize, message: RawMessage) {
        let Some(EventSubscription { lane, sink, .. }) = self.settings.events.get(index) else { return };
        if message.payload.len() > MAX_EVENT_BYTES {
            let error = format!("an event of {} bytes is over the limit", message.payload.len());
            self.parts.record(Fact::EventRejected { error });
            return;
        }
        if sink(RawEvent { subject: message.subject, payload: message.payload }).is_err() {
            Counters::add(&self.shared.counters.dropped);
            self.parts.record(Fact::SightingDropped { lane });
        }
    }

    fn report_lost(&self, detail: &str) {
        self.shared.publish_state(LinkState::Connecting {
            rounds: 0,
            last_error: detail.to_owned(),
            refused: false,
        });
        self.complain("lost", detail);
    }

    fn report_fault(&self, address: Option<&ServerAddress>, fault: &ConnectFault, failed: usize) {
        let refused = matches!(fault, ConnectFault::Refused(_));
        if refused {
            Counters::add(&self.shared.counters.refused_logins);
        }
        let text = match address {
            Some(address) => format!("could not connect to {address}: {fault}"),
            None => format!("could not connect: {fault}"),
        };
        let rounds = u32::try_from(failed).unwrap_or(u32::MAX).saturating_add(1);
        self.shared.publish_state(LinkState::Connecting { rounds, last_error: text.clone(), refused });
        self.complain(fault.kind(), &text);
    }

    /// Logs a trouble, at a bounded rate.
    fn complain(&self, kind: &'static str, text: &str) {
        let line = self.complaints.borrow_mut().line(kind, text, Instant::now().into_std());
        if let Some(detail) = line {
            let connected = self.connected.borrow().is_some();
            self.parts.record(Fact::LinkChanged { connected, detail });
        }
    }
}

async fn limited<T>(asked: impl Future<Output = Result<T, CredentialsError>>) -> Result<T, ConnectFault> {
    tokio::time::timeout(CREDENTIALS_LIMIT, asked)
        .map(|done| match done {
            Ok(done) => done.map_err(|error| ConnectFault::Credentials(error.to_string())),
            Err(_) => Err(ConnectFault::Credentials("get the credentials in time".to_owned())),
        })
        .await
}
