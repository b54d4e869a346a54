//! Standard output that nobody may be reading any more.

use std::io::{self, Write};

use crate::telemetry::{fronted, leads_there};

/// Writes to standard output until its reader goes away; what is said after that is dropped, and the work and its exit code are as if
/// it had been read.
pub struct Out {
    inner: Box<dyn Write>,
    closed: bool,
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Out").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Out {
    /// Standard output.
    pub fn stdout() -> Self {
        Self::new(Box::new(io::stdout()))
    }

    /// Any writer.
    pub fn new(inner: Box<dyn Write>) -> Self {
        Self { inner, closed: false }
    }

    /// Writes `text` and flushes.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes `bytes` and flushes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if !self.closed && self.inner.write_all(bytes).and_then(|()| self.inner.flush()).is_err() {
            self.closed = true;
        }
    }

    /// True once the reader has gone: endless output may end.
    pub const fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Writes to standard error, which may be closed: that is no reason to end otherwise than said. In the journal of systemd an error is one.
pub fn say(text: &str) {
    let _ = if leads_there(io::stderr()) {
        io::stderr().write_all(fronted(text).as_bytes())
    } else {
        io::stderr().write_all(text.as_bytes())
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_left_is_no_error() {
        let mut out = Out::new(Box::new(Closed));
        out.text("x");
        out.text("y");
        assert!(out.is_closed());
    }
}
