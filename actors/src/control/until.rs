//! A deadline that is renewed without waking anybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Until when something holds that its owner keeps renewing. Clones are one deadline. It is read against the monotonic
/// clock, which goes on while the process is stopped.
#[derive(Debug, Clone)]
pub struct LeadingUntil {
    base: Instant,
    /// Milliseconds after `base`; 0 = never renewed.
    millis: Arc<AtomicU64>,
}

impl LeadingUntil {
    /// A deadline that has passed already.
    pub fn new() -> Self {
        Self { base: Instant::now(), millis: Arc::new(AtomicU64::new(0)) }
    }

    /// It holds until then.
    pub fn extend(&self, until: Instant) {
        let after = until.saturating_duration_since(self.base);
        self.millis.store(u64::try_from(after.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// True when it holds no more.
    pub fn has_passed(&self) -> bool {
        self.left().is_zero()
    }

    /// How long it still holds.
    pub fn left(&self) -> Duration {
        let until = self.base + Duration::from_millis(self.millis.load(Ordering::SeqCst));
        until.saturating_duration_since(Instant::now())
    }
}

impl Default for LeadingUntil {
    fn default() -> Self {
        Self::new()
    }
}

/// The same deadline, not the same time.
impl PartialEq for LeadingUntil {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.millis, &other.millis)
    }
}

impl Eq for LeadingUntil {}
