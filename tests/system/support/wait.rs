//! Waiting for something that has no event of its own.

use std::time::{Duration, Instant};

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Looks until `condition` holds; panics with `what` when it does not within 20 seconds.
pub async fn eventually(what: &str, condition: impl FnMut() -> bool) {
    eventually_within(Duration::from_secs(20), what, condition).await;
}

/// Looks until `condition` holds; panics with `what` when it does not within `limit`.
pub async fn eventually_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        tokio::time::sleep(LOOK).await;
    }
}
