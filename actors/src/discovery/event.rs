//! What a startup event says, as far as it concerns the fleet.

use std::hash::{DefaultHasher, Hash, Hasher};

use quartermaster_proto::choria::event::{self, EventError, EventKind};
use quartermaster_proto::choria::identity::{Identity, IdentityError};

/// The component of an ordinary server.
const SERVER: &str = "server";

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noted {
    /// A host started in provisioning mode.
    WantsProvisioning {
        /// The host.
        identity: Identity,
        /// A digest of the event's id.
        event: u64,
        /// Seconds since the epoch, by the host's clock.
        stamp: i64,
    },
    /// A host started as an ordinary server.
    Serves {
        /// The host.
        identity: Identity,
    },
    /// Some other event.
    Other,
}

/// Why an event cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EventRefused {
    /// It is no lifecycle event.
    #[error("could not read a lifecycle event")]
    Unreadable(#[from] EventError),
    /// Its sender's name can be no server's.
    #[error("a lifecycle event names an impossible identity")]
    Identity(#[from] IdentityError),
}

/// Reads an event; `component` is the one that hosts in provisioning mode use.
pub fn read_event(bytes: &[u8], component: &str) -> Result<Noted, EventRefused> {
    let event = event::decode(bytes)?;
    if event.kind != EventKind::Startup {
        return Ok(Noted::Other);
    }
    let provisioning = event.component == component;
    if !provisioning && event.component != SERVER {
        return Ok(Noted::Other);
    }
    let identity = Identity::parse(&event.identity)?;
    if !provisioning {
        return Ok(Noted::Serves { identity });
    }
    let mut digest = DefaultHasher::new();
    event.id.hash(&mut digest);
    Ok(Noted::WantsProvisioning { identity, event: digest.finish(), stamp: event.timestamp })
}
