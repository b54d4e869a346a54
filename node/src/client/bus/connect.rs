//! The connection.

use std::{path::PathBuf, time::Duration};

use async_nats::{AuthError, Client, ConnectError, ConnectOptions, Event};
use quartermaster_proto::mesh::accounts::Account;
use tokio::sync::watch;

use super::credentials::Credentials;

/// Longest time for one connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait between two tries to connect.
const RECONNECT_CAP: Duration = Duration::from_secs(2);
/// A connection that answers no ping for twice this long is given up.
const PING_EVERY: Duration = Duration::from_secs(5);

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
}

impl Bus {
    /// Begins to connect, and goes on until it is dropped; the broker may be away.
    ///
    /// # Errors
    /// An address cannot be understood.
    pub async fn connect(settings: BusSettings) -> Result<Self, BusError> {
        let (count, connects) = watch::channel(0);
        let servers = settings.servers.clone();
        let client = options(settings, count)
            .retry_on_initial_connect()
            .connect(servers.as_str())
            .await
            .map_err(BusError::Connect)?;
        Ok(Self { client, connects })
    }

    /// Connects now or not at all, for who asks once.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn connect_once(settings: BusSettings) -> Result<Self, ConnectError> {
        let (count, connects) = watch::channel(0);
        let servers = settings.servers.clone();
        let client = options(settings, count).connect(servers.as_str()).await?;
        Ok(Self { client, connects })
    }

    /// The library's client, which publishes and asks.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Counts the connects; a change means that something may have been missed.
    pub fn connects(&self) -> watch::Receiver<u64> {
        self.connects.clone()
    }
}

fn options(settings: BusSettings, count: watch::Sender<u64>) -> ConnectOptions {
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
            if matches!(event, Event::Connected) {
                count.send_modify(|count| *count += 1);
            } else {
                tracing::debug!(%event, "broker");
            }
            std::future::ready(())
        })
}
