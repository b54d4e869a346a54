//! An engine in a process of its own: this test program, started once more with what it is to be in its environment.
#![allow(dead_code, reason = "several test programs share this and each uses a part of it")]

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use quartermaster_node::engine::service::{Settings, Source, run};
use quartermaster_proto::mesh::{
    fill::{Body, FillFile, Op, Reply, Request, Write, Written},
    plan::Digest,
};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// Bytes of a page of memory.
const PAGE: usize = 4096;
/// The account that may ask, where it is not our own.
const CLIENT: &str = "QM_TEST_ENGINE_CLIENT";
const FOLDER: &str = "QM_TEST_ENGINE";

/// Runs the engine, where this process is one; the test of this name in every program that starts engines calls it.
pub fn run_if_asked() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else { return };
    let settings = Settings {
        node: "web1".to_owned(),
        state: folder.join("state"),
        socket: folder.join("fill.sock"),
        roots: vec![folder.join("root").to_str().unwrap().to_owned()],
        commands: Some(folder.join("commands")),
        client: env::var(CLIENT).unwrap_or_else(|_| rustix::process::geteuid().as_raw().to_string()),
        source: Source::Folder { folder: folder.join("declared"), every: Duration::from_millis(20) },
        user_units: true,
        metrics: None,
    };
    actix::System::new().block_on(run(settings, |_| (), std::future::pending())).unwrap();
}

/// The folder of an engine, and its process.
pub struct Engine {
    pub folder: PathBuf,
    /// Another account's number, to whom alone it is to listen.
    pub client: Option<u32>,
    process: Option<Child>,
    _dir: tempfile::TempDir,
}

impl Engine {
    /// A folder for an engine that does not run yet.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(dir.path()).unwrap();
        for name in ["root", "declared", "commands"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        Self { folder, client: None, process: None, _dir: dir }
    }

    /// Starts the process; `test` is the test that calls [`run_if_asked`].
    pub fn start(&mut self, test: &str) {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]);
        self.run(command);
    }

    /// Starts the process where this script, run in the folder, has mounted things that nobody else sees; false where that is not
    /// possible.
    pub fn start_mounted(&mut self, test: &str, script: &str) -> bool {
        let unshare = || {
            let mut command = Command::new("unshare");
            if !rustix::process::geteuid().is_root() {
                command.arg("--map-root-user");
            }
            command.current_dir(&self.folder).args(["--mount", "sh", "-ec"]);
            command
        };
        let tried = unshare().arg(script).stderr(Stdio::null()).status();
        if !tried.is_ok_and(|status| status.success()) {
            return false;
        }
        let mut command = unshare();
        command.arg(format!("{script}\nexec \"$0\" \"$@\"")).arg(env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]);
        self.run(command);
        true
    }

    fn run(&mut self, mut command: Command) {
        let _ = fs::remove_file(self.folder.join("fill.sock"));
        if let Some(client) = self.client {
            command.env(CLIENT, client.to_string());
        }
        let process =
            command.env(FOLDER, &self.folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.process = Some(process);
        let end = Instant::now() + Duration::from_secs(30);
        while !self.folder.join("fill.sock").exists() {
            assert!(Instant::now() < end, "the engine does not listen");
            // The socket's name appears when it listens; there is nothing else that could be awaited.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// Ends the process with this signal; answers how it ended.
    pub fn end(&mut self, signal: rustix::process::Signal) -> ExitStatus {
        let mut process = self.process.take().unwrap();
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, signal).unwrap();
        process.wait().unwrap()
    }

    pub fn at(&self, rest: &str) -> PathBuf {
        self.folder.join(rest)
    }

    /// A path below the root as the process sees it.
    pub fn seen(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.pid(), self.path(name)))
    }

    /// A path below the root, as a plan names it.
    pub fn path(&self, name: &str) -> String {
        self.at("root").join(name).to_str().unwrap().to_owned()
    }

    /// Declares a module with these files; answers the plan's digest.
    pub fn declare(&self, module: &str, files: &str) -> Digest {
        let templates = format!(r#"{{"reference":"file:/t.tar","digest":"{}"}}"#, Digest::of(b""));
        let text = format!(
            r#"{{"node":"web1","module":"{module}","provisioning":{{"templates":{templates},"files":[{files}]}}}}"#
        );
        fs::write(self.at("declared/new"), &text).unwrap();
        fs::rename(self.at("declared/new"), self.at(&format!("declared/{module}.json"))).unwrap();
        Digest::of(text.as_bytes())
    }

    /// One file of a plan, with further members.
    pub fn file(&self, name: &str, members: &str) -> String {
        format!(r#"{{"path":"{}","template":"t",{members}}}"#, self.path(name))
    }

    pub fn filled(&self, name: &str, content: &[u8]) -> FillFile {
        FillFile {
            path: self.path(name),
            content: Zeroizing::new(content.to_vec()),
            sha256: hex::encode(Sha256::digest(content)),
            sensitive: true,
        }
    }

    /// Sends a request for writing without waiting for its answer.
    pub fn send(&self, module: &str, plan: Digest, files: Vec<FillFile>) -> UnixStream {
        self.try_send(module, plan, files).unwrap()
    }

    /// The same, where it may be refused before all is written.
    pub fn try_send(&self, module: &str, plan: Digest, files: Vec<FillFile>) -> std::io::Result<UnixStream> {
        let mut stream = UnixStream::connect(self.at("fill.sock")).unwrap();
        let write = Write { module: module.to_owned(), plan, revision: 7, files };
        stream.write_all(&Request { id: 5, op: Op::Write(write) }.encode())?;
        Ok(stream)
    }

    /// Asks for files to be written; answers what is said.
    pub fn ask(&self, module: &str, plan: Digest, files: Vec<FillFile>) -> Body {
        let mut line = String::new();
        BufReader::new(self.send(module, plan, files)).read_line(&mut line).unwrap();
        Reply::read(line.trim_end().as_bytes()).unwrap().body
    }

    /// Has files written.
    pub fn write(&self, module: &str, plan: Digest, files: Vec<FillFile>) -> Written {
        match self.ask(module, plan, files) {
            Body::Written(written) => written,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// How often each of these texts is in the memory of a process; none where its memory cannot be read.
pub fn count_in_memory(pid: u32, wanted: &[String]) -> Option<Vec<usize>> {
    use std::os::unix::fs::FileExt as _;
    let memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let mut counts = vec![0; wanted.len()];
    for line in
        maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw")))
    {
        let (from, to) = line.split(' ').next()?.split_once('-')?;
        let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        let mut part = vec![0; usize::try_from(to - from).ok()?];
        // Some of it cannot be read, or is no longer there.
        if memory.read_exact_at(&mut part, from).is_err() {
            continue;
        }
        for page in (0..part.len()).step_by(PAGE) {
            if part[page..page + PAGE] == [0; PAGE] {
                continue;
            }
            for (wanted, count) in wanted.iter().zip(&mut counts) {
                let end = part.len().min(page + PAGE + wanted.len() - 1);
                *count += occurrences(&part[page..end], wanted.as_bytes());
            }
        }
    }
    Some(counts)
}

fn occurrences(part: &[u8], wanted: &[u8]) -> usize {
    // By the rarest of its bytes first: this is not compiled with speed in mind.
    part.iter()
        .enumerate()
        .filter(|(at, byte)| **byte == wanted[0] && part[*at..].starts_with(wanted))
        .count()
}

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// True when a file holds this text.
pub fn holds(path: &Path, text: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|held| held == text)
}
