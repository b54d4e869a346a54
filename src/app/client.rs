//! A connection for the verbs that speak to running instances.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::link::{Inbox, LinkHandle, LinkParts, LinkState, ServerAddress, Servers};
use quartermaster_actors::supervise::{Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy};
use quartermaster_actors::vault::{Outside, VaultKeeper};

use super::{STOP_AT_ONCE_WITHIN, settings};
use crate::config::{Config, ControlLogin};

/// Time between two looks at whether the connection is there.
const LOOK: Duration = Duration::from_millis(20);

/// How instances are reached.
#[derive(Debug, Clone)]
pub enum Route {
    /// A broker by its address, with a login of the operator's own.
    Server {
        /// The brokers.
        servers: Vec<ServerAddress>,
        /// The login.
        login: Box<ControlLogin>,
    },
    /// As the instance with this configuration.
    Instance(Arc<Config>),
}

/// The connection.
#[derive(Debug)]
pub struct ControlClient {
    link: LinkHandle,
    overseer: OverseerHandle,
}

impl ControlClient {
    /// Connects, trying every broker once. Inside an actix system.
    ///
    /// # Errors
    /// One sentence for people: what was tried and why it failed.
    pub async fn open(route: &Route, limit: Duration) -> Result<Self, String> {
        let (mut link, vault) = match route {
            Route::Server { servers, login } => (
                settings::plain_link(Servers::List(servers.clone()), "quartermaster", login),
                settings::plain_vault("quartermaster", login),
            ),
            Route::Instance(config) => {
                if let Some(login) = &config.control.login {
                    (settings::control_link(config, login), settings::control_vault(config, login))
                } else {
                    let mut link = settings::link(config);
                    // What the instance is answered is not for our ears.
                    link.inbox = Inbox::Aside;
                    (link, settings::vault(config))
                }
            }
        };
        link.connect_timeout = link.connect_timeout.min(limit);
        let vault = VaultKeeper::start_alone(vault, Outside::real());
        let parts = LinkParts::real(Arc::new(vault), Arc::new(crate::clock::now), Arc::new(|_| ()));
        let link = LinkHandle::new(link, parts);
        let owned = Owned::new(link.slot().clone(), RestartPolicy::standard(), link.factory());
        let overseer = Overseer::launch(OverseerSettings::default(), vec![Box::new(owned)], Arc::new(|_| ()));
        let client = Self { link, overseer };
        match client.connected(limit).await {
            Ok(()) => Ok(client),
            Err(why) => {
                client.close().await;
                Err(why)
            }
        }
    }

    async fn connected(&self, limit: Duration) -> Result<(), String> {
        let end = tokio::time::Instant::now() + limit;
        loop {
            match self.link.snapshot().state {
                LinkState::Connected { .. } => return Ok(()),
                LinkState::Connecting { rounds, last_error, .. } if rounds > 0 => return Err(last_error),
                LinkState::Connecting { .. } if tokio::time::Instant::now() >= end => {
                    return Err(format!("no broker answered within {limit:?}"));
                }
                LinkState::Connecting { .. } => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// The client library's handle on the present connection; none while there is no connection.
    pub fn client(&self) -> Option<async_nats::Client> {
        self.link.client()
    }

    /// Leaves.
    pub async fn close(self) {
        self.overseer.stop(STOP_AT_ONCE_WITHIN).await;
    }
}
