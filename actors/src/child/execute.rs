//! One run of a process that reads, answers and exits. Dropping the future kills it and everything in its group.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until};
use zeroize::Zeroizing;

use super::error::RunError;
use super::launch::Launch;
use super::leader::{Leader, Pipes};
use super::orphans::Orphans;
use super::plan::{Effect, Ending, Input, Life};
use super::stderr::StderrLines;

/// Bytes taken from a pipe at once.
const CHUNK: usize = 16 * 1024;

/// What came of one process that did start.
#[derive(Debug)]
pub struct Execution {
    /// How it ended.
    pub ending: Ending,
    /// Its exit status or signal; none when it could not be reaped in time.
    pub status: Option<ExitStatus>,
    /// Everything it wrote to standard output, up to the limit. Holds secrets.
    pub stdout: Zeroizing<Vec<u8>>,
    /// Its last lines on standard error, oldest first; escaped and bounded.
    pub stderr: Vec<String>,
}

/// How far a run may go.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// The limit of the whole run, from the call of [`execute()`].
    pub timeout: Duration,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// How long the output of a process that has exited is waited for while something it started holds the pipe.
    pub pipe_grace: Duration,
    /// The most it may write to standard output, in bytes.
    pub max_stdout: usize,
}

/// Runs a program once with `input` on its standard input. Every line of its standard error goes to `say`, bounded in length
/// and number; `complete` tells whether what it wrote so far can be a whole answer.
pub async fn execute(
    launch: &Launch,
    limits: &RunLimits,
    orphans: &Orphans,
    input: &[u8],
    complete: impl Fn(&[u8]) -> bool,
    mut say: impl FnMut(String),
) -> Result<Execution, RunError> {
    let deadline = Instant::now() + limits.timeout;
    let mark = orphans.begin();
    let (leader, pipes) = Leader::start(launch, &mark, deadline).await.map_err(RunError::Start)?;
    let mut talk = Talk::new(pipes, input, limits.max_stdout, complete);
    let mut life = Life::new(deadline.into_std(), limits.grace, limits.pipe_grace);
    let ending = talk.until_end(&leader, &mut life, &mut say).await.map_err(RunError::Follow)?;
    let status = leader.end().map_err(RunError::Follow)?;
    Ok(Execution { ending, status, stdout: talk.output, stderr: talk.lines.finish(&mut say) })
}

/// The three pipes of a running process. All are served at once: doing one after the other would deadlock as soon as a pipe
/// is full.
struct Talk<'a, C> {
    input: &'a [u8],
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    output: Zeroizing<Vec<u8>>,
    limit: usize,
    lines: StderrLines,
    /// How much output the last check saw, so that the same bytes are not decoded again.
    checked: usize,
    complete: C,
}

impl<'a, C: Fn(&[u8]) -> bool> Talk<'a, C> {
    fn new(pipes: Pipes, input: &'a [u8], limit: usize, complete: C) -> Self {
        Self {
            input,
            stdin: Some(pipes.stdin),
            stdout: Some(pipes.stdout),
            stderr: Some(pipes.stderr),
            output: Zeroizing::new(Vec::new()),
            limit,
            lines: StderrLines::default(),
            checked: 0,
            complete,
        }
    }

    async fn until_end(
        &mut self,
        leader: &Leader,
        life: &mut Life,
        say: &mut impl FnMut(String),
    ) -> io::Result<Ending> {
        let mut out = Zeroizing::new(vec![0; CHUNK]);
        let mut err = vec![0; CHUNK];
        let mut exited = false;
        loop {
            let input = tokio::select! {
                written = write_some(&mut self.stdin, self.input) => {
                    self.wrote(written);
                    continue;
                }
                read = read_some(&mut self.stdout, &mut out) => match self.took_output(out.get(..read).unwrap_or_default()) {
                    Some(input) => input,
                    None => continue,
                },
                read = read_some(&mut self.stderr, &mut err) => {
                    if read > 0 {
                        self.lines.push(err.get(..read).unwrap_or_default(), say);
                        continue;
                    }
                    self.stderr = None;
                    Input::StderrClosed
                }
                success = leader.exited(), if !exited => {
                    exited = true;
                    Input::Exited { success: success? }
                }
                () = sleep_until(Instant::from_std(life.due())) => Input::Due,
            };
            let mut effect = life.handle(input, Instant::now().into_std());
            if effect == Effect::CheckReply {
                let complete = self.reply_is_complete();
                effect = life.handle(Input::ReplyChecked { complete }, Instant::now().into_std());
            }
            match effect {
                Effect::Wait | Effect::CheckReply => {}
                Effect::Terminate => leader.signal(Signal::TERM),
                Effect::Kill => leader.signal(Signal::KILL),
                Effect::Finish(ending) => return Ok(ending),
            }
        }
    }

    /// A process need not read its input. That it closed the pipe is no error; whether it could do its work shows in its
    /// answer.
    fn wrote(&mut self, written: usize) {
        self.input = self.input.get(written..).unwrap_or_default();
        if written == 0 || self.input.is_empty() {
            self.stdin = None;
        }
    }

    fn took_output(&mut self, bytes: &[u8]) -> Option<Input> {
        if bytes.is_empty() {
            self.stdout = None;
            return Some(Input::StdoutClosed);
        }
        if self.output.len() + bytes.len() > self.limit {
            // Closing our end stops it at its next write; the signal follows.
            self.stdout = None;
            return Some(Input::Overflowed);
        }
        self.output.extend_from_slice(bytes);
        None
    }

    fn reply_is_complete(&mut self) -> bool {
        let grown = self.output.len() > self.checked;
        self.checked = self.output.len();
        grown && (self.complete)(&self.output)
    }
}

/// Bytes written; 0 when nobody reads any more or there is nothing to write.
async fn write_some(pipe: &mut Option<ChildStdin>, bytes: &[u8]) -> usize {
    match pipe {
        Some(_) if bytes.is_empty() => 0,
        Some(pipe) => pipe.write(bytes).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Bytes read; 0 at the end of the stream, and an unreadable pipe has ended.
async fn read_some(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
