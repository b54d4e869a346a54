//! One login and nothing else, for `check --connect`.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::link::LinkState;
use quartermaster_actors::metrics::Recorder;
use quartermaster_actors::supervise::{Overseer, OverseerSettings, Owned, RestartPolicy, Slot};
use quartermaster_actors::vault::{Outside, VaultKeeper};

use super::build::build_link;
use super::{Pace, STOP_WITHIN, settings};
use crate::config::Config;

/// How long a login may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(15);

/// What a successful login showed (`check --connect`).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConnectReport {
    /// The broker that answered, as `host:port`.
    pub broker: String,
    /// Its name for itself.
    pub name: String,
    /// Largest message it accepts, in bytes.
    pub max_payload: u64,
}

/// Logs in once with the configured credentials and leaves again. The error is one sentence for people: what was tried and
/// why it failed.
pub fn connect_check(config: &Arc<Config>) -> Result<ConnectReport, String> {
    let config = Arc::clone(config);
    actix_rt::System::new().block_on(async move {
        let recorder =
            Recorder::new(&config.site).map_err(|error| quartermaster_actors::text::chain(&error))?;
        let vault = VaultKeeper::start_alone(settings::vault(&config), Outside::real());
        let discovery = Slot::new("discovery", 1);
        let link = build_link(&config, Pace::default(), &vault, &recorder, &discovery);
        let owned = Owned::new(link.slot().clone(), RestartPolicy::standard(), link.factory());
        let overseer = Overseer::launch(OverseerSettings::default(), vec![Box::new(owned)], Arc::new(|_| ()));
        let connected = link.ready(CONNECT_WITHIN).await;
        let state = link.snapshot().state;
        overseer.stop(STOP_WITHIN).await;
        match state {
            LinkState::Connected { server, server_name, max_payload } if connected => Ok(ConnectReport {
                broker: server,
                name: server_name,
                max_payload: u64::try_from(max_payload).unwrap_or(u64::MAX),
            }),
            LinkState::Connecting { last_error, .. } if !last_error.is_empty() => Err(last_error),
            _ => Err(format!("no broker answered within {CONNECT_WITHIN:?}")),
        }
    })
}
