//! The real broker, through async-nats.
//!
//! async-nats would reconnect by itself, but with the TLS configuration and the server pool of the first connect. So one
//! client is made per connection and must end when its connection ends. The library has no switch for that; its
//! reconnect callback does it: the pool holds a second address that nobody can listen on, the callback names it for
//! every connect but the first, and the limit of one attempt then ends the client without a packet leaving the machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{
    Auth, AuthError, ConnectErrorKind, ConnectOptions, Event, HeaderMap, ReconnectToServer, ServerAddr,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use secrecy::ExposeSecret;
use tokio::sync::mpsc;

use super::broker::{Asked, Attempt, Broker, ConnectFault, PublishFault, RawMessage, Session};
use super::credentials::Login;
use super::servers::ServerAddress;
use super::text::printable;
use crate::text::chain;

/// Port 0 cannot be listened on, so a connect to it fails at once.
const NOWHERE: &str = "nats://127.0.0.1:0";

/// Messages that may wait in one subscription. The link's reader does a table look-up for most of them, so a longer
/// queue would only hide that it cannot keep up.
const SUBSCRIPTION_CAPACITY: usize = 65_536;

/// Commands that may wait for the connection's writer; a publish beyond that waits.
const WRITER_CAPACITY: usize = 4_096;

/// Complaints of one connection that may wait to be read.
const NOTICES: usize = 64;

/// Connects with async-nats.
#[derive(Debug, Clone, Copy, Default)]
pub struct NatsBroker;

struct NatsSession {
    client: async_nats::Client,
    notices: Mutex<Option<mpsc::Receiver<String>>>,
}

impl Broker for NatsBroker {
    fn connect(&self, attempt: Attempt) -> BoxFuture<'static, Result<Arc<dyn Session>, ConnectFault>> {
        async move {
            let limit = attempt.timeout;
            match tokio::time::timeout(limit, connect(attempt)).await {
                Ok(done) => done,
                Err(_) => Err(ConnectFault::TimedOut(limit)),
            }
        }
        .boxed()
    }
}

async fn connect(attempt: Attempt) -> Result<Arc<dyn Session>, ConnectFault> {
    let parse =
        |text: &str| text.parse::<ServerAddr>().map_err(|error| ConnectFault::Network(error.to_string()));
    let target = parse(&attempt.address.to_string())?;
    let nowhere = parse(NOWHERE)?;
    let first = Arc::new(AtomicBool::new(true));
    let pool = vec![target.clone(), nowhere.clone()];
    let credentials = Arc::clone(&attempt.credentials);
    let mut options = ConnectOptions::with_auth_callback(move |nonce| {
        let credentials = Arc::clone(&credentials);
        async move {
            let nonce = (!nonce.is_empty()).then_some(nonce);
            // The library wants a future that can be shared between threads; the handle of a task is one.
            match tokio::spawn(credentials.login(nonce)).await {
                Ok(login) => login.map(auth).map_err(|error| AuthError::new(error.to_string())),
                Err(_) => Err(AuthError::new("the credentials were not given")),
            }
        }
    })
    .reconnect_to_server_callback(move |_, _| {
        let addr = if first.swap(false, Ordering::SeqCst) { target.clone() } else { nowhere.clone() };
        async move { Some(ReconnectToServer { addr, delay: Some(Duration::ZERO) }) }
    })
    .max_reconnects(1)
    .ignore_discovered_servers()
    .retain_servers_order()
    .connection_timeout(attempt.timeout)
    .name(attempt.name)
    .custom_inbox_prefix(attempt.inbox_prefix)
    .ping_interval(attempt.ping_interval)
    .subscription_capacity(SUBSCRIPTION_CAPACITY)
    .client_capacity(WRITER_CAPACITY)
    .require_tls(attempt.require_tls);
    let (tell, notices) = mpsc::channel(NOTICES);
    options = options.event_callback(move |event| {
        if let Some(notice) = notice(&event) {
            // Beyond the bound they are repeats; the log would hold them back as well.
            let _ = tell.try_send(notice);
        }
        async {}
    });
    if let Some(tls) = attempt.tls {
        options = options.tls_client_config(tls.as_ref().clone());
    }
    let client = options.connect(pool).await.map_err(|error| fault(&error))?;
    Ok(Arc::new(NatsSession { client, notices: Mutex::new(Some(notices)) }))
}

fn notice(event: &Event) -> Option<String> {
    match event {
        Event::ServerError(error) => Some(format!("the broker says: {}", printable(&error.to_string()))),
        Event::SlowConsumer(_) => {
            Some("messages arrive faster than they are read; some were dropped".to_owned())
        }
        Event::LameDuckMode => Some("the broker is about to shut down".to_owned()),
        _ => None,
    }
}

fn auth(login: Login) -> Auth {
    let open = |secret: Option<secrecy::SecretString>| secret.map(|text| text.expose_secret().to_owned());
    let mut auth = Auth::new();
    auth.username = login.user;
    auth.password = open(login.password);
    auth.token = open(login.token);
    auth.jwt = open(login.jwt);
    auth.signature = login.signature;
    auth
}

fn fault(error: &async_nats::ConnectError) -> ConnectFault {
    let detail = chain(error);
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation => ConnectFault::Refused(detail),
        ConnectErrorKind::Authentication => ConnectFault::Credentials(detail),
        ConnectErrorKind::Tls => ConnectFault::Tls(detail),
        // What TLS says reaches us as an input or output error, with the library's or the peer's words for it.
        _ if ["certificate", "tls", "fatal alert"]
            .iter()
            .any(|word| detail.to_lowercase().contains(word)) =>
        {
            ConnectFault::Tls(detail)
        }
        _ => ConnectFault::Network(detail),
    }
}

impl Session for NatsSession {
    fn server_name(&self) -> String {
        self.client.server_info().server_name
    }

    fn max_payload(&self) -> usize {
        self.client.max_payload()
    }

    fn advertised(&self) -> Vec<ServerAddress> {
        let info = self.client.server_info();
        info.connect_urls.iter().filter_map(|url| ServerAddress::parse(url).ok()).collect()
    }

    fn publish(&self, subject: String, payload: Bytes) -> BoxFuture<'static, Result<(), PublishFault>> {
        let client = self.client.clone();
        async move { client.publish(subject, payload).await.map_err(|error| PublishFault(chain(&error))) }
            .boxed()
    }

    fn subscribe(
        &self,
        subject: String,
    ) -> BoxFuture<'static, Result<BoxStream<'static, RawMessage>, PublishFault>> {
        let client = self.client.clone();
        async move {
            let messages = client.subscribe(subject).await.map_err(|error| PublishFault(chain(&error)))?;
            Ok(messages
                .map(|message| RawMessage {
                    subject: message.subject.into_string(),
                    payload: message.payload,
                })
                .boxed())
        }
        .boxed()
    }

    fn listen(&self, subject: String) -> BoxFuture<'static, Result<BoxStream<'static, Asked>, PublishFault>> {
        let client = self.client.clone();
        async move {
            let messages = client.subscribe(subject).await.map_err(|error| PublishFault(chain(&error)))?;
            Ok(messages
                .map(|message| Asked {
                    subject: message.subject.into_string(),
                    payload: message.payload,
                    reply: message.reply.map(async_nats::Subject::into_string),
                })
                .boxed())
        }
        .boxed()
    }

    fn answer(
        &self,
        to: String,
        headers: Vec<(&'static str, String)>,
        payload: Bytes,
    ) -> BoxFuture<'static, Result<(), PublishFault>> {
        let client = self.client.clone();
        async move {
            let sent = if headers.is_empty() {
                client.publish(to, payload).await
            } else {
                let mut map = HeaderMap::new();
                for (name, value) in headers {
                    map.insert(name, value.as_str());
                }
                client.publish_with_headers(to, map, payload).await
            };
            sent.map_err(|error| PublishFault(chain(&error)))
        }
        .boxed()
    }

    fn notices(&self) -> BoxStream<'static, String> {
        let taken = self.notices.lock().unwrap_or_else(PoisonError::into_inner).take();
        match taken {
            Some(receiver) => futures::stream::unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|notice| (notice, receiver))
            })
            .boxed(),
            None => futures::stream::empty().boxed(),
        }
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), PublishFault>> {
        let client = self.client.clone();
        async move { client.flush().await.map_err(|error| PublishFault(chain(&error))) }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let client = self.client.clone();
        async move {
            // Asking for a reconnect ends this client, see the top of this file.
            let _ = client.force_reconnect().await;
        }
        .boxed()
    }

    fn client(&self) -> Option<async_nats::Client> {
        Some(self.client.clone())
    }
}
