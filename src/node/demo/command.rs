//! The command `quartermaster demo-node`.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use quartermaster_node::client::bus::Bus;
use quartermaster_node::mesh::{MeshError, Site};
use quartermaster_proto::mesh::accounts::Account;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::catalogue::{DB, Facts, WEB};
use super::play::Stage;
use super::programs::{Common, Programs};
use super::seen::Seen;
use super::surroundings::Surroundings;
use super::told::{Screen, Told};
use super::unit::Unit;
use super::verbs::Verbs;
use crate::exit::Exit;
use crate::stage::{StageError, complain, nats_server};

/// How many of each program's last lines are shown when something was not seen.
const LAST_LINES: usize = 5;

/// Arguments of `quartermaster demo-node`.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// The nats-server to start; default: the one on the PATH, or one fetched by tools/get-nats-server
    #[arg(long, value_name = "FILE", env = "QM_NATS_SERVER")]
    nats_server: Option<PathBuf>,
    /// Keep keys, states, logs and the machines' roots in this directory, which is empty or not there yet
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print what was seen as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the demo and says what was seen.
pub fn demo(args: &DemoArgs) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&StageError::Setup { what: "the runtime", source: error }),
    };
    match runtime.block_on(run(args)) {
        Ok(exit) => exit,
        Err(error) => complain(&error),
    }
}

async fn run(args: &DemoArgs) -> Result<Exit, StageError> {
    let setup = StageError::setup;
    let nats = nats_server(args.nats_server.as_deref()).await?;
    // Removed when it goes out of scope, unless it is to be kept.
    let (dir, _temporary) = if let Some(dir) = &args.keep {
        std::fs::create_dir_all(dir).map_err(setup("the directory to keep"))?;
        // Ports, keys and states of an earlier run would be taken for this one's.
        let is_empty = std::fs::read_dir(dir).map_err(setup("the directory to keep"))?.next().is_none();
        if !is_empty {
            let source = std::io::Error::new(std::io::ErrorKind::DirectoryNotEmpty, "it is not empty");
            return Err(StageError::Setup { what: "the directory to keep", source });
        }
        (dir.clone(), None)
    } else {
        let temporary = tempfile::Builder::new().prefix("quartermaster-mesh-").tempdir();
        let temporary = temporary.map_err(setup("a temporary directory"))?;
        (temporary.path().to_owned(), Some(temporary))
    };
    // The engine follows no link on the way to a file.
    let dir = std::fs::canonicalize(dir).map_err(setup("the directory"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(setup("signals"))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(setup("signals"))?;
    let mut hangup = signal(SignalKind::hangup()).map_err(setup("signals"))?;
    let mut programs = Programs::default();
    let outcome = tokio::select! {
        outcome = show(&nats, &dir, &mut programs) => outcome.map(Some),
        _ = interrupt.recv() => Ok(None),
        _ = terminate.recv() => Ok(None),
        _ = hangup.recv() => Ok(None),
    };
    let words = programs.last_words(LAST_LINES);
    programs.stop().await;
    let Some(seen) = outcome? else {
        let _ = writeln!(std::io::stderr(), "interrupted: everything is stopped");
        return Ok(Exit::Failure);
    };
    let text = if args.json {
        json!({"ok": seen.is_all(), "files": seen.files, "sights": seen.sights}).to_string()
    } else {
        seen.tables()
    };
    let _ = writeln!(std::io::stdout(), "{text}");
    if seen.is_all() {
        return Ok(Exit::Success);
    }
    // The programs' own words are the best explanation there is.
    for line in words {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    Ok(Exit::Incomplete)
}

async fn show(nats: &Path, dir: &Path, programs: &mut Programs) -> Result<Seen, StageError> {
    let screen = Screen::new();
    let around = Surroundings::look();
    screen.say(&around.said());
    if around.client.is_some() {
        // The clients' account has to come through to its own folders.
        std::fs::set_permissions(dir, Permissions::from_mode(0o711))
            .map_err(StageError::setup("the directory's mode"))?;
    }
    let program = std::env::current_exe().map_err(StageError::OwnFile)?;
    let mut verbs = Verbs { program: program.clone(), dir: dir.to_owned(), servers: None, screen };
    write_key(dir).map_err(StageError::setup("the vault's key"))?;
    verbs.mesh(&["init"]).await?;
    verbs.mesh(&["node", "add", WEB]).await?;
    verbs.mesh(&["node", "add", DB, "--provider", "db"]).await?;
    let port = programs.broker(nats, dir).await?;
    screen.say(&format!("broker {} on 127.0.0.1:{port}", nats.display()));
    let servers = format!("127.0.0.1:{port}");
    verbs.servers = Some(servers.clone());
    let box_key = verbs.vault_init().await?;
    verbs.mesh(&["init", "--box-key", &box_key]).await?;

    let site = Site::open(&dir.join("mesh")).map_err(in_setup)?;
    let pin = site.signer().map_err(in_setup)?.public().to_string();
    let login = site.login(&Account::Controller, &servers).map_err(in_setup)?;
    let bus = Bus::connect_once(login).await.map_err(|error| in_setup(std::io::Error::other(error)))?;
    let told = Told::listen(&bus, screen).await?;
    let common =
        Common { program: &program, dir, site: &site, servers: &servers, pin: &pin, around: &around };
    programs.vault(&common).await?;
    for machine in [DB, WEB] {
        programs.machine(&common, machine).await?;
        screen.say(&format!(
            "machine {machine}: engine and client run, its root is {}",
            dir.join(machine).join("root").display()
        ));
    }

    let unit = around.manager.and_then(Unit::start);
    let on_change = match &unit {
        Some(unit) => json!({"restart": unit.name()}),
        None => json!({"command": [dir.join(WEB).join("commands/reload-web")]}),
    };
    let owner = around.client.as_ref().map(|client| client.name.clone());
    let facts = Facts { below: dir.to_owned(), on_change, owner };
    let mut stage = Stage { verbs, facts, told, screen, unit, seen: Seen::default() };
    tokio::select! {
        played = stage.play() => played?,
        error = programs.ended() => return Err(error),
    }
    Ok(stage.seen)
}

fn in_setup(error: impl Into<SetupError>) -> StageError {
    let SetupError(source) = error.into();
    StageError::Setup { what: "the mesh", source }
}

/// Whatever went wrong with the mesh's folder or its broker.
struct SetupError(std::io::Error);

impl From<MeshError> for SetupError {
    fn from(error: MeshError) -> Self {
        Self(std::io::Error::other(error))
    }
}

impl From<std::io::Error> for SetupError {
    fn from(error: std::io::Error) -> Self {
        Self(error)
    }
}

fn write_key(dir: &Path) -> std::io::Result<()> {
    let folder = dir.join("vault");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("key");
    std::fs::write(&path, zeroize::Zeroizing::new(rand::random::<[u8; 32]>()))?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))
}
