//! Numbers and times as people read them.

use std::fmt::Write as _;

use quartermaster_proto::time::WallClock;

/// `12 s`, `4 min`, `2 h 5 min`, `3 d 4 h`: coarse on purpose, so that a page is not restless.
pub(super) fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |big: u64, big_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{big} {big_unit}"),
        small => format!("{big} {big_unit} {small} {small_unit}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min"),
        3600..86_400 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

/// A short time: `340 ms`, `2.4 s`, then as [`span`].
pub(super) fn short_span(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
        _ => span(milliseconds / 1000),
    }
}

/// `12,345`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// As [`grouped`].
pub(super) fn count(number: usize) -> String {
    grouped(u64::try_from(number).unwrap_or(u64::MAX))
}

/// `2026-03-01 23:59:05 UTC`, for Unix seconds.
pub(super) fn clock(unix: i64) -> String {
    let format = time::macros::format_description!("[year]-[month]-[day] [hour]:[minute]:[second] UTC");
    time::OffsetDateTime::from_unix_timestamp(unix)
        .ok()
        .and_then(|time| time.format(format).ok())
        .unwrap_or_else(|| unix.to_string())
}

/// Seconds from `unix` until `now`, none of them when it lies ahead.
pub(super) fn seconds_since(unix: i64, now: WallClock) -> u64 {
    u64::try_from(now.seconds().saturating_sub(unix)).unwrap_or(0)
}

/// `text` as one part of a path or as a value of a query.
pub(super) fn in_url(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_coarse() {
        let shown = [0, 59, 60, 119, 3599, 3600, 7500, 86_399, 86_400, 273_600].map(span);
        let expected =
            ["0 s", "59 s", "1 min", "1 min", "59 min", "1 h", "2 h 5 min", "23 h 59 min", "1 d", "3 d 4 h"];
        assert_eq!(shown, expected);
        assert_eq!(
            [0, 999, 1000, 2450, 59_999, 61_000].map(short_span),
            ["0 ms", "999 ms", "1.0 s", "2.4 s", "59.9 s", "1 min"]
        );
    }

    #[test]
    fn large_numbers_are_grouped() {
        let shown = [0, 999, 1000, 12_345, 1_000_000].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,000,000"]);
    }

    #[test]
    fn times_are_told_in_utc() {
        assert_eq!(clock(1_700_000_000), "2023-11-14 22:13:20 UTC");
        assert_eq!(clock(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn a_name_cannot_leave_its_place_in_a_url() {
        assert_eq!(in_url("web1.example.net"), "web1.example.net");
        assert_eq!(in_url("a/b?c#d&e%f\"g<h"), "a%2Fb%3Fc%23d%26e%25f%22g%3Ch");
    }
}
