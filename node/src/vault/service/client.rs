//! The other end of the operators' socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use zeroize::Zeroizing;

use super::admin::MAX_LINE;
use super::wire::{AdminReply, AdminRequest};

/// How long the vault may take to answer.
const LIMIT: Duration = Duration::from_secs(30);

/// Asks a running vault.
#[derive(Debug)]
pub struct AdminClient(UnixStream);

impl AdminClient {
    /// Connects to the vault that listens there.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect(socket: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Self(stream))
    }

    /// Asks for one thing.
    ///
    /// # Errors
    /// What the system says, or that the answer is none.
    pub fn ask(mut self, request: &AdminRequest) -> std::io::Result<AdminReply> {
        // Made to measure where a value is in it, so that the buffer does not grow and leave a copy behind.
        let room = match request {
            AdminRequest::Set { name, value } => value.0.expose().len() / 3 * 4 + name.len() * 6 + 64,
            _ => 1_024,
        };
        let mut line = Zeroizing::new(Vec::with_capacity(room));
        serde_json::to_writer(&mut *line, request)?;
        line.push(b'\n');
        self.0.write_all(&line)?;
        let mut reply = String::new();
        BufReader::new(self.0.take(MAX_LINE as u64)).read_line(&mut reply)?;
        Ok(serde_json::from_str(&reply)?)
    }
}
