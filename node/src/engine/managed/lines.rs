//! Text as lines that keep their endings.

/// The lines of `text`, each with its ending; the last may have none.
pub(super) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A line without its ending.
pub(super) fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The ending that this text uses, by its first line; LF where it has none.
pub(super) fn ending(text: &[u8]) -> &'static [u8] {
    match lines(text).first() {
        Some(line) if line.ends_with(b"\r\n") || line.ends_with(b"\r") => b"\r\n",
        _ => b"\n",
    }
}

/// Appends the lines of `text` to `out`, all with this ending; a last line without one gets it.
pub(super) fn push_lines(out: &mut Vec<u8>, text: &[u8], ending: &[u8]) {
    for line in lines(text) {
        out.extend_from_slice(bare(line));
        out.extend_from_slice(ending);
    }
}

/// Gives a last line without an ending one.
pub(super) fn close_last_line(out: &mut Vec<u8>, ending: &[u8]) {
    if !out.is_empty() && !out.ends_with(b"\n") {
        out.extend_from_slice(ending);
    }
}

/// True for a line of blanks alone.
pub(super) fn is_blank_line(line: &[u8]) -> bool {
    bare(line).iter().all(u8::is_ascii_whitespace)
}
