//! The one connection to the broker: every request, reply, discovery and event of this process goes through it.
mod actor;
mod backoff;
mod broker;
mod bucket;
mod cas;
mod complaints;
mod connecting;
mod credentials;
mod handle;
mod hear;
mod keeper;
mod kv;
mod life;
mod messages;
mod nats;
mod pending;
mod requests;
mod servers;
mod settings;
mod snapshot;
mod srv;
mod text;
mod window;

#[cfg(any(test, feature = "testing"))]
pub mod fake;
#[cfg(test)]
mod tests;

pub use actor::{BrokerLink, MAILBOX};
pub use backoff::{TWENTY_SEC_MS, twenty_sec};
pub use broker::{Asked, Attempt, Broker, ConnectFault, PublishFault, RawMessage, Session};
pub use bucket::{BucketFault, BucketFound, BucketSpec};
pub use cas::{CasFault, CasKey};
pub use credentials::{Credentials, CredentialsError, Login};
pub use handle::{ClientWatch, FactSink, LinkHandle, LinkParts};
pub use hear::{Heard, listen};
pub use kv::{KvSeen, watch_rebuilding};
pub use messages::{
    Answer, Call, CallError, ConflictFlag, Discovered, IdentitySink, Retry, WeakConflictFlag,
};
pub use nats::NatsBroker;
pub use servers::{
    Candidates, ServerAddress, ServerAddressError, Servers, SrvError, SrvResolver, SrvTarget, candidates,
};
pub use settings::{
    AgentDeadlines, Clock, EventSink, EventSubscription, Inbox, LinkSettings, MAX_EVENT_BYTES, RawEvent,
    SinkFull,
};
pub use snapshot::{LinkSnapshot, LinkState};
pub use srv::SystemResolver;
