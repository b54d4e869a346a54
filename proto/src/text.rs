//! Text that came from strangers, made safe for a log line, an error or a terminal.

/// The longest error text this package produces from foreign input, in characters.
pub const MAX_ERROR_TEXT: usize = 300;

/// `text` with every character that could move a cursor, break a line or reorder text replaced by its escape, cut to at
/// most `max` characters (a cut shows as a final `…`).
///
/// ```
/// use quartermaster_proto::text::escape_bounded;
/// assert_eq!(escape_bounded("web1\n\u{1b}[31m", 40), "web1\\n\\u{1b}[31m");
/// assert_eq!(escape_bounded("abcdef", 4), "abc…");
/// ```
#[must_use]
pub fn escape_bounded(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max.saturating_mul(4)));
    // One character is held back for the mark of a cut, so that the bound holds whatever follows.
    let room = max.saturating_sub(1);
    let mut used = 0;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let width = if is_unsafe(character) { character.escape_default().count() } else { 1 };
        let last = characters.as_str().is_empty();
        if used + width > room && !(last && used + width <= max) {
            if max > 0 {
                out.push('…');
            }
            return out;
        }
        if is_unsafe(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
        used += width;
    }
    out
}

/// Control characters of both sets, line and paragraph separators, marks that reorder or hide text.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, max: usize, expected: &str) {
        assert_eq!(escape_bounded(input, max), expected);
    }

    #[test]
    fn plain_text_passes() {
        check("web1.example.net", 80, "web1.example.net");
        check("größe €", 80, "größe €");
    }

    #[test]
    fn line_breaks_and_terminal_sequences_are_escaped() {
        check("a\r\nb\tc", 80, "a\\r\\nb\\tc");
        check("\u{1b}[2J\u{7f}\u{9b}", 80, "\\u{1b}[2J\\u{7f}\\u{9b}");
        check("a\u{2028}b\u{202e}c\u{feff}", 80, "a\\u{2028}b\\u{202e}c\\u{feff}");
        check("\0", 80, "\\u{0}");
    }

    #[test]
    fn a_text_of_exactly_the_bound_is_not_cut() {
        check("abcd", 4, "abcd");
        check("abcde", 4, "abc…");
        check("abc\n", 5, "abc\\n");
        check("abc\n", 4, "abc…");
        check("abc", 0, "");
        check("abc", 1, "…");
        check("", 0, "");
    }

    #[test]
    fn the_bound_holds_for_escapes() {
        for max in 0..40 {
            assert!(escape_bounded(&"\u{1b}x€".repeat(50), max).chars().count() <= max, "{max}");
        }
    }
}
