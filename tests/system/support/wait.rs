//! Waiting for something that has no event of its own.

use std::time::{Duration, Instant};

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How long one condition may take; far longer than any of them does on an idle machine.
const LIMIT: Duration = Duration::from_mins(1);

/// Looks until `condition` holds; panics with `what` when that takes too long.
pub async fn eventually(what: &str, condition: impl FnMut() -> bool) {
    eventually_within(LIMIT, what, condition).await;
}

/// The same with another limit.
pub async fn eventually_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        tokio::time::sleep(LOOK).await;
    }
}
