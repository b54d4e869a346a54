//! The one place where the emulator reads the wall clock.

use quartermaster_proto::time::WallClock;

/// The time now.
pub(super) fn now() -> WallClock {
    let nanos = time::OffsetDateTime::now_utc().unix_timestamp_nanos();
    WallClock::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}
