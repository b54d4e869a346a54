//! Text as lines that keep their endings, and a buffer for it that leaves no copies behind.

use zeroize::Zeroizing;

/// Bytes that are put together. What it outgrows is wiped, and so is what is in it when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Buffer(Zeroizing<Vec<u8>>);

impl Buffer {
    /// A buffer with room for this many bytes.
    pub(super) fn with_room(room: usize) -> Self {
        Self(Zeroizing::new(Vec::with_capacity(room)))
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let needed = self.0.len() + bytes.len();
        if needed > self.0.capacity() {
            let mut larger = Zeroizing::new(Vec::with_capacity(needed * 2));
            larger.extend_from_slice(&self.0);
            self.0 = larger;
        }
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn push_all<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]>) {
        parts.into_iter().for_each(|part| self.push(part));
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// What is in it; whoever gets it wipes it.
    pub(super) fn take(mut self) -> Vec<u8> {
        std::mem::take(&mut *self.0)
    }
}

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
pub(super) fn push_lines(out: &mut Buffer, text: &[u8], ending: &[u8]) {
    for line in lines(text) {
        out.push(bare(line));
        out.push(ending);
    }
}

/// Gives a last line without an ending one.
pub(super) fn close_last_line(out: &mut Buffer, ending: &[u8]) {
    if !out.as_slice().is_empty() && !out.as_slice().ends_with(b"\n") {
        out.push(ending);
    }
}

/// True for a line of blanks alone.
pub(super) fn is_blank_line(line: &[u8]) -> bool {
    bare(line).iter().all(u8::is_ascii_whitespace)
}
