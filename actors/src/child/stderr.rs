//! What becomes of a run's standard error: whole lines, bounded each and in number, harmless in a log. Pure.

use std::collections::VecDeque;

/// The most of one line that is kept, in bytes as the helper wrote them.
pub const MAX_LINE: usize = 2 * 1024;
/// The most lines of one run that go to the log.
pub const MAX_LINES: usize = 200;
/// The most bytes of one run that go to the log.
pub const MAX_BYTES: usize = 64 * 1024;
/// How many of the last lines are kept for errors and the status page.
pub const TAIL_LINES: usize = 10;
/// The most of one kept line, in bytes.
pub const TAIL_LINE: usize = 512;

/// Takes the bytes of one run's standard error and gives back lines.
#[derive(Debug, Default)]
pub struct StderrLines {
    line: Vec<u8>,
    /// Bytes of the current line beyond the kept ones.
    cut: usize,
    lines: usize,
    bytes: usize,
    unlogged_lines: usize,
    unlogged_bytes: usize,
    tail: VecDeque<String>,
}

impl StderrLines {
    /// Takes the next bytes; `log` is called with each line that is to be logged.
    pub fn push(&mut self, mut bytes: &[u8], log: &mut impl FnMut(String)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.keep(line);
            self.end_line(log);
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.keep(bytes);
    }

    /// The stream is over: the last line without a newline counts too, and what was not logged is summed up. Gives the last
    /// lines, oldest first.
    pub fn finish(mut self, log: &mut impl FnMut(String)) -> Vec<String> {
        if !self.line.is_empty() || self.cut > 0 {
            self.end_line(log);
        }
        if self.unlogged_lines > 0 {
            log(format!("… {} more lines ({} bytes) not logged", self.unlogged_lines, self.unlogged_bytes));
        }
        self.tail.into()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len());
        let (kept, cut) = bytes.split_at(room.min(bytes.len()));
        self.line.extend_from_slice(kept);
        self.cut += cut.len();
    }

    fn end_line(&mut self, log: &mut impl FnMut(String)) {
        let length = self.line.len() + self.cut;
        let mut text = printable(self.line.strip_suffix(b"\r").unwrap_or(&self.line));
        if self.cut > 0 {
            text = format!("{text}… ({} bytes more)", self.cut);
        }
        self.line.clear();
        self.cut = 0;
        if text.is_empty() {
            return;
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(shortened(&text));
        if self.lines < MAX_LINES && self.bytes + text.len() <= MAX_BYTES {
            self.lines += 1;
            self.bytes += text.len();
            log(text);
        } else {
            self.unlogged_lines += 1;
            self.unlogged_bytes += length;
        }
    }
}

/// `bytes` as text that cannot forge a log line or drive a terminal: invalid UTF-8 is replaced, control characters and the
/// characters that reorder or separate lines are written as escapes, except for the tab.
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        let harmful = (c.is_control() && c != '\t')
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if harmful {
            text.extend(c.escape_unicode());
        } else {
            text.push(c);
        }
    }
    text
}

fn shortened(text: &str) -> String {
    if text.len() <= TAIL_LINE {
        return text.to_owned();
    }
    let end = (0..=TAIL_LINE).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default();
    format!("{}…", text.get(..end).unwrap_or_default())
}
