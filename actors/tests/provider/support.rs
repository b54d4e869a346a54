//! Small Python programs as providers, a runner for each, and what is needed to look at both.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use actix::Actor as _;
use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::{
    Action, Answer, Ask, Call, CallError, EnvironmentRules, Happening, Inherit, ProviderFact, ProviderHandle,
    ProviderParts, ProviderRunner, ProviderSettings, TraceLine, environment,
};
use quartermaster_actors::supervise::Slot;
use quartermaster_proto::provider::{Executed, Limits, Members, Value};
use tempfile::TempDir;

/// Only there so that a failing test ends.
pub const LIMIT: Duration = Duration::from_mins(4);

/// The interpreter itself: the one on the `PATH` may be a script that looks for it.
fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PYTHON.get_or_init(|| {
        let output =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
        Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
    });
    found.as_deref()
}

/// A provider's program in a directory of its own, and how it is to be run.
pub struct Site {
    pub dir: TempDir,
    pub settings: ProviderSettings,
}

/// A provider that runs this Python text. None, said in one line, where there is no Python and nothing is required.
pub fn provider(text: &str) -> Option<Site> {
    let Some(python) = python() else {
        assert!(std::env::var_os("QM_REQUIRE_ALL").is_none_or(|value| value != "1"), "python3 is required");
        eprintln!("skipped: python3 not found on the PATH");
        return None;
    };
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("kit.py"), include_str!("kit.py")).unwrap();
    let program = dir.path().join("provider");
    let text = format!("#!{} -Ss\nfrom kit import *\n{text}\n", python.display());
    write_program(&program, &text);
    let mut settings = ProviderSettings::new("dns", program);
    let rules = EnvironmentRules { inherit: Inherit::Clean, pass: vec![], set: vec![], remove: vec![] };
    settings.environment = environment(std::env::vars_os(), &rules);
    settings.restart.min = Duration::from_millis(20);
    settings.restart.max = Duration::from_millis(100);
    // An interpreter starts slowly on a machine that is busy with everything else.
    settings.timeouts.describe = Duration::from_secs(30);
    Some(Site { dir, settings })
}

pub fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A runner with its handle, and everything it let be known.
pub struct Bench {
    pub dir: TempDir,
    pub handle: ProviderHandle,
    pub facts: Arc<Mutex<Vec<ProviderFact>>>,
    pub trace: Arc<Mutex<Vec<TraceLine>>>,
    pub runner: actix::Addr<ProviderRunner>,
}

impl Site {
    /// The same with a configuration.
    pub fn config(mut self, config: &str) -> Self {
        self.settings.config = members(config);
        self
    }

    /// The same with changed settings.
    pub fn with(mut self, change: impl FnOnce(&mut ProviderSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    pub fn run(self) -> Bench {
        let facts: Arc<Mutex<Vec<ProviderFact>>> = Arc::default();
        let trace: Arc<Mutex<Vec<TraceLine>>> = Arc::default();
        let (into, traced) = (Arc::clone(&facts), Arc::clone(&trace));
        let record = Arc::new(move |fact| into.lock().unwrap().push(fact));
        let parts = ProviderParts::new(self.settings, record, Orphans::unadopted())
            .traced(Arc::new(move |line| traced.lock().unwrap().push(line)));
        let parts = Arc::new(parts);
        let runner = ProviderRunner::new(Arc::clone(&parts), None).start();
        let slot = Slot::new("provider", 16);
        slot.set(runner.clone());
        Bench { dir: self.dir, handle: ProviderHandle::new(slot, parts), facts, trace, runner }
    }
}

impl Bench {
    /// Everything the provider received, one frame a line.
    pub fn received(&self) -> Vec<String> {
        self.file("received").lines().map(str::to_owned).collect()
    }

    /// What the provider wrote into this file of its directory.
    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }

    /// All facts but the bytes that passed, as text.
    pub fn facts(&self) -> Vec<String> {
        let facts = self.facts.lock().unwrap();
        let telling = facts.iter().filter(|fact| !matches!(fact.what, Happening::Moved(..)));
        telling.map(|fact| format!("{:?}", fact.what)).collect()
    }

    pub fn has_fact(&self, part: &str) -> bool {
        self.facts().iter().any(|fact| fact.contains(part))
    }

    /// `do` with this `x`.
    pub async fn act(&self, x: &str) -> Result<Executed, CallError> {
        limited(self.handle.execute("do", members(&format!("{{\"x\":{x}}}")))).await
    }

    pub async fn close(&self) {
        limited(self.handle.close(Duration::ZERO)).await;
    }
}

pub async fn limited<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("no end within the limit of the test")
}

/// JSON as values.
pub fn value(json: &str) -> Value {
    Value::from_json(json, &Limits { max_bytes: 64 << 20, max_depth: 128, max_items: 2_000_000 }).unwrap()
}

pub fn members(json: &str) -> Members {
    value(json).as_object().unwrap().clone()
}

pub fn json(members: &Members) -> String {
    Value::Object(members.clone()).to_json()
}

/// An action with its undo asked for.
pub fn undoable(action: &str, attrs: &str) -> Call {
    let action = Action { action: action.to_owned(), attrs: members(attrs), undo: true, context: None };
    Call { ask: Ask::Execute(action), timeout: None, about: None }
}

pub fn executed(answer: Answer) -> Executed {
    match answer {
        Answer::Executed(executed) => executed,
        other => panic!("{other:?}"),
    }
}

/// `code: message`, then the outcome.
pub fn shown(error: &CallError) -> String {
    format!("{} {:?}: {}", error.code(), error.outcome, error.message())
}

/// Waits until it is so.
#[track_caller]
pub fn eventually(what: &str, so: impl Fn() -> bool) -> impl Future<Output = ()> {
    let (what, start) = (what.to_owned(), Instant::now());
    async move {
        while !so() {
            assert!(start.elapsed() < LIMIT, "never: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Whether a process lives.
pub fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

/// Whether there is anything of a process, defunct or not.
pub fn there(pid: &str) -> bool {
    Path::new(&format!("/proc/{}", pid.trim())).exists()
}
