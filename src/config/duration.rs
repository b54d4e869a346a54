//! The two duration syntaxes of the peer's files.
//!
//! The YAML file writes `90s`, `1h30m`, `1d`, `2w`, `1M`, `1y` (choria.md 12.2); choria.cfg also takes a bare number of
//! seconds (choria.md 11.1). A month has 30 days and a year 365; weeks, days, months and years are cut to whole hours.

use std::fmt::Write as _;
use std::time::Duration;

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing was written.
    #[error("it is empty")]
    Empty,
    /// A number stands without a unit.
    #[error("`{0}` has no unit (write for example `{0}s` or `{0}m`)")]
    NoUnit(String),
    /// A unit nobody knows.
    #[error("`{0}` is no unit of time (known: ns us ms s m h d w M y)")]
    UnknownUnit(String),
    /// No number where one must be.
    #[error("`{0}` is no number")]
    NotANumber(String),
    /// Below zero.
    #[error("it is negative")]
    Negative,
    /// More than can be counted, some 290 years.
    #[error("it is too long")]
    TooLong,
}

const HOUR: f64 = 3600.0;
/// The peer counts in signed 64-bit nanoseconds.
const MAX_SECONDS: f64 = 9_223_372_036.0;

/// Reads a duration of the YAML file: one or more numbers, each with a unit, such as `1y`, `1h30m` or `1.5d`; a lone `0` is zero.
///
/// # Errors
/// Says which part is wrong.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(DurationError::Empty);
    }
    if rest.starts_with('-') {
        return Err(DurationError::Negative);
    }
    if rest.strip_prefix('+').unwrap_or(rest) == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        // The peer lets every part have a sign of its own.
        rest = rest.strip_prefix('+').unwrap_or(rest);
        let (number, after) = split_while(rest, |c| c.is_ascii_digit() || c == '.');
        if number.is_empty() {
            return Err(DurationError::NotANumber(first_word(rest)));
        }
        let (unit, after) = split_while(after, char::is_alphabetic);
        if unit.is_empty() {
            return Err(DurationError::NoUnit(number.to_owned()));
        }
        total = total.checked_add(one(number, unit)?).ok_or(DurationError::TooLong)?;
        rest = after.trim_start();
    }
    if total.as_secs_f64() > MAX_SECONDS {
        return Err(DurationError::TooLong);
    }
    Ok(total)
}

/// Reads a duration of choria.cfg: digits alone are seconds, otherwise as [`parse_duration`].
///
/// # Errors
/// As [`parse_duration`].
pub fn parse_cfg_duration(text: &str) -> Result<Duration, DurationError> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let seconds: u64 = text.parse().map_err(|_| DurationError::TooLong)?;
        let whole = Duration::from_secs(seconds);
        return if whole.as_secs_f64() > MAX_SECONDS { Err(DurationError::TooLong) } else { Ok(whole) };
    }
    parse_duration(text)
}

/// A duration as people write it: whole units, largest first, such as `1h30m` or `250ms`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let millis = duration.subsec_millis();
    if seconds == 0 {
        return format!("{millis}ms");
    }
    let parts =
        [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let mut text = String::new();
    for (count, unit) in parts.iter().filter(|(count, _)| *count > 0) {
        let _ = write!(text, "{count}{unit}");
    }
    if millis > 0 {
        let _ = write!(text, "{millis}ms");
    }
    text
}

fn one(number: &str, unit: &str) -> Result<Duration, DurationError> {
    let hours = match unit {
        "w" | "W" => Some(7.0 * 24.0),
        "d" | "D" => Some(24.0),
        "M" => Some(30.0 * 24.0),
        "y" | "Y" => Some(365.0 * 24.0),
        _ => None,
    };
    let seconds = if let Some(hours) = hours {
        // The peer reads these numbers with single precision and cuts to whole hours; so the same text means the same here.
        let count: f32 = number.parse().map_err(|_| DurationError::NotANumber(number.to_owned()))?;
        (f64::from(count) * hours).trunc() * HOUR
    } else {
        let count: f64 = number.parse().map_err(|_| DurationError::NotANumber(number.to_owned()))?;
        count
            * match unit {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => HOUR,
                other => return Err(DurationError::UnknownUnit(other.to_owned())),
            }
    };
    if seconds > MAX_SECONDS {
        return Err(DurationError::TooLong);
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| DurationError::TooLong)
}

fn split_while(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !wanted(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().chars().take(20).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: u64 = 86_400;

    fn check(text: &str, seconds: u64) {
        assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
    }

    fn refused(text: &str, why: &str) {
        match parse_duration(text) {
            Ok(found) => panic!("{text} was read as {found:?}"),
            Err(error) => assert!(error.to_string().contains(why), "{text}: {error}"),
        }
    }

    #[rustfmt::skip]
    mod units {
        use super::*;
        #[test] fn seconds() { check("90s", 90) }
        #[test] fn minutes() { check("1m", 60) }
        #[test] fn months_are_capital() { check("1M", 30 * DAY) }
        #[test] fn hours() { check("10h", 36_000) }
        #[test] fn days() { check("3d", 3 * DAY); check("3D", 3 * DAY) }
        #[test] fn weeks() { check("2w", 14 * DAY); check("2W", 14 * DAY) }
        #[test] fn years() { check("1y", 365 * DAY); check("1Y", 365 * DAY) }
        #[test] fn several() { check("1y1d1h", 366 * DAY + 3600); check("1h30m", 5400); check("1d 12h", 36 * 3600); check("1d+12h", 36 * 3600) }
        #[test] fn fractions() { check("1.5h", 5400); check("1.5d", 36 * 3600); check(".5m", 30) }
        #[test] fn large_units_are_cut_to_whole_hours() { check("1.3d", 31 * 3600) }
        #[test] fn zero_needs_no_unit() { check("0", 0) }
        #[test] fn signs_and_spaces() { check(" +2m ", 120) }
        #[test] fn below_a_second() { assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250))) }
        #[test] fn a_bare_number_has_no_unit() { refused("60", "no unit") }
        #[test] fn capital_hours_and_seconds_are_not_known() { refused("5H", "`H`"); refused("5S", "`S`") }
        #[test] fn words() { refused("soon", "`soon`"); refused("5 parsecs", "no unit"); refused("5parsecs", "`parsecs`") }
        #[test] fn two_dots() { refused("1.2.3s", "no number") }
        #[test] fn negative() { refused("-1m", "negative") }
        #[test] fn nothing() { refused("  ", "empty") }
        #[test] fn more_than_can_be_counted() { refused("300y", "too long"); refused("99999999999999999999h", "too long") }
    }

    #[test]
    fn choria_cfg_takes_bare_seconds_too() {
        assert_eq!(parse_cfg_duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_cfg_duration("2w"), Ok(Duration::from_hours(14 * 24)));
        assert_eq!(parse_cfg_duration("99999999999999999999"), Err(DurationError::TooLong));
        assert!(parse_cfg_duration("").is_err());
    }

    #[test]
    fn durations_are_shown_as_people_write_them() {
        assert_eq!(show_duration(Duration::from_mins(90)), "1h30m");
        assert_eq!(show_duration(Duration::from_millis(1500)), "1s500ms");
        assert_eq!(show_duration(Duration::from_millis(20)), "20ms");
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(millis in 1_u64..4_000_000_000_000) {
            let duration = Duration::from_millis(millis);
            let back = parse_duration(&show_duration(duration)).unwrap();
            // Fractions pass through a float; a microsecond either way is none of anybody's business.
            prop_assert!(back.abs_diff(duration) < Duration::from_micros(1));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = parse_duration(&text);
            let _ = parse_cfg_duration(&text);
        }

        #[test]
        fn number_soup_never_panics(text in "[-+0-9.eE nusmhdwMyµ]{0,30}") {
            let _ = parse_duration(&text);
            let _ = parse_cfg_duration(&text);
        }
    }
}
