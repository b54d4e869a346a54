//! A broker as the link needs it: connect once, subscribe, publish, notice the end. One [`Session`] is one connection;
//! it never reconnects by itself, because every connect is to start from fresh addresses and fresh credentials.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use super::credentials::Credentials;
use super::servers::ServerAddress;

/// All that one attempt to connect needs.
#[derive(Clone)]
pub struct Attempt {
    /// The broker to try.
    pub address: ServerAddress,
    /// Fresh TLS configuration, if TLS is to be spoken.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// True when a broker without TLS is to be refused.
    pub require_tls: bool,
    /// Name of the connection.
    pub name: String,
    /// Prefix of the client library's own inboxes.
    pub inbox_prefix: String,
    /// Limit of the whole attempt.
    pub timeout: Duration,
    /// Time between pings.
    pub ping_interval: Duration,
    /// Asked for the login once the broker's nonce is known.
    pub credentials: Arc<dyn Credentials>,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectFault {
    /// The broker refused the login.
    #[error("the broker refused the login: {0}")]
    Refused(String),
    /// Credentials could not be had.
    #[error("could not {0}")]
    Credentials(String),
    /// TLS failed, for example because a certificate did not verify.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// Name resolution, TCP or anything below failed.
    #[error("{0}")]
    Network(String),
    /// It took too long.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

impl ConnectFault {
    /// A name for the kind of fault.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Credentials(_) => "credentials",
            Self::Tls(_) => "tls",
            Self::Network(_) => "network",
            Self::TimedOut(_) => "timed out",
        }
    }
}

/// A message that arrived.
#[derive(Debug, Clone)]
pub struct RawMessage {
    /// The subject it was published on.
    pub subject: String,
    /// Its bytes.
    pub payload: Bytes,
}

/// A message that wants an answer.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The subject it was published on.
    pub subject: String,
    /// Its bytes.
    pub payload: Bytes,
    /// Where the answer goes; none when nobody waits for one.
    pub reply: Option<String>,
}

/// Why a message could not be handed to the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("publish: {0}")]
pub struct PublishFault(pub String);

/// Connects to brokers.
pub trait Broker: Send + Sync + 'static {
    /// Tries one broker once.
    fn connect(&self, attempt: Attempt) -> BoxFuture<'static, Result<Arc<dyn Session>, ConnectFault>>;
}

/// One connection. It ends with the connection; its streams end with it.
pub trait Session: Send + Sync + 'static {
    /// The broker's own name.
    fn server_name(&self) -> String;

    /// Largest message the broker takes, bytes.
    fn max_payload(&self) -> usize;

    /// Addresses of further brokers of the same cluster, as the broker told them.
    fn advertised(&self) -> Vec<ServerAddress>;

    /// Hands one message to the connection, with an empty reply field.
    fn publish(&self, subject: String, payload: Bytes) -> BoxFuture<'static, Result<(), PublishFault>>;

    /// Subscribes; the stream ends when the connection does, and dropping it unsubscribes.
    fn subscribe(
        &self,
        subject: String,
    ) -> BoxFuture<'static, Result<BoxStream<'static, RawMessage>, PublishFault>>;

    /// Subscribes to requests, as [`Session::subscribe`] does to messages.
    fn listen(&self, subject: String) -> BoxFuture<'static, Result<BoxStream<'static, Asked>, PublishFault>>;

    /// Hands one answer to the connection, with these headers.
    fn answer(
        &self,
        to: String,
        headers: Vec<(&'static str, String)>,
        payload: Bytes,
    ) -> BoxFuture<'static, Result<(), PublishFault>>;

    /// What the broker or the library complain of while connected, for example a subject that may not be subscribed to.
    /// Answers once; later calls get an empty stream.
    fn notices(&self) -> BoxStream<'static, String>;

    /// Waits until everything handed over so far has been written out.
    fn flush(&self) -> BoxFuture<'static, Result<(), PublishFault>>;

    /// Ends the connection, whoever else still holds it.
    fn close(&self) -> BoxFuture<'static, ()>;

    /// The client library's handle, for JetStream, key-value and micro services; `None` with a fake. It dies with this
    /// session: take the next one from [`LinkHandle::client`](super::LinkHandle::client).
    fn client(&self) -> Option<async_nats::Client>;
}
