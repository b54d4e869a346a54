//! Moments in messages of the mesh: RFC 3339, UTC.

use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::time::WallClock;

/// Written to the millisecond; what no year of four digits holds is written as 1970.
pub fn text(moment: WallClock) -> String {
    let whole = i128::from(moment.nanos()).div_euclid(1_000_000) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(whole)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
        .format(&Rfc3339)
        .unwrap_or_else(|_| "1970-01-01T00:00:00Z".to_owned())
}

/// Any RFC 3339 time whose nanoseconds since 1970 fit 64 bits.
pub fn read(text: &str) -> Option<WallClock> {
    let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    i64::try_from(moment.unix_timestamp_nanos()).ok().map(WallClock::from_nanos)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde's `with` asks for")]
pub(super) fn serialize<S: Serializer>(moment: &WallClock, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&text(*moment))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<WallClock, D::Error> {
    let text = std::borrow::Cow::<'_, str>::deserialize(input)?;
    read(&text).ok_or_else(|| D::Error::custom("not a time of RFC 3339"))
}

/// The same where the moment may be missing.
pub(super) mod optional {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::time::WallClock;

    #[expect(clippy::ref_option, reason = "the form that serde's `with` asks for")]
    pub fn serialize<S: Serializer>(moment: &Option<WallClock>, out: S) -> Result<S::Ok, S::Error> {
        match moment {
            Some(moment) => super::serialize(moment, out),
            None => out.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<WallClock>, D::Error> {
        let text = Option::<std::borrow::Cow<'_, str>>::deserialize(input)?;
        text.map(|text| super::read(&text).ok_or_else(|| serde::de::Error::custom("not a time of RFC 3339")))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_to_the_millisecond_and_come_back() {
        let moment = WallClock::from_nanos(1_795_975_200_123_456_789);
        assert_eq!(text(moment), "2026-11-29T18:00:00.123Z");
        assert_eq!(read("2026-11-29T18:00:00.123Z"), Some(WallClock::from_nanos(1_795_975_200_123_000_000)));
        assert_eq!(text(WallClock::from_seconds(1_795_975_200)), "2026-11-29T18:00:00Z");
        assert_eq!(read("2026-11-29T19:00:00+01:00"), Some(WallClock::from_seconds(1_795_975_200)));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "now", "2026-11-29", "9999-12-31T00:00:00Z"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
