//! One run of the helper, from start to reaped. Dropping the future kills the helper and everything in its group.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use quartermaster_proto::helper::{HelperReply, decode_reply};
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until};
use zeroize::Zeroizing;

use super::error::HelperError;
use super::orphans::Orphans;
use super::plan::{Effect, Ending, Input, Life};
use super::process::{Leader, Pipes};
use super::settings::HelperSettings;
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

/// Runs the helper once with `input` on its standard input. Every line of its standard error goes to `say`, bounded in length
/// and number. The deadline runs from this call on.
pub async fn execute(
    settings: &HelperSettings,
    orphans: &Orphans,
    input: &[u8],
    mut say: impl FnMut(String),
) -> Result<Execution, HelperError> {
    let deadline = Instant::now() + settings.timeout;
    let mark = orphans.begin();
    let (leader, pipes) = Leader::start(settings, &mark, deadline)
        .await
        .map_err(|source| HelperError::Start { program: settings.program.clone(), source })?;
    let mut talk = Talk::new(pipes, input, settings.max_stdout);
    let mut life = Life::new(deadline.into_std(), settings.grace, settings.pipe_grace);
    let ending = talk
        .until_end(&leader, &mut life, &mut say)
        .await
        .map_err(|source| HelperError::Follow { program: settings.program.clone(), source })?;
    let status =
        leader.end().map_err(|source| HelperError::Follow { program: settings.program.clone(), source })?;
    Ok(Execution { ending, status, stdout: talk.output, stderr: talk.lines.finish(&mut say) })
}

impl Execution {
    /// The reply, if this was a good run: ended by itself, exit status 0, one JSON object and nothing else.
    pub fn reply(&self, settings: &HelperSettings) -> Result<HelperReply, HelperError> {
        let program = settings.program.clone();
        let stderr = self.stderr.clone();
        match self.ending {
            Ending::TimedOut => {
                return Err(HelperError::TimedOut { program, after: settings.timeout, stderr });
            }
            Ending::Overflowed => {
                return Err(HelperError::TooMuchOutput { program, limit: settings.max_stdout, stderr });
            }
            Ending::Ended => {}
        }
        match self.status.map(|status| (status.code(), status.signal())) {
            Some((Some(0), _)) => {}
            Some((Some(code), _)) => return Err(HelperError::Exited { program, code, stderr }),
            Some((None, signal)) => {
                return Err(HelperError::Killed { program, signal: signal.unwrap_or_default(), stderr });
            }
            None => {
                let source = io::Error::other("its exit status could not be read");
                return Err(HelperError::Follow { program, source });
            }
        }
        if self.stdout.is_empty() {
            return Err(HelperError::Silent { program, stderr });
        }
        decode_reply(&self.stdout).map_err(|source| HelperError::Reply { program, source, stderr })
    }
}

/// The three pipes of a running helper. All are served at once: doing one after the other would deadlock as soon as a pipe
/// is full.
struct Talk<'a> {
    input: &'a [u8],
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    output: Zeroizing<Vec<u8>>,
    limit: usize,
    lines: StderrLines,
    /// How much output the last check saw, so that the same bytes are not decoded again.
    checked: usize,
}

impl<'a> Talk<'a> {
    fn new(pipes: Pipes, input: &'a [u8], limit: usize) -> Self {
        Self {
            input,
            stdin: Some(pipes.stdin),
            stdout: Some(pipes.stdout),
            stderr: Some(pipes.stderr),
            output: Zeroizing::new(Vec::new()),
            limit,
            lines: StderrLines::default(),
            checked: 0,
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

    /// A helper need not read its input. That it closed the pipe is no error; whether it could do its work shows in its
    /// reply.
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
        grown && decode_reply(&self.output).is_ok()
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

/// How long `settings` let a run take at the very most: the deadline, the grace after TERM and the wait after KILL.
pub fn longest(settings: &HelperSettings) -> Duration {
    settings.timeout + settings.grace + settings.pipe_grace + super::plan::KILL_WAIT
}
