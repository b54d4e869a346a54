//! One process of the program under test, spoken to byte by byte.

use std::collections::BTreeMap;
use std::time::Duration;

use quartermaster_actors::child::{Launch, Leader, Orphans, Pipes, RunMark, printable};
use quartermaster_proto::provider::{
    Body, Call, CallId, Frame, Limits, Lines, Mask, Overlong, Reply, Request, decode, encode, excerpt,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until, timeout_at};

/// The bounds of a frame, those of a host by default.
pub const LIMITS: Limits = Limits::PROVIDER;
/// Bytes taken from a pipe at once.
const CHUNK: usize = 64 * 1024;
/// So many bytes of standard error are kept, the last ones.
const KEPT: usize = 2 * 1024;

/// A process that can be asked.
pub struct Talk {
    leader: Leader,
    stdin: Option<ChildStdin>,
    ears: Ears,
    /// The next id.
    pub next: i64,
    _mark: RunMark,
}

/// What a process said so far that nobody has asked for yet.
struct Ears {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    lines: Lines,
    replies: BTreeMap<CallId, Body>,
    remarks: Vec<String>,
    words: Vec<u8>,
}

/// Why there is no answer.
enum Unanswered {
    /// It said something that is none.
    Wrong(String),
    /// It said nothing.
    Silent(&'static str),
}

impl Talk {
    /// Starts the program.
    pub async fn start(launch: &Launch, orphans: &Orphans) -> Result<Self, String> {
        let mark = orphans.begin();
        let deadline = Instant::now() + Duration::from_secs(5);
        let (leader, Pipes { stdin, stdout, stderr }) = Leader::start(launch, &mark, deadline)
            .await
            .map_err(|error| format!("it could not be started: {error}"))?;
        Ok(Self {
            leader,
            stdin: Some(stdin),
            ears: Ears {
                stdout: Some(stdout),
                stderr: Some(stderr),
                lines: Lines::new(LIMITS.max_bytes, Overlong::Refuse),
                replies: BTreeMap::new(),
                remarks: Vec::new(),
                words: Vec::new(),
            },
            next: 1,
            _mark: mark,
        })
    }

    /// A frame with the next id.
    pub fn frame(&mut self, call: Call) -> Result<(CallId, Vec<u8>), String> {
        let id = CallId(self.next);
        self.next += 1;
        let bytes = encode(&Request { id, call }, &LIMITS).map_err(|error| error.to_string())?;
        Ok((id, bytes.to_vec()))
    }

    /// Asks and waits for the answer.
    pub async fn ask(&mut self, call: Call, limit: Duration) -> Result<Body, String> {
        let (id, frame) = self.frame(call)?;
        self.exchange(&[&frame], id, limit).await
    }

    /// Writes these pieces, each in a write of its own, and waits for the answer with this id.
    pub async fn exchange(&mut self, pieces: &[&[u8]], id: CallId, limit: Duration) -> Result<Body, String> {
        let deadline = Instant::now() + limit;
        let mut stdin = self.stdin.take();
        let writing = async {
            for piece in pieces {
                if let Some(pipe) = &mut stdin
                    && let Err(error) = pipe.write_all(piece).await
                {
                    return Err(format!("it does not read any more: {error}"));
                }
                tokio::task::yield_now().await;
            }
            Ok(())
        };
        // Both at once: either pipe may be full.
        let (written, answer) = tokio::join!(timeout_at(deadline, writing), self.hear(id, deadline));
        self.stdin = stdin;
        match (answer, written) {
            (Ok(body), _) => Ok(body),
            // What it said instead tells more than that it reads no more; that tells more than silence.
            (Err(Unanswered::Wrong(error)), _) | (Err(Unanswered::Silent(_)), Ok(Err(error))) => {
                Err(self.with_words(&error))
            }
            (Err(Unanswered::Silent(why)), _) => Err(self.with_words(why)),
        }
    }

    /// Waits for the answer with this id.
    pub async fn answer(&mut self, id: CallId, deadline: Instant) -> Result<Body, String> {
        self.hear(id, deadline).await.map_err(|unanswered| match unanswered {
            Unanswered::Wrong(error) => error,
            Unanswered::Silent(why) => why.to_owned(),
        })
    }

    async fn hear(&mut self, id: CallId, deadline: Instant) -> Result<Body, Unanswered> {
        loop {
            if let Some(body) = self.ears.replies.remove(&id) {
                return Ok(body);
            }
            let more = timeout_at(deadline, self.ears.listen()).await;
            match more {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return Err(Unanswered::Silent("it ended without an answer")),
                Ok(Err(error)) => return Err(Unanswered::Wrong(error)),
                Err(_) => return Err(Unanswered::Silent("no answer in time")),
            }
        }
    }

    /// Answers that nobody asked for.
    pub fn surplus(&self) -> Vec<CallId> {
        self.ears.replies.keys().copied().collect()
    }

    /// Writes without waiting for anything.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        match &mut self.stdin {
            Some(pipe) => {
                pipe.write_all(bytes).await.map_err(|error| format!("it does not read any more: {error}"))
            }
            None => Err("its input is closed".to_owned()),
        }
    }

    /// What it said that is worth a remark.
    pub fn remarks(&self) -> &[String] {
        &self.ears.remarks
    }

    /// Closes its input and waits for its end; how it ended, in words.
    pub async fn end(mut self, limit: Duration) -> Result<String, String> {
        self.stdin = None;
        let deadline = Instant::now() + limit;
        loop {
            tokio::select! {
                ended = self.leader.exited() => {
                    return match ended {
                        Ok(_) => Ok(self.leader.how_it_ended()),
                        Err(error) => Err(format!("its end cannot be seen: {error}")),
                    };
                }
                heard = self.ears.listen(), if self.ears.hears() => { heard?; }
                () = sleep_until(deadline) => {
                    return Err(self.with_words(&format!("it did not end within {limit:?}")));
                }
            }
        }
    }

    fn with_words(&self, error: &str) -> String {
        let words = String::from_utf8_lossy(&self.ears.words);
        match words.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last) => format!("{error}; its last words: {}", printable(last.as_bytes())),
            None => error.to_owned(),
        }
    }
}

impl Ears {
    /// There may be more to hear.
    const fn hears(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Takes what comes next from either of its outputs; false at the end of both.
    async fn listen(&mut self) -> Result<bool, String> {
        if !self.hears() {
            return Ok(false);
        }
        let mut out = vec![0; CHUNK];
        let mut err = vec![0; CHUNK];
        tokio::select! {
            read = read_some(&mut self.stdout, &mut out) => {
                self.heard(out.get(..read).unwrap_or_default())?;
                if read == 0 {
                    self.stdout = None;
                }
            }
            read = read_some(&mut self.stderr, &mut err) => {
                self.words.extend_from_slice(err.get(..read).unwrap_or_default());
                let surplus = self.words.len().saturating_sub(KEPT);
                self.words.drain(..surplus);
                if read == 0 {
                    self.stderr = None;
                }
            }
        }
        Ok(self.hears())
    }

    fn heard(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.lines.push(bytes);
        while let Some(line) = self.lines.next_line() {
            let line = line.map_err(|error| error.to_string())?;
            let decoded = decode(&line, &LIMITS)
                .map_err(|error| format!("{error}: {}", excerpt(&line, &Mask::default())))?;
            self.remarks.extend(decoded.warnings.iter().map(ToString::to_string));
            if let Frame::Reply(Reply { id, body }) = decoded.frame
                && self.replies.insert(id, body).is_some()
            {
                return Err(format!("call {id} was answered twice"));
            }
        }
        Ok(())
    }
}

async fn read_some(pipe: &mut Option<impl tokio::io::AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
