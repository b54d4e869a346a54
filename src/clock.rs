//! The one place that reads the wall clock.

use quartermaster_proto::time::WallClock;

/// Now.
#[expect(clippy::disallowed_types, reason = "the one place that reads the wall clock")]
pub fn now() -> WallClock {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
    WallClock::from_nanos(nanos)
}
