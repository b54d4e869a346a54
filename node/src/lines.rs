//! Lines that may hold secrets, read under a bound.

use tokio::io::{AsyncRead, AsyncReadExt as _};
use zeroize::Zeroizing;

/// How much is read at once, and the room for the first part of a line.
const CHUNK_BYTES: usize = 64 * 1024;

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// It is longer than allowed; nothing after it can be understood.
    #[error("the line is longer than {limit} bytes")]
    TooLong {
        /// What is allowed.
        limit: usize,
    },
    /// The connection broke.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Reads lines. What was read is wiped when dropped, and so is every buffer that a line outgrew.
pub(crate) struct Lines<R> {
    from: R,
    limit: usize,
    chunk: Zeroizing<Vec<u8>>,
    /// What of the chunk has not been taken yet.
    left: std::ops::Range<usize>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(from: R, limit: usize) -> Self {
        Self::with_chunks(from, limit, CHUNK_BYTES)
    }

    fn with_chunks(from: R, limit: usize, chunk: usize) -> Self {
        Self { from, limit, chunk: Zeroizing::new(vec![0; chunk]), left: 0..0 }
    }

    /// The next line without its line feed; none at the end, where half a line is none either.
    pub(crate) async fn next(&mut self) -> Result<Option<Zeroizing<Vec<u8>>>, LineError> {
        let mut line = Zeroizing::new(Vec::with_capacity(self.chunk.len()));
        loop {
            if self.left.is_empty() {
                let read = self.from.read(&mut self.chunk).await?;
                if read == 0 {
                    return Ok(None);
                }
                self.left = 0..read;
            }
            let part = self.chunk.get(self.left.clone()).unwrap_or_default();
            let end = part.iter().position(|byte| *byte == b'\n');
            let taken = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
            if line.len() + taken.len() > self.limit {
                return Err(LineError::TooLong { limit: self.limit });
            }
            if line.len() + taken.len() > line.capacity() {
                let mut larger = Zeroizing::new(Vec::with_capacity((line.len() + taken.len()) * 2));
                larger.extend_from_slice(&line);
                line = larger;
            }
            line.extend_from_slice(taken);
            self.left.start += taken.len() + usize::from(end.is_some());
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &str, limit: usize) -> (Vec<String>, bool) {
        // Small chunks, so that lines come in parts.
        let mut lines = Lines::with_chunks(text.as_bytes(), limit, 3);
        let mut found = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => found.push(String::from_utf8(line.to_vec()).unwrap()),
                Ok(None) => return (found, true),
                Err(_) => return (found, false),
            }
        }
    }

    #[tokio::test]
    async fn lines_come_whole_and_half_a_line_is_none() {
        let all = |lines: &[&str]| (lines.iter().map(|line| (*line).to_owned()).collect(), true);
        assert_eq!(lines("one\n\ntwo-is-longer\nhalf", 100).await, all(&["one", "", "two-is-longer"]));
        let long = "x".repeat(100_000);
        assert_eq!(lines(&format!("{long}\n"), 100_000).await, all(&[&long]));
    }

    #[tokio::test]
    async fn a_line_over_the_limit_ends_it() {
        assert_eq!(lines("12345\n123456\n1\n", 5).await, (vec!["12345".to_owned()], false));
        assert_eq!(lines(&"1".repeat(50), 5).await, (Vec::new(), false));
    }
}
