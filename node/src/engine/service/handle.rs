//! What a connection holds of the keeper.

use std::time::Duration;

use quartermaster_actors::supervise::Slot;
use quartermaster_proto::mesh::fill::{Body, RequestCode, Write};

use super::actor::EngineKeeper;
use super::messages::WriteFiles;
use crate::engine::wire;

/// How long one request may take: several units, each with its own limit, may have to be told.
const WRITE_DEADLINE: Duration = Duration::from_mins(10);
/// Requests that are under way at once.
pub(super) const MAX_WRITES: usize = 128;

/// A handle to the keeper; clones are equal.
#[derive(Debug, Clone)]
pub(super) struct EngineHandle(pub(super) Slot<EngineKeeper>);

impl EngineHandle {
    /// Has files written. A keeper that is away or busy answers as one that is not there yet: the client tries again.
    pub(super) async fn write(&self, write: Write) -> Body {
        match self.0.ask(WriteFiles(write), WRITE_DEADLINE).await {
            Ok(body) => body,
            Err(error) => wire::failed(RequestCode::Behind, error.to_string()),
        }
    }
}
