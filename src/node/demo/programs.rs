//! The programs of the demo's mesh: broker, vault, and on each machine an engine and a client.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::select_all;
use quartermaster_node::mesh::Site;
use quartermaster_proto::mesh::accounts::Account;
use tokio::process::Command;
use tokio::time::Instant;

use super::catalogue::{DB, WEB};
use super::surroundings::{Manager, Surroundings};
use crate::stage::{Running, StageError, broker_port};

/// How long a program may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// How long a socket may take to appear.
const SOCKET_LIMIT: Duration = Duration::from_secs(30);

/// The programs, ended in the reverse of the order they were started in. Dropped, they are killed.
#[derive(Default)]
pub(super) struct Programs(Vec<Running>);

/// What all of them are told.
pub(super) struct Common<'a> {
    /// Our own program.
    pub(super) program: &'a Path,
    /// The folder of the whole demo.
    pub(super) dir: &'a Path,
    /// The operator's folder.
    pub(super) site: &'a Site,
    /// Where the broker is.
    pub(super) servers: &'a str,
    /// The controller's public key.
    pub(super) pin: &'a str,
    /// What this machine offers.
    pub(super) around: &'a Surroundings,
}

impl Programs {
    /// Starts the broker with the accounts of the folder; the port it took.
    pub(super) async fn broker(&mut self, nats: &Path, dir: &Path) -> Result<u16, StageError> {
        let config = format!(
            "listen: \"127.0.0.1:-1\"\njetstream {{ store_dir: \"{}\" }}\ninclude \"mesh/broker.conf\"\n",
            dir.join("broker").display()
        );
        fs::write(dir.join("nats.conf"), config).map_err(StageError::setup("the broker's configuration"))?;
        let mut command = Command::new(nats);
        command.arg("--config").arg(dir.join("nats.conf")).arg("--ports_file_dir").arg(dir);
        let mut broker = Running::start("nats-server", command, dir, false)?;
        let port = broker_port(&mut broker, dir).await;
        self.0.push(broker);
        port
    }

    /// Starts the vault and waits until it answers operators.
    pub(super) async fn vault(&mut self, common: &Common<'_>) -> Result<(), StageError> {
        let folder = common.dir.join("vault");
        let mut command = Command::new(common.program);
        command.args(["vault", "--servers", common.servers, "--pin", common.pin]);
        command.arg("--credentials").arg(common.site.path_of(&Account::Vault));
        command.arg("--store").arg(folder.join("store")).arg("--key-file").arg(folder.join("key"));
        command.arg("--audit").arg(folder.join("audit.jsonl")).arg("--socket").arg(folder.join("admin.sock"));
        let vault = Running::start("vault", command, common.dir, false)?;
        self.0.push(vault);
        self.socket(&folder.join("admin.sock")).await
    }

    /// Starts a machine's engine and its client.
    pub(super) async fn machine(
        &mut self,
        common: &Common<'_>,
        machine: &'static str,
    ) -> Result<(), StageError> {
        let folder = common.dir.join(machine);
        let credential =
            prepare(common, machine, &folder).map_err(StageError::setup("a machine's folder"))?;
        let socket = folder.join("fill.sock");
        let client = common.around.client.as_ref();
        let own = rustix::process::geteuid().as_raw();
        let (engine, node) = match machine {
            DB => ("engine-db1", "node-db1"),
            _ => ("engine-web1", "node-web1"),
        };

        let mut command = Command::new(common.program);
        command.args(["engine", "--node", machine, "--servers", common.servers, "--pin", common.pin]);
        command.arg("--credentials").arg(common.site.path_of(&Account::Engine { node: machine.to_owned() }));
        command.arg("--root").arg(folder.join("root")).arg("--commands").arg(folder.join("commands"));
        command.arg("--socket").arg(&socket).arg("--state").arg(folder.join("engine"));
        command.arg("--client").arg(client.map_or_else(|| own.to_string(), |client| client.name.clone()));
        if common.around.manager == Some(Manager::User) {
            command.arg("--user-units");
        }
        self.0.push(Running::start(engine, command, common.dir, false)?);
        self.socket(&socket).await?;

        let mut command = Command::new(common.program);
        command.args(["node", "--node", machine, "--servers", common.servers, "--pin", common.pin]);
        command.arg("--credentials").arg(credential);
        command.arg("--socket").arg(&socket).arg("--state").arg(folder.join("client"));
        match client {
            Some(client) => {
                command.uid(client.uid).gid(client.gid);
            }
            // Nobody else is here to run it as.
            None if own == 0 => {
                command.arg("--allow-root");
            }
            None => {}
        }
        self.0.push(Running::start(node, command, common.dir, false)?);
        Ok(())
    }

    /// Waits until the program that was started last listens.
    async fn socket(&mut self, socket: &Path) -> Result<(), StageError> {
        let Some(last) = self.0.last_mut() else { return Ok(()) };
        let end = Instant::now() + SOCKET_LIMIT;
        while !socket.exists() {
            tokio::select! {
                how = last.ended() => return Err(StageError::Ended { how, log: last.tail(20) }),
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
            if Instant::now() > end {
                let what = "a program did not begin to listen";
                return Err(StageError::NotReady { what, log: last.tail(20) });
            }
        }
        Ok(())
    }

    /// Completes when one of them ends by itself, which none of them should.
    pub(super) async fn ended(&mut self) -> StageError {
        let (how, which, _) = select_all(self.0.iter_mut().map(|program| Box::pin(program.ended()))).await;
        let log = self.0.get(which).map(|program| program.tail(20)).unwrap_or_default();
        StageError::Ended { how, log }
    }

    /// The last lines of each, for who asks why something was not seen.
    pub(super) fn last_words(&self, lines: usize) -> Vec<String> {
        self.0.iter().flat_map(|program| program.tail(lines)).collect()
    }

    /// Ends all of them.
    pub(super) async fn stop(&mut self) {
        while let Some(mut program) = self.0.pop() {
            program.stop(GRACE).await;
        }
    }
}

/// Makes a machine's folders and hands the client its credential; where that lies.
fn prepare(common: &Common<'_>, machine: &str, folder: &Path) -> std::io::Result<PathBuf> {
    for name in ["root", "commands", "client", "credentials"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let command = folder.join("commands/reload-web");
    if machine == WEB {
        let told = folder.join("told");
        fs::write(&command, format!("#!/bin/sh\necho told >> '{}'\n", told.display()))?;
        fs::set_permissions(&command, Permissions::from_mode(0o755))?;
    }
    let credential = folder.join("credentials/provisioner-broker");
    fs::copy(common.site.path_of(&Account::Provisioner { node: machine.to_owned() }), &credential)?;
    fs::set_permissions(&credential, Permissions::from_mode(0o600))?;
    fs::set_permissions(folder.join("client"), Permissions::from_mode(0o700))?;
    if let Some(client) = &common.around.client {
        for path in [&credential, &folder.join("client"), &folder.join("credentials")] {
            chown(path, Some(client.uid), Some(client.gid))?;
        }
    }
    Ok(credential)
}
