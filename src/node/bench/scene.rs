//! What is measured: a mesh of one machine, its programs as processes, below a folder that goes with them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_node::archive::Templates;
use quartermaster_node::client::bus::{Bus, BusError};
use quartermaster_node::mesh::{
    MeshError, Signer, Site, assign_unchecked, bundle, prepare, register, set_config,
};
use quartermaster_node::vault::Value;
use quartermaster_node::vault::service::{AdminClient, AdminReply, AdminRequest, AdminValue};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::plan::Digest;
use quartermaster_proto::mesh::value::Json;
use tempfile::TempDir;
use tokio::process::Command;
use zeroize::Zeroizing;

use crate::stage::{Running, StageError, broker_port, quiet_port};

/// The machine's name.
pub(super) const NODE: &str = "bench";
/// How long a program may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How long a program may take to listen.
const START_LIMIT: Duration = Duration::from_mins(1);

/// How large it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) modules: u32,
    pub(super) files: u32,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum BenchError {
    /// A program could not be started, or ended.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The mesh could not be set up.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The broker's address is none.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A file could not be written.
    #[error("could not prepare {what}")]
    Setup {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Something did not happen in time.
    #[error("{what} in time\n{}", log.join("\n"))]
    Late {
        /// What did not.
        what: &'static str,
        /// The last lines of the client's log.
        log: Vec<String>,
    },
}

impl BenchError {
    pub(super) fn setup(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Setup { what, source }
    }

    pub(super) const fn is_missing_broker(&self) -> bool {
        matches!(self, Self::Stage(StageError::NoBroker))
    }
}

/// Everything that runs.
pub(super) struct Scene {
    pub(super) size: Size,
    dir: TempDir,
    port: u16,
    /// Where the broker tells its own numbers.
    pub(super) monitor: u16,
    site: Site,
    pub(super) controller: Bus,
    pub(super) configurer: Bus,
    pub(super) broker: Running,
    pub(super) vault: Running,
    pub(super) engine: Running,
}

/// The name of a module.
pub(super) fn module(number: u32) -> String {
    format!("m{number:05}")
}

/// The vault's name of a module's secret.
pub(super) fn secret(number: u32) -> String {
    format!("own/{}/pw", module(number))
}

impl Scene {
    /// Sets it up, all but the client: buckets, registry, assignments, config values and secrets are there.
    pub(super) async fn set(extent: Size, server: &Path) -> Result<Self, BenchError> {
        let dir = tempfile::tempdir().map_err(BenchError::setup("a folder"))?;
        let root = dir.path();
        let site = Site::create(&root.join("site"))?;
        for account in accounts() {
            site.add(&account)?;
        }
        let monitor = quiet_port()?;
        let users =
            fs::read_to_string(site.write_broker()?).map_err(BenchError::setup("the broker's accounts"))?;
        let config = format!(
            "listen: \"127.0.0.1:-1\"\nhttp: \"127.0.0.1:{monitor}\"\njetstream {{ store_dir: \"{}\" }}\n{users}",
            root.join("jetstream").display()
        );
        let file = root.join("nats.conf");
        fs::write(&file, config).map_err(BenchError::setup("the broker's configuration"))?;
        let mut command = Command::new(server);
        command.arg("-c").arg(&file).arg("--ports_file_dir").arg(root);
        let mut broker = Running::start("nats-server", command, root, false).map_err(StageError::from)?;
        let port = broker_port(&mut broker, root).await?;
        let servers = format!("127.0.0.1:{port}");
        let controller = Bus::connect(site.login(&Account::Controller, &servers)?).await?;
        let configurer = Bus::connect(site.login(&Account::Config, &servers)?).await?;
        prepare(&controller, 1).await?;
        let signer = site.signer()?;
        register(&controller, &signer, None, true).await?;

        let vault = Self::vault(root, &site, &servers, &signer)?;
        let engine = Self::engine(root, &site, &servers, &signer)?;
        let mut scene =
            Self { size: extent, dir, port, monitor, site, controller, configurer, broker, vault, engine };
        scene.wait_for(scene.at("vault.sock")).await?;
        scene.wait_for(scene.at("fill.sock")).await?;
        scene.fill_vault().await?;
        scene.assign_all(&signer).await?;
        Ok(scene)
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn file(&self, number: u32, file: u32) -> PathBuf {
        self.at("root").join(module(number)).join(format!("f{file}"))
    }

    /// A connection as the client's account.
    pub(super) async fn as_client(&self) -> Result<Bus, BenchError> {
        let servers = format!("127.0.0.1:{}", self.port);
        Ok(Bus::connect(self.site.login(&account(), &servers)?).await?)
    }

    /// Starts the client.
    pub(super) fn client(&self) -> Result<Running, BenchError> {
        let mut command = own()?;
        command.args(["node", "--allow-root", "--node", NODE, "--servers"]);
        command.arg(format!("127.0.0.1:{}", self.port));
        command.arg("--credentials").arg(self.site.path_of(&account()));
        command.arg("--pin").arg(self.site.signer()?.public().to_string());
        command.arg("--socket").arg(self.at("fill.sock"));
        command.arg("--state").arg(self.at("client"));
        Ok(Running::start("client", command, self.dir.path(), false).map_err(StageError::from)?)
    }

    /// Ends everything.
    pub(super) async fn strike(&mut self) {
        for program in [&mut self.engine, &mut self.vault, &mut self.broker] {
            program.stop(STOP_LIMIT).await;
        }
    }

    fn vault(root: &Path, site: &Site, servers: &str, signer: &Signer) -> Result<Running, BenchError> {
        let key = root.join("vault.key");
        let write = || {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&key)?;
            std::io::Write::write_all(&mut file, &rand::random::<[u8; 32]>())
        };
        write().map_err(BenchError::setup("the vault's key"))?;
        let mut command = own()?;
        command.arg("vault").arg("--store").arg(root.join("vault.store")).arg("--key-file").arg(&key);
        command.arg("--audit").arg(root.join("vault.audit")).arg("--socket").arg(root.join("vault.sock"));
        command.args(["--servers", servers, "--pin"]).arg(signer.public().to_string());
        command.arg("--credentials").arg(site.path_of(&Account::Vault));
        Ok(Running::start("vault", command, root, false).map_err(StageError::from)?)
    }

    fn engine(root: &Path, site: &Site, servers: &str, signer: &Signer) -> Result<Running, BenchError> {
        let files = root.join("root");
        fs::create_dir(&files).map_err(BenchError::setup("the machine's root"))?;
        let mut command = own()?;
        command
            .args(["engine", "--node", NODE, "--servers", servers, "--pin"])
            .arg(signer.public().to_string());
        command.arg("--credentials").arg(site.path_of(&Account::Engine { node: NODE.to_owned() }));
        command.arg("--root").arg(&files).arg("--socket").arg(root.join("fill.sock"));
        command.arg("--state").arg(root.join("engine"));
        command.arg("--client").arg(rustix::process::geteuid().as_raw().to_string());
        Ok(Running::start("engine", command, root, false).map_err(StageError::from)?)
    }

    async fn wait_for(&mut self, socket: PathBuf) -> Result<(), BenchError> {
        let there = async {
            while !socket.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let late =
            |program: &Running| BenchError::Late { what: "a program did not listen", log: program.tail(20) };
        tokio::select! {
            done = tokio::time::timeout(START_LIMIT, there) => done.map_err(|_| late(&self.engine)),
            how = self.vault.ended() => Err(StageError::Ended { how, log: self.vault.tail(20) }.into()),
            how = self.engine.ended() => Err(StageError::Ended { how, log: self.engine.tail(20) }.into()),
        }
    }

    async fn fill_vault(&self) -> Result<(), BenchError> {
        let (socket, modules) = (self.at("vault.sock"), self.size.modules);
        let store = move || {
            for number in 0..modules {
                let value = AdminValue(Value::new(Zeroizing::new(format!("secret-{number}").into_bytes())));
                let request = AdminRequest::Set { name: secret(number), value };
                match AdminClient::connect(&socket)?.ask(&request)? {
                    AdminReply::Version(_) => {}
                    _ => return Err(std::io::Error::other("the vault does not store it")),
                }
            }
            Ok(())
        };
        let stored = tokio::task::spawn_blocking(store)
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)));
        stored.map_err(BenchError::setup("the vault's values"))
    }

    /// Every module has one template for all of its files but the first, which has the secret and a config value of its own.
    async fn assign_all(&self, signer: &Signer) -> Result<(), BenchError> {
        let filler =
            "# a line as long as lines of configuration are, so that a file has a usual size\n".repeat(12);
        let first = format!("{filler}value = ${{config:first}}\npassword = ${{secret:pw}}\n");
        let other = format!("{filler}value = ${{config:other}}\ndata = ${{dir:data}}\n");
        let templates: Templates = [("first", first), ("other", other)]
            .into_iter()
            .map(|(name, text)| (name.to_owned(), Arc::from(text.into_bytes())))
            .collect();
        let bytes = bundle(&templates)?;
        let archive = self.at("templates.tar");
        fs::write(&archive, &bytes).map_err(BenchError::setup("the templates"))?;
        let digest = Digest::of(&bytes);
        for number in 0..self.size.modules {
            let name = module(number);
            for (key, value) in [("first", "0"), ("other", "0")] {
                set_config(&self.configurer, NODE, &name, key, &Json::string(value)).await?;
            }
            let mut files = String::new();
            for file in 0..self.size.files {
                let (path, template) = (self.file(number, file), if file == 0 { "first" } else { "other" });
                let comma = if file == 0 { "" } else { "," };
                let _ = write!(
                    files,
                    r#"{comma}{{"path":"{}","template":"{template}","owner-at-runtime":"owned"}}"#,
                    path.display()
                );
            }
            let value = format!(
                r#"{{"node":"{NODE}","module":"{name}","serial":1,"provisioning":{{"templates":{{"reference":"file:{}","digest":"{digest}"}},"files":[{files}],"placement":{{"dir":{{"data":"/srv"}}}},"secrets":[{{"name":"pw"}}]}}}}"#,
                archive.display()
            );
            assign_unchecked(&self.controller, signer, NODE, &name, value.into_bytes()).await?;
        }
        Ok(())
    }
}

fn account() -> Account {
    Account::Provisioner { node: NODE.to_owned() }
}

fn accounts() -> [Account; 2] {
    [account(), Account::Engine { node: NODE.to_owned() }]
}

/// This program once more.
fn own() -> Result<Command, BenchError> {
    let mut command = Command::new(std::env::current_exe().map_err(StageError::OwnFile)?);
    command.stdin(Stdio::null());
    Ok(command)
}
