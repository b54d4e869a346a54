//! What a service is told at its start, what it is asked and what it answers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::link::LinkHandle;

/// On which lane an endpoint's requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// For what changes something: heard first, whatever waits on the other lane.
    Command,
    /// For what only asks.
    Question,
}

/// One endpoint of the service.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its name, the last word of its subject.
    pub name: &'static str,
    /// Where its requests wait.
    pub lane: Lane,
    /// What is published about it.
    pub metadata: BTreeMap<String, String>,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The endpoint.
    pub endpoint: &'static str,
    /// Its bytes.
    pub payload: Bytes,
    /// The most bytes the broker takes for the answer.
    pub most: usize,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// What was asked for.
    Answer(Bytes),
    /// It was not done.
    Fault {
        /// The number in the header `Nats-Service-Error-Code`.
        status: u16,
        /// One line for the header `Nats-Service-Error`.
        text: String,
        /// The whole of it.
        body: Bytes,
    },
}

/// Answers requests. Several are under way at once; a slow one holds up no other.
pub type RequestHandler = Arc<dyn Fn(Request) -> BoxFuture<'static, Reply> + Send + Sync>;

/// What a service is told at its start.
#[derive(Clone)]
pub struct ServiceSettings {
    /// Its name among services: letters, digits, `-` and `_`.
    pub name: &'static str,
    /// Its version, as semantic versioning has it.
    pub version: &'static str,
    /// One sentence about it.
    pub description: &'static str,
    /// What is published about this instance.
    pub metadata: BTreeMap<String, String>,
    /// The first words of its subjects: `<prefix>.<endpoint>` reaches every instance.
    pub prefix: String,
    /// The last words of the subjects that reach this instance alone: `<prefix>.<endpoint>.<instance>`.
    pub instance: String,
    /// When this instance started, RFC 3339 in UTC.
    pub started: String,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Answers the requests.
    pub handler: RequestHandler,
    /// What is answered when too many requests are under way.
    pub busy: Reply,
    /// The connection.
    pub link: LinkHandle,
}

impl fmt::Debug for ServiceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceSettings")
            .field("name", &self.name)
            .field("prefix", &self.prefix)
            .field("instance", &self.instance)
            .finish_non_exhaustive()
    }
}

/// Where the service stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceSnapshot {
    /// True while it listens.
    pub listening: bool,
    /// Requests being answered.
    pub under_way: usize,
}
