//! Waiting for something that has no event of its own.

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long one condition may take; far longer than any of them does on an idle machine.
const LIMIT: Duration = Duration::from_secs(90);

/// Looks until `look` finds something; fails with `what` when that takes too long.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < end, "{caller}: not within {LIMIT:?}: {what}");
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Looks until `look` answers `wanted`; fails with what it answered last.
#[track_caller]
pub fn eventually_async<T, F>(wanted: T, mut look: impl FnMut() -> F) -> impl Future<Output = ()>
where
    T: PartialEq + Debug,
    F: Future<Output = T>,
{
    let caller = std::panic::Location::caller();
    async move {
        let end = Instant::now() + LIMIT;
        loop {
            let found = look().await;
            if found == wanted {
                return;
            }
            assert!(Instant::now() < end, "{caller}: not within {LIMIT:?}: {wanted:?}, but {found:?}");
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Fails when `happened` says so within this time; used where nothing may happen and therefore nothing can be awaited.
#[track_caller]
pub fn never(time: Duration, mut happened: impl FnMut() -> Option<String>) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if let Some(what) = happened() {
                panic!("{caller}: it happened: {what}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
