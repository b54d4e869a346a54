//! Connections as Choria servers make them (choria.md 1.1, 1.3, 1.4).

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Auth, Client, ConnectOptions, Event};
use ed25519_dalek::{Signer as _, SigningKey};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::ledger::Ledger;
use super::tls;

/// Handshakes under way at once. Thousands at a time on a few cores would all be slower than the limit of one attempt, and
/// their work would be thrown away and begun anew, for ever.
pub(super) const DIALS: usize = 64;

/// How one logs in.
#[derive(Clone)]
pub(super) enum Login {
    /// A server in provisioning mode: its provisioning token, user and password of that token.
    Node,
    /// A provisioned server of an issuer network: its token, and the broker's nonce signed with its key.
    Server { jwt: String, seed: [u8; 32] },
    /// A provisioned server of a network without tokens.
    None,
}

/// Why a connection could not be made. Refused logins and absent brokers are none of these: they are tried again for ever.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The broker's address cannot be used.
    #[error("could not connect to {broker}")]
    Connect {
        /// The broker as given.
        broker: String,
        /// Why.
        #[source]
        source: async_nats::ConnectError,
    },
    /// A subscription was not taken.
    #[error("could not subscribe")]
    Subscribe(#[source] async_nats::SubscribeError),
    /// The broker did not confirm the subscriptions.
    #[error("could not flush the subscriptions")]
    Flush(#[source] async_nats::client::FlushError),
    /// TLS could not be set up.
    #[error("could not set up TLS")]
    Tls(#[source] rustls::Error),
}

/// One of [`DIALS`] turns to connect.
pub(super) struct Turn<'a>(
    #[expect(dead_code, reason = "held, never looked at")] Option<SemaphorePermit<'a>>,
);

/// Makes the connections of a fleet.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) brokers: Arc<[String]>,
    pub(super) tls: bool,
    pub(super) jwt: Arc<str>,
    pub(super) user: Option<(String, String)>,
    /// Time between pings on a silent connection, and the limit of one attempt to connect.
    pub(super) patience: Duration,
    pub(super) ledger: Arc<Ledger>,
    /// Turns to connect, [`DIALS`] of them.
    pub(super) turns: Arc<Semaphore>,
}

impl Dialer {
    /// A turn to connect, for [`Self::up`].
    pub(super) async fn turn(&self) -> Turn<'_> {
        // A fleet's turns are never closed.
        Turn(self.turns.acquire().await.ok())
    }

    /// Completes when the broker has everything that was asked of this connection so far, however long it takes. The turn
    /// goes on to another one as soon as the connection is up, or refused or unanswered for longer than one attempt takes.
    pub(super) async fn up(&self, client: &Client, turn: Turn<'_>) -> Result<(), ConnectError> {
        let flushed = client.flush();
        tokio::pin!(flushed);
        if let Ok(done) = tokio::time::timeout(self.patience, &mut flushed).await {
            return done.map_err(ConnectError::Flush);
        }
        drop(turn);
        flushed.await.map_err(ConnectError::Flush)
    }

    /// Connects, however long it takes, and keeps the connection up.
    pub(super) async fn connect(&self, name: Option<String>, login: Login) -> Result<Client, ConnectError> {
        let (jwt, user) = (Arc::clone(&self.jwt), self.user.clone());
        let mut options = ConnectOptions::with_auth_callback(move |nonce| {
            let auth = auth(&login, &jwt, user.as_ref(), &nonce);
            async move { Ok(auth) }
        })
        .custom_inbox_prefix("provisioning.reply")
        .connection_timeout(self.patience)
        .ping_interval(self.patience)
        .max_reconnects(None)
        .retry_on_initial_connect()
        .reconnect_delay_callback(|attempts| Duration::from_millis(250 * (attempts as u64).min(20)));
        if let Some(name) = name {
            options = options.name(name);
        }
        if self.tls {
            options =
                options.require_tls(true).tls_client_config(tls::unverified().map_err(ConnectError::Tls)?);
        }
        let ledger = Arc::clone(&self.ledger);
        options = options.event_callback(move |event| {
            let ledger = Arc::clone(&ledger);
            async move {
                match event {
                    Event::Connected => ledger.connection(true),
                    Event::Disconnected => ledger.connection(false),
                    Event::SlowConsumer(_) => tracing::warn!("a subscription of the emulated fleet is full"),
                    other => tracing::debug!(%other, "connection event"),
                }
            }
        });
        let brokers: Vec<&str> = self.brokers.iter().map(String::as_str).collect();
        options
            .connect(brokers.as_slice())
            .await
            .map_err(|source| ConnectError::Connect { broker: brokers.join(","), source })
    }
}

fn auth(login: &Login, provisioning: &str, user: Option<&(String, String)>, nonce: &[u8]) -> Auth {
    let mut auth = Auth::new();
    match login {
        Login::Node => {
            auth.token = Some(provisioning.to_owned());
            if let Some((name, password)) = user {
                auth.username = Some(name.clone());
                auth.password = Some(password.clone());
            }
        }
        Login::Server { jwt, seed } => {
            auth.token = Some(jwt.clone());
            auth.jwt = Some(jwt.clone());
            auth.signature = Some(SigningKey::from_bytes(seed).sign(nonce).to_bytes().to_vec());
        }
        Login::None => {}
    }
    auth
}
