//! Values made safe for a line: whatever a host, a helper or a broker says stays inside its quotes.

use std::fmt::Write as _;

/// Longest value in a line, in bytes; the rest is counted, not shown.
const MAX_VALUE: usize = 8 * 1024;

/// True for characters that could end a line, move a cursor or reorder what is read: controls, line separators, bidirectional marks.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The part of `text` that is shown, and how many bytes are not.
fn bounded(text: &str) -> (&str, usize) {
    if text.len() <= MAX_VALUE {
        return (text, 0);
    }
    let end = (0..=MAX_VALUE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    (text.get(..end).unwrap_or_default(), text.len().saturating_sub(end))
}

/// `text` for a person's line. With `quote`, quotes are put around it when it holds white space, quotes, `=` or nothing at all.
pub fn plain_text(text: &str, quote: bool) -> String {
    let (shown, hidden) = bounded(text);
    let quote =
        quote && (shown.is_empty() || shown.contains([' ', '"', '=', '\\']) || shown.contains(is_harmful));
    let mut out = String::with_capacity(shown.len().saturating_add(2));
    if quote {
        out.push('"');
    }
    for c in shown.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' | '\\' if quote => out.extend(['\\', c]),
            c if is_harmful(c) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    if hidden > 0 {
        let _ = write!(out, "… ({hidden} bytes more)");
    }
    if quote {
        out.push('"');
    }
    out
}

/// `text` as a JSON string, quotes included.
pub fn json_text(text: &str) -> String {
    let (shown, hidden) = bounded(text);
    let mut out = String::with_capacity(shown.len().saturating_add(2));
    out.push('"');
    for c in shown.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // All of them lie below U+FFFF, so four digits are enough.
            c if is_harmful(c) => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    if hidden > 0 {
        let _ = write!(out, "… ({hidden} bytes more)");
    }
    out.push('"');
    out
}
