//! A broker and a keeper of keys without any outside world, for tests with paused time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use quartermaster_proto::choria::envelope::{self, OpenRequest, Proof, Reply};
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use super::broker::{Asked, Attempt, Broker, ConnectFault, PublishFault, RawMessage, Session};
use super::credentials::{Credentials, CredentialsError, Login};
use super::servers::{ServerAddress, SrvError, SrvResolver, SrvTarget};

/// What a fake broker does with each message published to it: the messages it delivers in return.
pub type Responder = Arc<dyn Fn(&str, &[u8]) -> Vec<RawMessage> + Send + Sync>;

/// An answer to a request, as it was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Where it went.
    pub to: String,
    /// Its headers.
    pub headers: Vec<(&'static str, String)>,
    /// Its bytes.
    pub payload: Bytes,
}

#[derive(Default)]
struct State {
    script: VecDeque<ConnectFault>,
    attempts: Vec<ServerAddress>,
    published: Vec<RawMessage>,
    lanes: Vec<(String, mpsc::UnboundedSender<RawMessage>)>,
    listeners: Vec<(String, mpsc::UnboundedSender<Asked>)>,
    answers: Vec<Answered>,
    responder: Option<Responder>,
    max_payload: usize,
    connections: usize,
}

/// A broker that lives in memory. Clones are the same broker.
#[derive(Clone)]
pub struct FakeBroker(Arc<Mutex<State>>);

impl std::fmt::Debug for FakeBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeBroker").finish_non_exhaustive()
    }
}

impl Default for FakeBroker {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeBroker {
    /// One that lets everybody in, takes 1 MiB and answers nothing.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State { max_payload: 1024 * 1024, ..State::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next attempts to connect fail like this, one after the other.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = ConnectFault>) {
        self.state().script.extend(faults);
    }

    /// Sets what is delivered in return for each published message.
    pub fn respond(&self, responder: impl Fn(&str, &[u8]) -> Vec<RawMessage> + Send + Sync + 'static) {
        self.state().responder = Some(Arc::new(responder));
    }

    /// Sets the largest message taken.
    pub fn set_max_payload(&self, bytes: usize) {
        self.state().max_payload = bytes;
    }

    /// Delivers a message to whoever subscribed to its subject; true when somebody had.
    pub fn deliver(&self, message: &RawMessage) -> bool {
        let mut delivered = false;
        for (pattern, lane) in &self.state().lanes {
            if matches(pattern, &message.subject) {
                delivered |= lane.send(message.clone()).is_ok();
            }
        }
        delivered
    }

    /// Delivers a request to whoever listens to its subject; true when somebody does.
    pub fn ask(&self, request: &Asked) -> bool {
        let mut delivered = false;
        for (subject, listener) in &self.state().listeners {
            if *subject == request.subject {
                delivered |= listener.send(request.clone()).is_ok();
            }
        }
        delivered
    }

    /// The answers given so far.
    pub fn answers(&self) -> Vec<Answered> {
        self.state().answers.clone()
    }

    /// Ends every connection.
    pub fn drop_connections(&self) {
        let mut state = self.state();
        state.lanes.clear();
        state.listeners.clear();
    }

    /// Addresses tried so far.
    pub fn attempts(&self) -> Vec<ServerAddress> {
        self.state().attempts.clone()
    }

    /// Connections made so far.
    pub fn connections(&self) -> usize {
        self.state().connections
    }

    /// Everything published so far.
    pub fn published(&self) -> Vec<RawMessage> {
        self.state().published.clone()
    }

    /// Subjects subscribed to at the moment.
    pub fn subscriptions(&self) -> Vec<String> {
        self.state()
            .lanes
            .iter()
            .filter(|(_, lane)| !lane.is_closed())
            .map(|(subject, _)| subject.clone())
            .collect()
    }
}

fn matches(pattern: &str, subject: &str) -> bool {
    pattern == subject || pattern.strip_suffix('>').is_some_and(|start| subject.starts_with(start))
}

impl Broker for FakeBroker {
    fn connect(&self, attempt: Attempt) -> BoxFuture<'static, Result<Arc<dyn Session>, ConnectFault>> {
        let me = self.clone();
        async move {
            attempt
                .credentials
                .login(None)
                .await
                .map_err(|error| ConnectFault::Credentials(error.to_string()))?;
            let mut state = me.state();
            state.attempts.push(attempt.address);
            if let Some(fault) = state.script.pop_front() {
                return Err(fault);
            }
            state.connections += 1;
            drop(state);
            let session: Arc<dyn Session> = Arc::new(FakeSession(me));
            Ok(session)
        }
        .boxed()
    }
}

struct FakeSession(FakeBroker);

impl Session for FakeSession {
    fn server_name(&self) -> String {
        "fake".to_owned()
    }

    fn max_payload(&self) -> usize {
        self.0.state().max_payload
    }

    fn advertised(&self) -> Vec<ServerAddress> {
        Vec::new()
    }

    fn publish(&self, subject: String, payload: Bytes) -> BoxFuture<'static, Result<(), PublishFault>> {
        let broker = self.0.clone();
        async move {
            let responder = {
                let mut state = broker.state();
                state.published.push(RawMessage { subject: subject.clone(), payload: payload.clone() });
                state.responder.clone()
            };
            for answer in responder.map(|respond| respond(&subject, &payload)).unwrap_or_default() {
                broker.deliver(&answer);
            }
            Ok(())
        }
        .boxed()
    }

    fn subscribe(
        &self,
        subject: String,
    ) -> BoxFuture<'static, Result<BoxStream<'static, RawMessage>, PublishFault>> {
        let (lane, messages) = mpsc::unbounded_channel();
        self.0.state().lanes.push((subject, lane));
        let stream = futures::stream::unfold(messages, |mut messages| async move {
            messages.recv().await.map(|message| (message, messages))
        });
        async move { Ok(stream.boxed()) }.boxed()
    }

    fn listen(&self, subject: String) -> BoxFuture<'static, Result<BoxStream<'static, Asked>, PublishFault>> {
        let (lane, requests) = mpsc::unbounded_channel();
        self.0.state().listeners.push((subject, lane));
        let stream = futures::stream::unfold(requests, |mut requests| async move {
            requests.recv().await.map(|request| (request, requests))
        });
        async move { Ok(stream.boxed()) }.boxed()
    }

    fn answer(
        &self,
        to: String,
        headers: Vec<(&'static str, String)>,
        payload: Bytes,
    ) -> BoxFuture<'static, Result<(), PublishFault>> {
        self.0.state().answers.push(Answered { to, headers, payload });
        async { Ok(()) }.boxed()
    }

    fn notices(&self) -> BoxStream<'static, String> {
        futures::stream::empty().boxed()
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), PublishFault>> {
        async { Ok(()) }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        async {}.boxed()
    }

    fn client(&self) -> Option<async_nats::Client> {
        None
    }
}

/// Credentials that prove nothing: protocol 1, unsigned, no TLS, no login.
#[derive(Debug, Clone)]
pub struct FakeCredentials {
    /// The caller id.
    pub caller: String,
}

impl FakeCredentials {
    /// With this caller id.
    pub fn new(caller: impl Into<String>) -> Self {
        Self { caller: caller.into() }
    }
}

impl Credentials for FakeCredentials {
    fn caller(&self) -> BoxFuture<'static, Result<String, CredentialsError>> {
        let caller = self.caller.clone();
        async move { Ok(caller) }.boxed()
    }

    fn tls_config(&self) -> BoxFuture<'static, Result<Option<Arc<rustls::ClientConfig>>, CredentialsError>> {
        async { Ok(None) }.boxed()
    }

    fn login(&self, _: Option<Vec<u8>>) -> BoxFuture<'static, Result<Login, CredentialsError>> {
        async { Ok(Login::default()) }.boxed()
    }

    fn sign_request(&self, _: Zeroizing<Vec<u8>>) -> BoxFuture<'static, Result<Proof, CredentialsError>> {
        async { Ok(Proof::Insecure) }.boxed()
    }
}

/// Answers SRV questions from a list that may be changed; an absent list is a name server that does not answer.
#[derive(Debug, Clone, Default)]
pub struct FakeResolver(Arc<Mutex<Option<Vec<SrvTarget>>>>);

impl FakeResolver {
    /// Sets the answer to every question; `None` for no answer at all.
    pub fn set(&self, targets: Option<Vec<SrvTarget>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = targets;
    }
}

impl SrvResolver for FakeResolver {
    fn srv(&self, name: String) -> BoxFuture<'static, Result<Vec<SrvTarget>, SrvError>> {
        let answer = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        async move { answer.ok_or(SrvError { name, reason: "no name server answers".to_owned() }) }.boxed()
    }
}

/// Takes a request apart and makes the reply `identity` would send with this payload, as a message to deliver. `None`
/// when the bytes are no request.
pub fn reply_to(request: &[u8], identity: &str, payload: &[u8]) -> Option<RawMessage> {
    let open = envelope::open_request(request).ok()?;
    seal(&open, identity, payload)
}

fn seal(open: &OpenRequest, identity: &str, payload: &[u8]) -> Option<RawMessage> {
    let reply = Reply {
        request: open.request.id.clone(),
        sender: identity.to_owned(),
        agent: open.request.agent.clone(),
        time: open.request.time,
        payload: payload.to_vec(),
    };
    let bytes = envelope::seal_reply(open.generation, &reply, None).ok()?;
    Some(RawMessage { subject: open.reply_to.clone(), payload: bytes.into() })
}
