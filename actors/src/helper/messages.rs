//! What the runner is asked, and what it answers.

use std::fmt;
use std::time::Duration;

use actix::Message;
use quartermaster_proto::choria::Identity;
use quartermaster_proto::helper::HelperReply;
use tokio::sync::oneshot;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::error::HelperError;

/// Run the site's helper once for a host.
pub struct RunHelper {
    /// The host it is for.
    pub identity: Identity,
    /// What the helper reads on standard input: JSON text. Holds secrets of the host.
    pub input: Vec<u8>,
}

impl fmt::Debug for RunHelper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHelper")
            .field("identity", &self.identity)
            .field("input", &format_args!("{} bytes", self.input.len()))
            .finish()
    }
}

/// A good run.
#[derive(Debug)]
pub struct HelperRun {
    /// What the helper answered.
    pub reply: HelperReply,
    /// A process of its own was started for it, and ended.
    pub exited: bool,
    /// From the moment its slot was taken to the moment it was reaped.
    pub took: Duration,
    /// How long it waited for a slot before that.
    pub waited: Duration,
    /// Its last lines on standard error, oldest first; escaped and bounded.
    pub stderr_tail: Vec<String>,
}

/// What the handle sends: a run and where its answer goes. When the asker has gone, the run is skipped, or stopped.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct QueueRun {
    pub identity: Identity,
    pub input: Zeroizing<Vec<u8>>,
    pub since: Instant,
    /// The span of the cycle it is for.
    pub cycle: tracing::Span,
    pub answer: oneshot::Sender<Result<HelperRun, HelperError>>,
}

/// A note to the runner: a slot is free again.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct SlotFreed;

/// A fail point: the run for this host panics when its helper writes its first line to standard error, so its process is alive.
#[cfg(feature = "testing")]
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct PanicInRun(pub Identity);
