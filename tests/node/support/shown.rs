//! What the programs tell whoever asks: their numbers, and what is shown to people and scripts.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use nkeys::{KeyPair, KeyPairType};
use serde_json::Value;

use super::bus::SEED;
use super::{Program, Site};

/// How long a program that is stopped where it is may keep us waiting.
const LIMIT: Duration = Duration::from_secs(5);

impl Program {
    /// Its page of numbers; none when it runs no more or never told any.
    pub fn numbers(&self) -> Option<String> {
        let log = self.log();
        let told = log.lines().rev().find(|line| line.contains("numbers are told"))?;
        let told: Value = serde_json::from_str(told).ok()?;
        let address = told.get("address").or_else(|| told["fields"].get("address"))?.as_str()?.to_owned();
        let mut page = TcpStream::connect(address).ok()?;
        page.set_read_timeout(Some(LIMIT)).unwrap();
        page.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        page.read_to_string(&mut text).ok()?;
        text.starts_with("HTTP/1.0 200").then_some(text)
    }
}

impl Site {
    /// Runs a verb of ours in the site's folder.
    pub fn verb(&self, verb: &[&str], more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.args(verb).args(more).env_remove("QM_MESH_SERVERS").current_dir(self.dir()).output().unwrap()
    }

    /// Runs a verb of the mesh's operator, who has the controller's key and every account.
    pub fn mesh(&self, verb: &[&str]) -> Output {
        let folder = self.at("mesh");
        if !folder.exists() {
            fs::create_dir_all(folder.join("accounts")).unwrap();
            let seed = KeyPair::new_from_raw(KeyPairType::User, SEED).unwrap().seed().unwrap();
            fs::write(folder.join("controller.nk"), seed).unwrap();
            for account in self.accounts() {
                let name = account.name();
                symlink(self.broker.credentials(account), folder.join("accounts").join(name)).unwrap();
            }
        }
        self.verb(&["mesh", "--site", "mesh", "--servers", &self.broker.address()], verb)
    }

    /// What `node status --json` shows of a machine.
    pub fn node_status(&self, state: &Path) -> Output {
        self.verb(&["node", "status", "--json", "--state"], &[state.to_str().unwrap()])
    }

    /// Everything that is told to whoever asks now, by what it is; what runs no more tells nothing.
    pub fn told(&self) -> BTreeMap<String, Vec<u8>> {
        let mut told = BTreeMap::new();
        for program in self.programs() {
            if let Some(page) = program.numbers() {
                told.insert(format!("the numbers of process {}", program.pid()), page.into_bytes());
            }
        }
        let mut add = |what: String, output: Output| {
            told.insert(what, [output.stdout, output.stderr].concat());
        };
        for machine in &self.machines {
            if machine.client.is_some() {
                add(format!("the status of {}", machine.name), self.node_status(&machine.state()));
            }
            let state = machine.dir().join("engine");
            let state = state.to_str().unwrap();
            add(
                format!("the status of the engine of {}", machine.name),
                self.verb(&["engine", "status", "--json", "--state"], &[state]),
            );
        }
        add(
            "the list of the vault".to_owned(),
            self.verb(&["vault", "list", "--json"], &["--socket", "vault.sock"]),
        );
        add("what the mesh shows".to_owned(), self.mesh(&["show", "--json"]));
        told
    }
}
