//! A machine: a folder with a root for its files, its engine and its client.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use quartermaster_proto::mesh::accounts::Account;
use serde_json::Value;

use super::{ANY_PORT, Module, Program, eventually};

/// A machine.
pub struct Machine {
    /// Its name.
    pub name: String,
    dir: PathBuf,
    root: PathBuf,
    servers: String,
    pin: String,
    credentials: PathBuf,
    /// How many times faster than real the client's timers run.
    pub pace: u32,
    /// The file mask under which its programs run.
    pub mask: Option<&'static str>,
    /// Mounts made for the engine alone: commands of a shell.
    pub engine_in: Option<String>,
    /// The client's own environment.
    pub environment: Vec<(String, String)>,
    /// The engine, while it runs.
    pub engine: Option<Program>,
    /// The client, while it runs.
    pub client: Option<Program>,
}

impl Machine {
    /// A machine whose programs do not run yet.
    pub fn new(name: &str, dir: &Path, servers: &str, pin: &str, credentials: &Path, pace: u32) -> Self {
        let root = dir.join("root");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(dir.join("commands")).unwrap();
        Self {
            name: name.to_owned(),
            root: fs::canonicalize(&root).unwrap(),
            dir: fs::canonicalize(dir).unwrap(),
            servers: servers.to_owned(),
            pin: pin.to_owned(),
            credentials: credentials.to_owned(),
            mask: None,
            engine_in: None,
            environment: vec![],
            pace,
            engine: None,
            client: None,
        }
    }

    /// A module of this machine.
    pub fn module(&self, name: &str) -> Module {
        Module::new(&self.name, name, &self.root)
    }

    /// Where a file of a module lies.
    pub fn path(&self, rest: &str) -> PathBuf {
        self.root.join(rest)
    }

    /// The machine's own folder, with the states of its programs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder below which its files lie.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The client's account.
    pub fn account(&self) -> Account {
        Account::Provisioner { node: self.name.clone() }
    }

    /// The client's credentials file.
    pub fn credentials(&self, account: &Account) -> PathBuf {
        self.credentials.join(account.name())
    }

    /// The socket between client and engine.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("fill.sock")
    }

    /// The client's state.
    pub fn state(&self) -> PathBuf {
        self.dir.join("client")
    }

    fn masked(&self) -> String {
        self.mask.map(|mask| format!("umask {mask}; ")).unwrap_or_default()
    }

    /// Starts the engine.
    pub async fn start_engine(&mut self) {
        let account = Account::Engine { node: self.name.clone() };
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let arguments = [
            ("--node", self.name.clone()),
            ("--state", text(&self.dir.join("engine"))),
            ("--socket", text(&self.socket())),
            ("--root", text(&self.root)),
            ("--commands", text(&self.dir.join("commands"))),
            ("--client", rustix::process::geteuid().as_raw().to_string()),
            ("--servers", self.servers.clone()),
            ("--credentials", text(&self.credentials(&account))),
            ("--pin", self.pin.clone()),
            ("--metrics", ANY_PORT.to_owned()),
        ];
        // The script's own shell becomes the engine, in a mount namespace of its own where something is mounted for it.
        let before = match &self.engine_in {
            None => self.masked(),
            Some(script) => format!(
                "{}exec unshare -m sh -c '{script} && exec \"$0\" \"$@\"' \"$0\" \"$@\"; ",
                self.masked()
            ),
        };
        let _ = fs::remove_file(self.socket());
        let mut engine = Program::quartermaster_after(&before, "engine", &flat(&arguments), &[], &self.dir);
        let socket = self.socket();
        eventually("the engine listens", || {
            engine.assert_running();
            socket.exists().then_some(())
        })
        .await;
        self.engine = Some(engine);
    }

    /// How the client is started.
    pub fn client_arguments(&self) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let arguments = [
            ("--node", self.name.clone()),
            ("--state", text(&self.state())),
            ("--socket", text(&self.socket())),
            ("--servers", self.servers.clone()),
            ("--credentials", text(&self.credentials(&self.account()))),
            ("--pin", self.pin.clone()),
            ("--metrics", ANY_PORT.to_owned()),
        ];
        let mut arguments = flat(&arguments);
        arguments.push("--allow-root".to_owned());
        arguments.extend(["--pace".to_owned(), self.pace.to_string()]);
        arguments
    }

    /// Starts the client.
    pub fn start_client(&mut self) {
        let arguments = self.client_arguments();
        let client =
            Program::quartermaster_after(&self.masked(), "node", &arguments, &self.environment, &self.dir);
        self.client = Some(client);
    }

    /// Starts both.
    pub async fn start(&mut self) {
        self.start_engine().await;
        self.start_client();
    }

    /// Kills the client and starts another.
    pub fn restart_client(&mut self) {
        self.client = None;
        self.start_client();
    }

    /// The client's log.
    pub fn log(&self) -> String {
        self.client.as_ref().map(Program::log).unwrap_or_default()
    }

    /// The file's text; none when it is not there.
    pub fn read(&self, rest: &str) -> Option<String> {
        let content = fs::read(self.path(rest)).ok()?;
        Some(String::from_utf8_lossy(&content).into_owned())
    }

    /// Waits until the file holds exactly this.
    #[track_caller]
    pub fn holds<'a>(&'a self, rest: &'a str, text: &'a str) -> impl Future<Output = ()> + use<'a> {
        let caller = std::panic::Location::caller();
        async move {
            let what = format!("{caller}: {rest} holds {text:?}");
            eventually(&what, || (self.read(rest).as_deref() == Some(text)).then_some(())).await;
        }
    }

    /// Every file below the root, with its text. What goes while one looks is not there.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            let Some(entries) = still_there(&folder, fs::read_dir(&folder)) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(&self.root).unwrap().to_str().unwrap().to_owned();
                    let Some(content) = still_there(&path, fs::read(&path)) else { continue };
                    found.insert(name, String::from_utf8_lossy(&content).into_owned());
                }
            }
        }
        found
    }

    /// Makes a command that writes a line down each time it is told; answers its path.
    pub fn teller(&self, name: &str) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.dir.join("commands").join(name);
        let told = self.dir.join("commands").join(format!("{name}.told"));
        let text =
            format!("#!/bin/sh\n[ ! -e {0}.fails ] || exit 3\necho told \"$@\" >> {0}\n", told.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// How often that command was told.
    pub fn told(&self, name: &str) -> usize {
        let told = self.dir.join("commands").join(format!("{name}.told"));
        fs::read_to_string(told).map_or(0, |text| text.lines().count())
    }

    /// Has that command fail, or work again.
    pub fn have_fail(&self, name: &str, fails: bool) {
        let flag = self.dir.join("commands").join(format!("{name}.told.fails"));
        if fails { fs::write(flag, "").unwrap() } else { fs::remove_file(flag).unwrap() }
    }

    /// A report in short, paths without the root: `applied a=written`, `waiting config a no-entry`, `failed …`, `removed`.
    pub fn short(&self, report: &Value) -> String {
        let root = format!("{}/", self.root.display());
        let text = |value: &Value| value.as_str().unwrap_or_default().replace(&root, "");
        let state = text(&report["state"]);
        let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
        let each: Vec<String> = match state.as_str() {
            "applied" => list("files")
                .iter()
                .map(|file| format!("{}={}", text(&file["path"]), text(&file["action"])))
                .collect(),
            "waiting" => list("waiting")
                .iter()
                .map(|one| format!("{} {} {}", text(&one["kind"]), text(&one["name"]), text(&one["why"])))
                .collect(),
            _ => vec![text(&report["reason"])],
        };
        format!("{state} {}", each.join(", ")).trim_end().to_owned()
    }
}

fn flat(arguments: &[(&str, String)]) -> Vec<String> {
    arguments.iter().flat_map(|(name, value)| [(*name).to_owned(), value.clone()]).collect()
}

/// What was read, unless it is gone.
pub fn still_there<T>(path: &Path, read: std::io::Result<T>) -> Option<T> {
    match read {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        read => Some(read.unwrap_or_else(|error| panic!("{}: {error}", path.display()))),
    }
}
