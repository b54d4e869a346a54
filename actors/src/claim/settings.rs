//! What an instance needs for its claims.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::control::RunStateReceiver;
use crate::discovery::SeenSink;
use crate::link::{BucketSpec, LinkHandle};
use crate::metrics::Recorder;

/// What an instance needs for its claims.
#[derive(Clone)]
pub struct ClaimSettings {
    /// This instance.
    pub identity: String,
    /// The bucket.
    pub bucket: BucketSpec,
    /// The connection to whoever keeps the bucket.
    pub link: LinkHandle,
    /// Whether the instance may work.
    pub run_state: RunStateReceiver,
    /// Where hosts go whose turn it is.
    pub fleet: SeenSink,
    /// How many hosts the fleet could take on right now beside those it has.
    pub room: Arc<dyn Fn() -> usize + Send + Sync>,
    /// How many hosts a second that another instance should have begun with, and has not, are taken.
    pub help: usize,
    /// Hosts of other instances kept in mind at most.
    pub most: usize,
    /// The time between two looks for hosts.
    pub interval: Duration,
    /// How long the broker may take over one answer.
    pub limit: Duration,
    /// Where facts go.
    pub recorder: Recorder,
}

impl fmt::Debug for ClaimSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimSettings")
            .field("identity", &self.identity)
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}
