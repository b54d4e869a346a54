//! A directory with a file of steps and a provider of made-up things, and the program under test in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{have, program, text};

/// Only there so that a failing test ends.
pub const LIMIT: Duration = Duration::from_secs(50);

/// What a file of steps is put around.
const HEAD: &str = r#"scenario "demo" {
  required_providers {
    things = { source = "exec:./bin/things" }
  }
"#;

pub struct Site {
    pub dir: TempDir,
}

impl Site {
    /// A site whose scenario says this. None, said in one line, where there is no Python.
    pub fn new(body: &str) -> Option<Self> {
        if !have(&["python3"]) {
            return None;
        }
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        let site = Self { dir };
        site.provider("things");
        site.write("steps.hcl", &format!("{HEAD}{body}\n}}\n"));
        Some(site)
    }

    /// One more copy of the provider.
    pub fn provider(&self, name: &str) {
        let python =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        let content = format!("#!{} -Ss\n{}", text(&python.stdout).trim(), include_str!("fake.py"));
        program(&self.path("bin"), name, &content);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The whole file of steps.
    pub fn steps(&self, content: &str) {
        self.write("steps.hcl", content);
    }

    /// How the provider behaves.
    pub fn says(&self, name: &str, json: &str) {
        self.write(&format!("bin/{name}.json"), json);
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.args(arguments).current_dir(self.dir.path()).env("HOME", self.dir.path());
        command.env_remove("XDG_CACHE_HOME").env_remove("XDG_STATE_HOME").stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running(Some(child))
    }

    /// What the provider was asked, in order.
    pub fn calls(&self) -> Vec<Value> {
        self.read("bin/calls").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How often the provider was asked this.
    pub fn asked(&self, what: &str) -> usize {
        self.calls().iter().filter(|call| call["what"] == what).count()
    }

    /// The names of the things that are there.
    pub fn things(&self) -> Vec<String> {
        let things: Value = serde_json::from_str(&self.read("bin/things.json")).unwrap_or_default();
        let mut names: Vec<String> =
            things.as_object().map(|things| things.keys().cloned().collect()).unwrap_or_default();
        names.sort();
        names
    }

    /// The records there are, oldest first.
    pub fn records(&self) -> Vec<PathBuf> {
        let mut records: Vec<PathBuf> = fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .collect();
        records.sort();
        records
    }

    /// The one record there is.
    pub fn record(&self) -> PathBuf {
        let records = self.records();
        assert_eq!(records.len(), 1, "{records:?}");
        records[0].clone()
    }

    /// The words of the one record's lines.
    pub fn words(&self) -> Vec<String> {
        lines(&self.record()).iter().map(|line| line["t"].as_str().unwrap().to_owned()).collect()
    }

    pub fn undo(&self) -> Ran {
        self.run(&["undo", self.record().to_str().unwrap()])
    }
}

/// The whole lines of a record.
pub fn lines(record: &Path) -> Vec<Value> {
    let content = fs::read_to_string(record).unwrap_or_default();
    let whole = content.rfind('\n').map_or("", |end| &content[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < LIMIT, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    fn of(output: &Output) -> Self {
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn says(&self, words: &[&str]) {
        for word in words {
            assert!(self.out.contains(word) || self.err.contains(word), "{word}: {self:#?}");
        }
    }
}

/// A running program, killed when it is no longer wanted.
pub struct Running(Option<Child>);

impl Running {
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.0.as_ref().unwrap().id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    pub fn end(mut self) -> Ran {
        Ran::of(&self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
