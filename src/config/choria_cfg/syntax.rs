//! Lines of a choria.cfg (choria.md 11.1).

use super::super::fault::Place;

/// One line that says something, or tries to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line<'t> {
    /// `key = value`.
    Item {
        /// The key, without surrounding white space.
        key: &'t str,
        /// The rest of the line, verbatim.
        value: &'t str,
        /// Where the key stands.
        place: Place,
        /// Where the value stands.
        value_place: Place,
    },
    /// Neither blank nor a comment nor an item: ignored.
    Junk {
        /// The line, trimmed.
        text: &'t str,
        /// Where it stands.
        place: Place,
    },
}

/// White space around the `=`, as the peer's pattern has it.
const BLANKS: [char; 5] = [' ', '\t', '\n', '\u{c}', '\r'];

/// The lines of `text` that are neither blank nor comments.
pub fn parse_lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut offset = 0_usize;
    text.split('\n').enumerate().filter_map(move |(number, raw)| {
        let start = offset;
        offset = offset.saturating_add(raw.len()).saturating_add(1);
        let line = raw.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let at = |part: &str| {
            // `part` is a slice of `raw`: its place follows from the lengths before it.
            let before = (part.as_ptr() as usize).saturating_sub(raw.as_ptr() as usize);
            let column = raw.get(..before).map_or(1, |text| text.chars().count().saturating_add(1));
            Place {
                line: number.saturating_add(1),
                column,
                offset: start.saturating_add(before),
                length: part.len(),
            }
        };
        Some(match split_item(line) {
            Some((key, value)) => Line::Item { key, value, place: at(key), value_place: at(value) },
            None => Line::Junk { text: line, place: at(line) },
        })
    })
}

/// The first `=` after at least one character separates; the value may not be empty.
fn split_item(line: &str) -> Option<(&str, &str)> {
    let first = line.chars().next()?.len_utf8();
    let equals = line.get(first..)?.find('=')?.saturating_add(first);
    let key = line.get(..equals)?.trim_end_matches(BLANKS);
    let value = line.get(equals.saturating_add(1)..)?.trim_start_matches(BLANKS);
    (!value.is_empty()).then_some((key, value))
}

/// `1 yes true y t` are true, `0 no false n f` are false, in any case; anything else is not a boolean.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "y" | "t" => Some(true),
        "0" | "no" | "false" | "n" | "f" => Some(false),
        _ => None,
    }
}

/// As [`parse_bool`], anything else being false as in the peer.
pub fn is_yes(text: &str) -> bool {
    parse_bool(text).unwrap_or(false)
}

/// Splits at commas and trims.
pub fn split_list(text: &str) -> Vec<String> {
    text.split(',').map(|part| part.trim().to_owned()).collect()
}
