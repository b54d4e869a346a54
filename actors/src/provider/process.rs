//! One process of a provider: started, read, written to, followed.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use actix::Addr;
use bytes::Bytes;
use quartermaster_proto::provider::{HostCode, Lines, Overlong};
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::actor::ProviderRunner;
use super::conversation::{Event, Outgoing};
use super::effect::ProcessId;
use super::error::{CallError, Outcome};
use super::fact::Happening;
use super::inside::{Inside, InsidePipes};
use super::messages::{Heard, ProcessStarted};
use super::pin::{TrustError, Verified};
use super::settings::ProviderSettings;
use super::stderr::{Said, Stderr};
use crate::child::{Launch, Leader, Orphans, Pipes, RunMark};
use crate::text::causes;

/// Bytes taken from a pipe at once.
const CHUNK: usize = 64 * 1024;

/// A process that has just been started, or a builtin in its place.
#[derive(Debug)]
pub enum Process {
    Child(Box<Child>),
    Inside(Inside, InsidePipes),
}

/// A process with its pipes, and what it was started as.
#[derive(Debug)]
pub struct Child {
    leader: Leader,
    pipes: Pipes,
    mark: RunMark,
    verified: Verified,
}

/// Sees whether the program may be started, and starts it.
pub async fn start(settings: Arc<ProviderSettings>, orphans: Orphans) -> Result<Process, CallError> {
    if let Some(builtin) = settings.builtin {
        let (inside, pipes) = Inside::start(builtin, &settings, orphans);
        return Ok(Process::Inside(inside, pipes));
    }
    let verifying = Arc::clone(&settings);
    let verified = tokio::task::spawn_blocking(move || verifying.trust.verify(&verifying.program))
        .await
        .map_err(|error| failed(&settings, &error.to_string()))?
        .map_err(|error| untrusted(&settings, &error))?;
    let launch = command(&settings, &verified.path, &[]);
    let mark = orphans.begin();
    let deadline = Instant::now() + settings.timeouts.describe;
    let (leader, pipes) = Leader::start(&launch, &mark, deadline).await.map_err(|error| {
        let hint = settings.install_hint.as_deref().filter(|_| error.kind() == std::io::ErrorKind::NotFound);
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        failed(&settings, &format!("{} could not be started: {error}{hint}", settings.program.display()))
    })?;
    Ok(Process::Child(Box::new(Child { leader, pipes, mark, verified })))
}

/// What is started: the program or the command in front of it, and the variables that are always set.
pub fn command(settings: &ProviderSettings, program: &Path, arguments: &[&str]) -> Launch {
    let mut command = settings.wrapper.iter().cloned().chain([program.as_os_str().to_owned()]);
    let program = command.next().unwrap_or_default();
    let mut environment = settings.environment.clone();
    let set = [
        ("X_PROVIDER_PROTOCOL", "1"),
        ("X_PROVIDER_NAME", &settings.name),
        ("X_PROVIDER_RUN", &settings.run),
    ];
    environment.extend(set.map(|(name, value)| (OsString::from(name), OsString::from(value))));
    Launch {
        program,
        arguments: command
            .chain(settings.arguments.iter().cloned())
            .chain(arguments.iter().map(OsString::from))
            .collect(),
        environment,
        directory: settings.directory.clone(),
    }
}

fn failed(settings: &ProviderSettings, what: &str) -> CallError {
    let message = format!("provider `{}`: {what}", settings.name);
    CallError::host(Outcome::NotSent, HostCode::SpawnFailed, message)
}

/// An untrusted program is not started.
pub fn untrusted(settings: &ProviderSettings, error: &TrustError) -> CallError {
    let code = match error {
        TrustError::Read { .. } => HostCode::SpawnFailed,
        TrustError::Mismatch { .. } | TrustError::Outside { .. } | TrustError::Denied { .. } => {
            HostCode::ChecksumMismatch
        }
    };
    let message = format!("provider `{}`: {}", settings.name, causes(error));
    CallError::host(Outcome::NotSent, code, message)
}

/// Whom or what a process's words are about.
type About = Rc<RefCell<Option<Arc<str>>>>;

/// What runs.
#[derive(Debug)]
enum Body {
    // In this order: the run has ended when its process has, and only then may its program go.
    Child { leader: Rc<Leader>, _mark: RunMark, _verified: Verified },
    Inside(Rc<Inside>),
}

impl Body {
    fn signal(&self, signal: Signal) {
        match self {
            Self::Child { leader, .. } => leader.signal(signal),
            // There is nothing that could go on after it.
            Self::Inside(inside) => inside.end(),
        }
    }
}

/// A process with the tasks that serve it. Dropping it kills its group.
#[derive(Debug)]
pub struct Running {
    input: Option<(mpsc::Sender<Outgoing>, AbortHandle)>,
    stderr: Rc<RefCell<Stderr>>,
    about: About,
    _tasks: JoinSet<()>,
    body: Body,
}

impl Drop for Running {
    fn drop(&mut self) {
        // The task that waits for its end lets go of it only when the runtime comes to it.
        self.body.signal(Signal::KILL);
    }
}

impl Running {
    /// Begins to serve a process.
    pub fn new(
        number: ProcessId,
        process: Process,
        stderr: Stderr,
        runner: &Addr<ProviderRunner>,
        max_frame: usize,
        say: impl Fn(Happening) + 'static,
    ) -> Self {
        let stderr = Rc::new(RefCell::new(stderr));
        let about = About::default();
        let mut tasks = JoinSet::new();
        let hear = || Ear { runner: runner.clone(), number };
        let (sender, frames) = mpsc::channel(1);
        let said = {
            let about = Rc::clone(&about);
            move |said: Said| {
                let about = said.about.clone().or_else(|| about.borrow().clone());
                say(Happening::Said(number, Said { about, ..said }));
            }
        };
        let (writing, body);
        match process {
            Process::Child(child) => {
                let Child { leader, pipes, mark, verified } = *child;
                let leader = Rc::new(leader);
                writing = tasks.spawn_local(write(pipes.stdin, frames, hear()));
                tasks.spawn_local(read(pipes.stdout, max_frame, hear()));
                tasks.spawn_local(complain(pipes.stderr, Rc::clone(&stderr), hear(), said));
                tasks.spawn_local(follow(Rc::clone(&leader), hear()));
                body = Body::Child { leader, _mark: mark, _verified: verified };
            }
            Process::Inside(inside, pipes) => {
                writing = tasks.spawn_local(write(pipes.stdin, frames, hear()));
                tasks.spawn_local(read(pipes.stdout, max_frame, hear()));
                tasks.spawn_local(complain(pipes.stderr, Rc::clone(&stderr), hear(), said));
                let inside = Rc::new(inside);
                let (followed, ear) = (Rc::clone(&inside), hear());
                tasks.spawn_local(async move { ear.tell(Event::Exited(followed.ended().await)).await });
                body = Body::Inside(inside);
            }
        }
        Self { input: Some((sender, writing)), stderr, about, _tasks: tasks, body }
    }

    /// Hands a frame to the writer. There is never more than one, so there is always room.
    pub fn write(&self, frame: Outgoing) {
        if let Some((sender, _)) = &self.input {
            // A writer that has gone has said so.
            let _ = sender.try_send(frame);
        }
    }

    /// Closes its standard input, in the middle of a frame if need be.
    pub fn close_input(&mut self) {
        if let Some((_, writing)) = self.input.take() {
            writing.abort();
        }
    }

    /// Sends a signal to its group.
    pub fn signal(&self, signal: Signal) {
        self.body.signal(signal);
    }

    /// Whom or what its words are about from now on.
    pub fn set_about(&self, about: Option<&Arc<str>>) {
        let mut now = self.about.borrow_mut();
        if now.as_ref() != about {
            *now = about.cloned();
        }
    }

    /// Its last lines on standard error.
    pub fn tail(&self) -> Vec<String> {
        self.stderr.borrow().tail()
    }
}

/// Where a task tells what it saw.
struct Ear {
    runner: Addr<ProviderRunner>,
    number: ProcessId,
}

impl Ear {
    /// Waits until it has been heard, so that a flood waits in the pipe and not here.
    async fn tell(&self, event: Event) {
        // A runner that has gone ends us in a moment.
        let _ = self.runner.send(Heard(self.number, event)).await;
    }
}

async fn write(mut pipe: impl AsyncWrite + Unpin, mut frames: mpsc::Receiver<Outgoing>, ear: Ear) {
    while let Some(frame) = frames.recv().await {
        let mut rest = frame.bytes.as_slice();
        while !rest.is_empty() {
            match pipe.write(rest).await {
                Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
                _ => {
                    let untouched = rest.len() == frame.bytes.len();
                    return ear.tell(Event::WriteFailed(untouched)).await;
                }
            }
        }
        ear.tell(Event::Written).await;
    }
}

async fn read(mut pipe: impl AsyncRead + Unpin, max_frame: usize, ear: Ear) {
    let mut lines = Lines::new(max_frame, Overlong::Refuse);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = pipe.read(&mut chunk).await.unwrap_or(0);
        if read == 0 {
            break;
        }
        lines.push(chunk.get(..read).unwrap_or_default());
        // What it said before it answered is heard before the answer, and so belongs to that call.
        tokio::task::yield_now().await;
        while let Some(line) = lines.next_line() {
            match line {
                Ok(line) => ear.tell(Event::Line(line)).await,
                // Nothing more is read: its group is being killed.
                Err(_) => return ear.tell(Event::Overlong).await,
            }
        }
    }
    if let Some(Ok(rest)) = lines.finish() {
        ear.tell(Event::Rest(Bytes::clone(&rest))).await;
    }
    ear.tell(Event::OutputClosed).await;
}

async fn complain(
    mut pipe: impl AsyncRead + Unpin,
    stderr: Rc<RefCell<Stderr>>,
    ear: Ear,
    mut said: impl FnMut(Said),
) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let due = stderr.borrow().due().map(Instant::from_std);
        // When a flood is followed by silence, what was not logged of it is told all the same.
        let read = match due {
            Some(due) => tokio::time::timeout_at(due, pipe.read(&mut chunk)).await,
            None => Ok(pipe.read(&mut chunk).await),
        };
        let now = Instant::now().into_std();
        let Ok(read) = read else {
            stderr.borrow_mut().tick(now, &mut said);
            continue;
        };
        let read = read.unwrap_or(0);
        let bytes = chunk.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            stderr.borrow_mut().finish(now, &mut said);
            break;
        }
        stderr.borrow_mut().push(bytes, now, &mut said);
        // A flood must not keep everybody else from their work.
        tokio::task::yield_now().await;
    }
    ear.tell(Event::ErrorsClosed).await;
}

async fn follow(leader: Rc<Leader>, ear: Ear) {
    let how = match leader.exited().await {
        Ok(_) => leader.how_it_ended(),
        Err(error) => format!("cannot be followed any more: {error}"),
    };
    ear.tell(Event::Exited(how)).await;
}

/// The message with which a started process arrives.
pub fn arrival(process: ProcessId, result: Result<Process, CallError>) -> ProcessStarted {
    ProcessStarted { process, result }
}
