//! The one place outside of the vault that reads the wall clock; the vault dates tokens by a clock of its own that tests replace.

use quartermaster_proto::time::WallClock;

/// Now.
#[expect(clippy::disallowed_types, reason = "the one place outside of the vault that reads the wall clock")]
pub fn now() -> WallClock {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
    WallClock::from_nanos(nanos)
}
