//! The connection.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_nats::{AuthError, Client, ConnectError, ConnectOptions, Event};
use quartermaster_proto::{mesh::accounts::Account, text::escape_bounded};
use tokio::sync::watch;

use super::credentials::Credentials;

/// Longest time for one connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait between two tries to connect.
const RECONNECT_CAP: Duration = Duration::from_secs(2);
/// A connection that answers no ping for twice this long is given up.
const PING_EVERY: Duration = Duration::from_secs(5);

/// Longest refusal that is told, in characters.
const MAX_REFUSAL: usize = 300;
/// So many different refusals are told of one connection; more are shown by the status alone.
const MOST_SAID: usize = 16;

/// Where and as whom to connect.
#[derive(Debug, Clone)]
pub struct BusSettings {
    /// Addresses of brokers, with commas between.
    pub servers: String,
    /// The account; its inboxes begin with its name.
    pub account: Account,
    /// The credentials file, read anew at every connect; none for a broker without logins.
    pub credentials: Option<PathBuf>,
}

/// The settings cannot be used; a broker that is away is no error.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// An address is none.
    #[error("failed to understand the broker's address")]
    Connect(#[source] ConnectError),
}

/// A connection that comes back by itself. Clones share it.
#[derive(Debug, Clone)]
pub struct Bus {
    client: Client,
    connects: watch::Receiver<u64>,
    refused: watch::Receiver<Option<String>>,
}

/// What the connection tells of itself.
struct Told {
    connects: watch::Sender<u64>,
    refused: watch::Sender<Option<String>>,
    /// What was said since the connection came up.
    said: Mutex<BTreeSet<String>>,
}

impl Told {
    fn new(connects: watch::Sender<u64>, refused: watch::Sender<Option<String>>) -> Self {
        Self { connects, refused, said: Mutex::default() }
    }

    fn said(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, account: &str, event: &Event) {
        let refusal = match event {
            Event::Connected => {
                self.connects.send_modify(|count| *count += 1);
                self.refused.send_replace(None);
                self.said().clear();
                return;
            }
            Event::ServerError(error) => error.to_string(),
            Event::ClientError(error) => error.to_string(),
            event => {
                tracing::debug!(%event, "broker");
                return;
            }
        };
        let refusal = escape_bounded(refusal.trim_start_matches("nats: "), MAX_REFUSAL);
        self.refused.send_replace(Some(refusal.clone()));
        let mut said = self.said();
        // Said once, however often it is tried again, and whatever else is refused in between.
        if said.len() < MOST_SAID && said.insert(refusal.clone()) {
            tracing::warn!(account, refusal, "the broker cannot be used as it should");
        }
    }
}

impl Bus {
    /// Begins to connect, and goes on until it is dropped; the broker may be away.
    ///
    /// # Errors
    /// An address cannot be understood.
    pub async fn connect(settings: BusSettings) -> Result<Self, BusError> {
        let ((count, connects), (refusal, refused)) = (watch::channel(0), watch::channel(None));
        let servers = settings.servers.clone();
        let client = options(settings, Told::new(count, refusal))
            .retry_on_initial_connect()
            .connect(servers.as_str())
            .await
            .map_err(BusError::Connect)?;
        Ok(Self { client, connects, refused })
    }

    /// Connects now or not at all, for who asks once.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn connect_once(settings: BusSettings) -> Result<Self, ConnectError> {
        let ((count, connects), (refusal, refused)) = (watch::channel(0), watch::channel(None));
        let servers = settings.servers.clone();
        let told = Told::new(count, refusal);
        let client = options(settings, told).connect(servers.as_str()).await?;
        Ok(Self { client, connects, refused })
    }

    /// The library's client, which publishes and asks.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// What the broker refused last since it was connected, or why it cannot be: in its words, which name a subject where a right is
    /// missing.
    pub fn refused(&self) -> Option<String> {
        self.refused.borrow().clone()
    }

    /// Counts the connects; a change means that something may have been missed.
    pub fn connects(&self) -> watch::Receiver<u64> {
        self.connects.clone()
    }
}

fn options(settings: BusSettings, told: Told) -> ConnectOptions {
    let BusSettings { account, credentials, .. } = settings;
    let options = match credentials {
        None => ConnectOptions::new(),
        Some(path) => ConnectOptions::with_auth_callback(move |nonce| {
            let path = path.clone();
            async move {
                let credentials =
                    Credentials::read(&path).map_err(|error| AuthError::new(error.to_string()))?;
                credentials.login(&nonce)
            }
        }),
    };
    let name = account.name();
    options
        .name(format!("quartermaster {}", account.name()))
        .custom_inbox_prefix(account.inbox_prefix())
        .connection_timeout(CONNECT_LIMIT)
        .ping_interval(PING_EVERY)
        .reconnect_delay_callback(|tries| {
            let doubled =
                Duration::from_millis(50).saturating_mul(1 << u32::try_from(tries.min(8)).unwrap_or(8));
            doubled.min(RECONNECT_CAP)
        })
        .event_callback(move |event| {
            told.take(&name, &event);
            std::future::ready(())
        })
}
