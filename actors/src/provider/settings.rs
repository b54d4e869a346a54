//! What a provider's runner is told once, at start.

use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::provider::{AnyEncoding, Members, Schema};

use super::pin::Trust;
use crate::builtin::Builtin;

/// The most a frame may have, in bytes, either way (provider.md D2).
pub const DEFAULT_MAX_FRAME: usize = 16 * 1024 * 1024;
/// How many calls may wait; the next one is refused (provider.md F14).
pub const DEFAULT_QUEUE: usize = 1_024;
/// How many calls may be open at once on one process, if the provider allows as many (provider.md D17).
pub const DEFAULT_IN_FLIGHT: usize = 64;

/// Everything a runner has to know. Plain data: reading files and this process's environment is the caller's part.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The local name, for messages and logs.
    pub name: String,
    /// The program; an absolute path.
    pub program: PathBuf,
    /// A provider that is part of this program; then nothing is started, and what is said of the program means nothing.
    pub builtin: Option<Builtin>,
    /// Its arguments; those of this protocol have none, but a program may serve in several ways.
    pub arguments: Vec<OsString>,
    /// A command put in front of the program: a sandbox tool and its arguments.
    pub wrapper: Vec<OsString>,
    /// What must be true of the program before it is started.
    pub trust: Trust,
    /// The configuration; holds secrets.
    pub config: Members,
    /// Time limits.
    pub timeouts: Timeouts,
    /// The most calls open at once on one process; the provider's own number is the other cap.
    pub max_in_flight: NonZeroUsize,
    /// How many processes serve this one name.
    pub instances: NonZeroUsize,
    /// As many processes as it takes to have so many calls open, each with as many as it declares; goes before `instances`, which
    /// is for whoever knows how many that is.
    pub at_once: Option<NonZeroUsize>,
    /// How many calls may wait for their turn.
    pub queue: usize,
    /// Where processes start; none is this process's own directory.
    pub directory: Option<PathBuf>,
    /// The whole environment of its processes, but for the variables that are always set (provider.md D11).
    pub environment: Vec<(OsString, OsString)>,
    /// The run this belongs to, for `X_PROVIDER_RUN` and the log.
    pub run: String,
    /// When and how often a process is started again.
    pub restart: Restart,
    /// What is done differently for providers that need it.
    pub compat: Compat,
    /// The most a frame may have, in bytes, either way.
    pub max_frame: usize,
    /// Outputs that do not match the schema fail the call.
    pub strict_outputs: bool,
    /// Processes start with the runner instead of with the first call.
    pub eager: bool,
    /// Processes without work end after this long; none keeps them.
    pub idle_stop: Option<Duration>,
    /// What to do when the program is missing, for people.
    pub install_hint: Option<String>,
    /// What its `schema` subcommand printed, if it was asked: a process that declares something else is told of, and used.
    pub probed: Option<Arc<Schema>>,
}

impl ProviderSettings {
    /// Settings of this program with every limit at its default: no configuration, an empty environment, processes that start with
    /// the first call and stay.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            builtin: None,
            arguments: Vec::new(),
            wrapper: Vec::new(),
            trust: Trust::default(),
            config: Members::new(),
            timeouts: Timeouts::default(),
            max_in_flight: NonZeroUsize::new(DEFAULT_IN_FLIGHT).unwrap_or(NonZeroUsize::MIN),
            instances: NonZeroUsize::MIN,
            at_once: None,
            queue: DEFAULT_QUEUE,
            directory: None,
            environment: Vec::new(),
            run: String::new(),
            restart: Restart::default(),
            compat: Compat::default(),
            max_frame: DEFAULT_MAX_FRAME,
            strict_outputs: false,
            eager: false,
            idle_stop: None,
            install_hint: None,
            probed: None,
        }
    }
}

impl ProviderSettings {
    /// Settings of this builtin with every limit at its default.
    pub fn builtin(name: impl Into<String>, builtin: Builtin) -> Self {
        Self { builtin: Some(builtin), ..Self::new(name, PathBuf::new()) }
    }
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("name", &self.name)
            .field("program", &self.program)
            .field("instances", &self.instances)
            .finish_non_exhaustive()
    }
}

/// Time limits (provider.md D9, D16, part 3).
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// The `schema` subcommand.
    pub schema: Duration,
    /// From the start of the process to its schema.
    pub describe: Duration,
    /// From the written frame to the answer; also of questions that change nothing (`x/lookup`, `x/validate`).
    pub configure: Duration,
    /// From the written frame to the answer; none is no limit. An action's own default limit and the caller's go first.
    pub execute: Option<Duration>,
    /// How long one write may be blocked.
    pub write: Duration,
    /// The whole end: request, closed input, TERM and KILL, at 0, 3, 4 and 5 fifths of it.
    pub shutdown: Duration,
    /// How long the answer to a call is awaited that was given up, when the provider cannot be told.
    pub abandon: Duration,
    /// How long the answer is awaited when it was told (`x/cancel`).
    pub cancel: Duration,
    /// After this long without a frame the provider is asked for a sign of life, if it answers such.
    pub ping_every: Duration,
    /// How long that may take.
    pub ping: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            schema: Duration::from_secs(5),
            describe: Duration::from_secs(5),
            configure: Duration::from_secs(30),
            execute: Some(Duration::from_mins(10)),
            write: Duration::from_secs(30),
            shutdown: Duration::from_secs(5),
            abandon: Duration::from_secs(2),
            cancel: Duration::from_secs(10),
            ping_every: Duration::from_secs(30),
            ping: Duration::from_secs(10),
        }
    }
}

/// When a process that ended by itself is started again (provider.md F6).
#[derive(Debug, Clone, Copy)]
pub struct Restart {
    /// The first delay; it doubles with each further crash, and the delay is a random part of it.
    pub min: Duration,
    /// The longest delay.
    pub max: Duration,
    /// After so many crashes within the window the provider has failed.
    pub limit: usize,
    /// The time in which crashes count together. A provider that failed is tried again once it has passed.
    pub window: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            min: Duration::from_millis(500),
            max: Duration::from_secs(30),
            limit: 5,
            window: Duration::from_mins(10),
        }
    }
}

/// What is done differently for providers that need it (provider.md D3, D6, D8, F4).
#[derive(Debug, Clone, Copy)]
pub struct Compat {
    /// Undos are asked for; false never asks.
    pub undo: bool,
    /// How values of type `any` are written and read.
    pub any_encoding: AnyEncoding,
    /// A line on standard output that is no frame is logged after the handshake, instead of ending the process.
    pub log_stray_stdout: bool,
    /// Signs of life are asked of providers that do not say that they know the question: any answer is one.
    pub ping_probe: bool,
}

impl Default for Compat {
    fn default() -> Self {
        Self { undo: true, any_encoding: AnyEncoding::Plain, log_stray_stdout: false, ping_probe: false }
    }
}
