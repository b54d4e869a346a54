//! Bytes to lines under a limit. Only a line feed ends a line.

use bytes::{Bytes, BytesMut};

use super::decode::FrameError;

/// What happens to a line that is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlong {
    /// It is the end: nothing after it can be understood.
    Refuse,
    /// It is cut into pieces of the limit's length.
    Split,
}

/// Cuts what arrives in pieces into lines. It holds at most the limit and one piece.
///
/// ```
/// use quartermaster_proto::provider::{Lines, Overlong};
/// let mut lines = Lines::new(16, Overlong::Refuse);
/// lines.push(b"one\r\ntw");
/// assert_eq!(lines.next_line().unwrap().unwrap(), "one");
/// assert!(lines.next_line().is_none());
/// lines.push(b"o\n");
/// assert_eq!(lines.next_line().unwrap().unwrap(), "two");
/// lines.push(b"a line of seventeen");
/// assert!(lines.next_line().unwrap().is_err());
/// ```
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// So many bytes of the buffer hold no line feed.
    scanned: usize,
    limit: usize,
    overlong: Overlong,
    refused: bool,
}

impl Lines {
    /// A line's bytes without its end (line feed and one carriage return before it) are at most `limit`.
    pub fn new(limit: usize, overlong: Overlong) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit: limit.max(1), overlong, refused: false }
    }

    /// Takes what arrived. After a refusal it is thrown away.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.refused {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The next whole line without its end; `None` when more is needed.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`], once, as soon as the limit is passed.
    pub fn next_line(&mut self) -> Option<Result<Bytes, FrameError>> {
        // Past the limit and a carriage return no line feed matters, so a long line is not searched again and again.
        let seen = self.buffer.len().min(self.limit + 2);
        let fresh = self.buffer.get(self.scanned..seen).unwrap_or_default();
        let end = fresh.iter().position(|byte| *byte == b'\n').map(|at| self.scanned + at);
        // A carriage return belongs to the line's end, so it may stand one byte past the limit.
        let ends_in_time = |end: usize| {
            end <= self.limit || (end == self.limit + 1 && self.buffer.get(self.limit) == Some(&b'\r'))
        };
        match end {
            Some(end) if ends_in_time(end) => Some(Ok(self.take(end, 1))),
            None if self.buffer.is_empty() || ends_in_time(self.buffer.len()) => {
                self.scanned = self.buffer.len();
                None
            }
            _ if self.overlong == Overlong::Split => Some(Ok(self.take(self.cut(), 0))),
            _ => Some(self.refuse()),
        }
    }

    /// What came after the last line feed, at the end of input; `None` when nothing did.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`].
    pub fn finish(&mut self) -> Option<Result<Bytes, FrameError>> {
        if let Some(line) = self.next_line() {
            return Some(line);
        }
        (!self.buffer.is_empty()).then(|| Ok(self.take(self.buffer.len(), 0)))
    }

    /// Bytes held.
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    fn take(&mut self, end: usize, ending: usize) -> Bytes {
        let mut line = self.buffer.split_to((end + ending).min(self.buffer.len()));
        line.truncate(end);
        if line.last() == Some(&b'\r') && (ending > 0 || self.buffer.is_empty()) {
            line.truncate(end.saturating_sub(1));
        }
        self.scanned = 0;
        line.freeze()
    }

    /// Where to cut a line that is too long: at the limit, or up to three bytes before it, so that no character is cut.
    fn cut(&self) -> usize {
        let continues = |at: usize| self.buffer.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        let mut places = (self.limit.saturating_sub(3).max(1)..=self.limit).rev();
        places.find(|at| !continues(*at)).unwrap_or(self.limit)
    }

    fn refuse(&mut self) -> Result<Bytes, FrameError> {
        self.refused = true;
        self.buffer = BytesMut::new();
        self.scanned = 0;
        Err(FrameError::TooLarge { limit: self.limit })
    }
}
