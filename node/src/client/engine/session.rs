//! One connection to the engine: requests out, answers in, in order.

use std::{collections::VecDeque, io, path::Path, time::Duration};

use quartermaster_proto::{
    mesh::fill::{Body, Op, PROTOCOL, Reply, Request},
    provider::{Lines, Overlong},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::{Instant, timeout, timeout_at},
};

use super::lane::Asked;
use crate::core::EngineAnswer;

/// Longest wait for the connection and the first answer.
const HELLO_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait for an answer: a restart may take a minute and a half, and several may come before ours.
const ANSWER_LIMIT: Duration = Duration::from_mins(5);
/// Longest line of the engine, in bytes; it repeats no content.
const MAX_LINE: usize = 8 * 1024 * 1024;
/// Most requests that wait for their answers on one connection.
const MAX_OPEN: usize = 32;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// The socket does not work, or is not there.
    #[error("failed to speak to the engine")]
    Io(#[from] io::Error),
    /// The engine says nothing in time.
    #[error("the engine does not answer")]
    Silent,
    /// What it says cannot be understood.
    #[error("the engine cannot be understood: {0}")]
    Strange(String),
    /// It belongs to another machine, or speaks another protocol.
    #[error("the engine is of `{node}` and speaks protocol {protocol}")]
    Other {
        /// Its machine.
        node: String,
        /// Its protocol.
        protocol: u64,
    },
}

/// A connection that has been greeted.
pub(super) struct Session {
    read: Reader,
    write: OwnedWriteHalf,
    next_id: u64,
}

struct Reader {
    half: OwnedReadHalf,
    lines: Lines,
    buffer: Vec<u8>,
}

impl Reader {
    /// The next answer. Safe to be given up between two: what was read stays.
    async fn next(&mut self) -> Result<Reply, SessionError> {
        loop {
            if let Some(line) = self.lines.next_line() {
                let line = line.map_err(|_| SessionError::Strange("its line is too long".to_owned()))?;
                return Reply::read(&line).map_err(|fault| SessionError::Strange(fault.to_string()));
            }
            match self.half.read(&mut self.buffer).await? {
                0 => return Err(SessionError::Io(io::ErrorKind::UnexpectedEof.into())),
                read => self.lines.push(self.buffer.get(..read).unwrap_or_default()),
            }
        }
    }
}

impl Session {
    /// Connects and greets.
    pub async fn open(socket: &Path, node: &str) -> Result<Self, SessionError> {
        let open = async {
            let (half, write) = UnixStream::connect(socket).await?.into_split();
            let read =
                Reader { half, lines: Lines::new(MAX_LINE, Overlong::Refuse), buffer: vec![0; 16 * 1024] };
            let mut session = Self { read, write, next_id: 1 };
            session.send(Op::Hello { protocol: PROTOCOL }).await?;
            match session.read.next().await?.body {
                Body::Hello(hello) if hello.protocol == PROTOCOL && hello.node == node => Ok(session),
                Body::Hello(hello) => Err(SessionError::Other { node: hello.node, protocol: hello.protocol }),
                _ => Err(SessionError::Strange("it does not greet".to_owned())),
            }
        };
        timeout(HELLO_LIMIT, open).await.map_err(|_| SessionError::Silent)?
    }

    /// Sends one request; answers its number.
    async fn send(&mut self, op: Op) -> Result<u64, SessionError> {
        let id = self.next_id;
        self.next_id += 1;
        // The line holds secrets: it goes to the socket from where it was made, and is wiped.
        let line = Request { id, op }.encode();
        self.write.write_all(&line).await?;
        Ok(id)
    }

    /// Serves requests until the connection or the lane ends. Every request that was taken is answered, the last ones with
    /// [`EngineAnswer::Away`].
    pub async fn serve(
        &mut self,
        first: Asked,
        lane: &mut mpsc::Receiver<Asked>,
    ) -> Result<(), SessionError> {
        let mut open = VecDeque::new();
        let ended = self.exchange(Some(first), lane, &mut open).await;
        for (_, asked, _) in open {
            asked.answer(EngineAnswer::Away);
        }
        ended
    }

    async fn exchange(
        &mut self,
        mut next: Option<Asked>,
        lane: &mut mpsc::Receiver<Asked>,
        open: &mut VecDeque<(u64, Asked, Instant)>,
    ) -> Result<(), SessionError> {
        loop {
            if let Some(mut asked) = next.take() {
                let write = asked.take_write();
                // Noted first: if the sending fails half way, it is answered all the same.
                open.push_back((self.next_id, asked, Instant::now() + ANSWER_LIMIT));
                let sent = timeout(ANSWER_LIMIT, self.send(Op::Write(write))).await;
                sent.map_err(|_| SessionError::Silent)??;
            }
            let deadline =
                open.front().map_or_else(|| Instant::now() + ANSWER_LIMIT, |(_, _, deadline)| *deadline);
            tokio::select! {
                reply = timeout_at(deadline, self.read.next()) => match reply {
                    Ok(reply) => answer(open, reply?)?,
                    Err(_) if open.is_empty() => {}
                    Err(_) => return Err(SessionError::Silent),
                },
                asked = lane.recv(), if open.len() < MAX_OPEN => match asked {
                    Some(asked) => next = Some(asked),
                    None if open.is_empty() => return Ok(()),
                    None => return self.finish(open).await,
                },
            }
        }
    }

    /// Nobody asks any more; what is open is still answered.
    async fn finish(&mut self, open: &mut VecDeque<(u64, Asked, Instant)>) -> Result<(), SessionError> {
        while let Some((_, _, deadline)) = open.front() {
            let reply = timeout_at(*deadline, self.read.next()).await.map_err(|_| SessionError::Silent)??;
            answer(open, reply)?;
        }
        Ok(())
    }
}

fn answer(open: &mut VecDeque<(u64, Asked, Instant)>, reply: Reply) -> Result<(), SessionError> {
    let Some((_, asked, _)) = open.pop_front_if(|(id, _, _)| *id == reply.id) else {
        return Err(SessionError::Strange("it answers what was not asked".to_owned()));
    };
    match reply.body {
        Body::Written(written) => asked.answer(EngineAnswer::Written(written)),
        Body::Failed(failure) => asked.answer(EngineAnswer::Failed(failure)),
        Body::Hello(_) => {
            asked.answer(EngineAnswer::Away);
            return Err(SessionError::Strange("it greets again".to_owned()));
        }
    }
    Ok(())
}
