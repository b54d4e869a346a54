//! The order of versions by the rules of RPM, as far as the peer follows them (choria.md 10).

use std::cmp::Ordering;

/// Compares two versions `[epoch:]version[-release]`. Separators other than `-`, `:` and `~` do not matter, so `1.0` equals
/// `1_0`; a release on one side only makes that side newer.
pub fn compare(left: &str, right: &str) -> Ordering {
    let (left_epoch, left_version, left_release) = split(left);
    let (right_epoch, right_version, right_release) = split(right);
    left_epoch
        .cmp(&right_epoch)
        .then_with(|| compare_part(left_version, right_version))
        .then_with(|| compare_part(left_release, right_release))
}

/// Epoch (0 when absent or not a number), version, release (empty when absent).
fn split(text: &str) -> (u64, &str, &str) {
    let (epoch, rest) = text.split_once(':').unwrap_or(("", text));
    let (version, release) = rest.split_once('-').unwrap_or((rest, ""));
    (epoch.trim().parse().unwrap_or(0), version, release)
}

fn compare_part(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (segments(left), segments(right));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (Some("~"), Some("~")) => Ordering::Equal,
            (Some("~"), _) => Ordering::Less,
            (_, Some("~")) | (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(left), Some(right)) => compare_segment(left, right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_segment(left: &str, right: &str) -> Ordering {
    match (is_number(left), is_number(right)) {
        (true, true) => {
            let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
            left.len().cmp(&right.len()).then_with(|| left.cmp(right))
        }
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => left.cmp(right),
    }
}

fn is_number(segment: &str) -> bool {
    segment.starts_with(|first: char| first.is_ascii_digit())
}

/// Runs of letters, runs of digits, single tildes.
fn segments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|next: char| next != '~' && !next.is_ascii_alphanumeric());
        let first = rest.chars().next()?;
        let end = match first {
            '~' => 1,
            _ => rest
                .find(|next: char| {
                    !next.is_ascii_alphanumeric() || next.is_ascii_digit() != first.is_ascii_digit()
                })
                .unwrap_or(rest.len()),
        };
        let (segment, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(segment)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(left: &str, expected: Ordering, right: &str) {
        assert_eq!(compare(left, right), expected, "{left} {right}");
        assert_eq!(compare(right, left), expected.reverse(), "{right} {left}");
    }

    fn equal(left: &str, right: &str) {
        check(left, Ordering::Equal, right);
    }

    fn older(left: &str, right: &str) {
        check(left, Ordering::Less, right);
    }

    #[test]
    fn equal_texts_are_equal() {
        equal("0.29.4", "0.29.4");
        equal("", "");
    }

    #[test]
    fn numbers_compare_as_numbers_without_leading_zeros() {
        older("0.9.0", "0.10.0");
        equal("1.01", "1.1");
        equal("1.0", "1.000");
        older("1.99999999999999999999999998", "1.99999999999999999999999999");
    }

    #[test]
    fn an_epoch_outweighs_everything_and_counts_as_0_unless_a_number() {
        older("2.0", "1:1.0");
        equal("0:1.0", "1.0");
        equal("x:1.0", "1.0");
        older("1:1.0", "2:0.1");
    }

    #[test]
    fn a_release_on_one_side_only_makes_a_difference() {
        older("0.30.2", "0.30.2-1");
        older("0.30.2-1", "0.30.2-2");
        equal("0.30.2-1", "0.30.2-01");
        older("1.0-9", "1.1-1");
    }

    #[test]
    fn the_first_dash_splits_version_and_release() {
        equal("1-2-3", "1-2.3");
        older("1-2-3", "1-2-4");
    }

    #[test]
    fn numbers_are_newer_than_letters() {
        older("1.a", "1.1");
        older("1.0a", "1.0.1");
        older("1.a", "1.b");
        older("1.B", "1.a");
    }

    #[test]
    fn letters_and_digits_are_segments_of_their_own() {
        equal("1a2", "1.a.2");
        older("1a2", "1a10");
        older("1.0rc1", "1.0rc2");
    }

    #[test]
    fn a_tilde_sorts_lowest_of_all() {
        older("1.0~rc1", "1.0");
        older("1.0~rc1", "1.0~rc2");
        older("1.0~", "1.0");
        older("1.0~~", "1.0~");
        equal("1.0~rc1", "1.0~rc1");
        older("1.0~rc1", "1.0a");
    }

    #[test]
    fn more_segments_are_newer() {
        older("1.0", "1.0.0");
        older("1", "1.0");
        older("1.0", "1.0a");
    }

    #[test]
    fn other_separators_do_not_matter() {
        equal("1.0", "1_0");
        equal("1..0", "1.0");
        equal("1.0+", "1.0");
        equal("1.é0", "1.0");
    }
}
