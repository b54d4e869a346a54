//! Text from strangers, made fit for a log line.

/// At most this many characters of a stranger's text are shown.
const MAX_SHOWN: usize = 200;

/// `text` with everything unprintable escaped and cut to a bounded length.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::new();
    let mut characters = text.chars();
    for character in characters.by_ref().take(MAX_SHOWN) {
        if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}') {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_escapes_cannot_reach_a_log() {
        assert_eq!(printable("a\nb\u{1b}[2J"), "a\\nb\\u{1b}[2J");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(printable(&"x".repeat(10_000)).chars().count(), 201);
    }
}
