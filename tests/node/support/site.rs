//! A whole mesh: broker, vault, machines, and everything the controller and the owners of values write.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use ed25519_dalek::SigningKey;
use quartermaster_node::sealed::seal;
use quartermaster_node::vault::service::{AdminClient, AdminReply, AdminRequest};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::registry::Entry;
use quartermaster_proto::mesh::signature::PublicNkey;
use quartermaster_proto::mesh::vault::{PutReply, PutRequest};
use serde_json::Value;
use tempfile::TempDir;

use super::bus::{Bus, SEED};
use super::{ANY_PORT, Broker, Canary, Machine, Module, Program, Tap, eventually, eventually_async};

/// What a site begins with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its machines; the programs of none run yet.
    pub nodes: Vec<&'static str>,
    /// Providers, each on a machine.
    pub providers: Vec<(&'static str, &'static str)>,
    /// How many times faster than real the clock of the clients runs.
    pub pace: u32,
    /// Lines of the vault's own rules.
    pub rules: Option<&'static str>,
    /// What the vault is started with besides.
    pub vault: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { nodes: vec!["web1"], providers: vec![], pace: 1, rules: None, vault: vec![] }
    }
}

/// A mesh of a test's own.
pub struct Site {
    // Programs first: they end before the folder goes.
    /// The machines, in the order of the options.
    pub machines: Vec<Machine>,
    vault: Option<Program>,
    vault_also: Vec<String>,
    /// The broker.
    pub broker: Broker,
    /// Everything that crosses the bus.
    pub tap: Tap,
    /// The bus as whoever may do everything.
    pub bus: Bus,
    /// Secrets, and where they may be.
    pub canary: Canary,
    accounts: Vec<Account>,
    serial: AtomicU64,
    dir: TempDir,
}

impl Site {
    /// A broker with all buckets, a registry and a running vault; nothing assigned, no machine running.
    pub async fn start(options: Options) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut accounts = vec![Account::Vault, Account::Config, Account::Controller];
        for node in &options.nodes {
            let node = || (*node).to_owned();
            accounts.push(Account::Provisioner { node: node() });
            accounts.push(Account::Engine { node: node() });
            accounts.push(Account::ToolRunner { node: node() });
        }
        for (node, module) in &options.providers {
            accounts.push(Account::Provider { node: (*node).to_owned(), module: (*module).to_owned() });
        }
        let folder = dir.path().join("broker");
        let broker = Broker::start(&folder, &accounts)?;
        let client = broker.connect_tester().await;
        let tap = Tap::start(&client).await;
        let bus = Bus::new(client);
        for bucket in [key::ASSIGNMENTS, key::REGISTRY, key::NEEDS, key::COLLECT, key::APPLIED, key::CONFIG] {
            bus.make_bucket(bucket).await;
        }
        bus.make_templates().await;
        bus.make_stream(key::CHANGED_STREAM, vec![format!("{}.>", key::SECRET_CHANGED)]).await;
        let pin = Self::pin();
        let machines = options
            .nodes
            .iter()
            .map(|node| {
                let own = dir.path().join(node);
                Machine::new(node, &own, &broker.address(), &pin, &folder, options.pace)
            })
            .collect();
        let mut site = Self {
            machines,
            vault: None,
            vault_also: options.vault,
            broker,
            tap,
            bus,
            canary: Canary::default(),
            accounts,
            serial: AtomicU64::new(1),
            dir,
        };
        fs::write(site.at("vault.key"), [1; 32]).unwrap();
        fs::set_permissions(site.at("vault.key"), fs::Permissions::from_mode(0o600)).unwrap();
        if let Some(rules) = options.rules {
            fs::write(site.at("rules"), rules).unwrap();
        }
        let init = site.vault_verb(&["init"], &["--store", "store", "--key-file", "vault.key"], b"");
        assert!(init.status.success(), "{init:?}");
        let box_key = String::from_utf8(init.stdout).unwrap().trim().to_owned();
        for entry in Entry::defaults(Some(&box_key)) {
            site.register(&entry).await;
        }
        site.start_vault().await;
        Some(site)
    }

    /// A site of these machines whose programs all run, its clients' clocks so many times faster.
    pub async fn running(nodes: &[&'static str], pace: u32) -> Option<Self> {
        let mut site = Self::start(Options { nodes: nodes.to_vec(), pace, ..Options::default() }).await?;
        site.start_machines().await;
        Some(site)
    }

    /// Starts engine and client of every machine.
    pub async fn start_machines(&mut self) {
        for machine in &mut self.machines {
            machine.start().await;
        }
    }

    /// The controller's public key.
    pub fn pin() -> String {
        PublicNkey::user(SigningKey::from_bytes(&SEED).verifying_key().to_bytes()).to_string()
    }

    /// The site's folder.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A place in the site's folder.
    pub fn at(&self, rest: &str) -> PathBuf {
        self.dir.path().join(rest)
    }

    /// The first machine.
    pub fn web1(&self) -> &Machine {
        &self.machines[0]
    }

    /// The first machine.
    pub fn web1_mut(&mut self) -> &mut Machine {
        &mut self.machines[0]
    }

    /// The second machine.
    pub fn web2(&self) -> &Machine {
        &self.machines[1]
    }

    fn machine(&self, node: &str) -> &Machine {
        self.machines.iter().find(|machine| machine.name == node).unwrap()
    }

    /// All accounts, for a broker that is configured anew.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Writes an entry of the registry.
    pub async fn register(&self, entry: &Entry) {
        let body = String::from_utf8(entry.encode()).unwrap();
        self.bus.put_signed(key::REGISTRY, entry.kind.as_str(), &body).await;
    }

    /// Publishes a module's templates and assigns it; answers the revision.
    pub async fn assign(&self, module: &Module) -> u64 {
        self.bus.put_object(&module.object(), &module.bytes()).await;
        self.assign_only(module).await
    }

    /// Assigns a module whose templates are, or will be, elsewhere.
    pub async fn assign_only(&self, module: &Module) -> u64 {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let key = key::module_key(&module.node, &module.name).unwrap();
        self.bus.put_signed(key::ASSIGNMENTS, &key, &module.assignment(serial).to_string()).await
    }

    /// Puts any text as the assignment of this key, signed.
    pub async fn assign_text(&self, key: &str, text: &str) -> u64 {
        self.bus.put_signed(key::ASSIGNMENTS, key, text).await
    }

    /// The next serial of an assignment.
    pub fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a module off.
    pub async fn unassign(&self, node: &str, module: &str) {
        self.bus.delete(key::ASSIGNMENTS, &key::module_key(node, module).unwrap()).await;
    }

    /// Sets a config value, as it is stored.
    pub async fn config(&self, node: &str, module: &str, name: &str, stored: &str) {
        let key = key::config_key(node, module, name).unwrap();
        self.bus.put(key::CONFIG, &key, stored.to_owned()).await;
    }

    /// Removes a config value.
    pub async fn no_config(&self, node: &str, module: &str, name: &str) {
        self.bus.delete(key::CONFIG, &key::config_key(node, module, name).unwrap()).await;
    }

    /// Writes what a provider serves a module.
    pub async fn bind(&self, provider: &str, parts: &[&str], entry: &str) {
        self.bus.put(&key::bound_bucket(provider), &key::key(parts).unwrap(), entry.to_owned()).await;
    }

    /// The report that is kept of a module, in short; empty when there is none.
    pub async fn said(&self, node: &str, module: &str) -> String {
        self.report(node, module).await.map(|report| self.machine(node).short(&report)).unwrap_or_default()
    }

    /// The report that is kept of a module.
    pub async fn report(&self, node: &str, module: &str) -> Option<Value> {
        let body = self.bus.get(key::APPLIED, &key::module_key(node, module).unwrap()).await?;
        Some(serde_json::from_slice(&body).unwrap())
    }

    /// Waits until the kept report says exactly this.
    #[track_caller]
    pub fn says<'a>(
        &'a self,
        node: &'a str,
        module: &'a str,
        wanted: &'a str,
    ) -> impl Future<Output = ()> + use<'a> {
        let said = eventually_async(wanted.to_owned(), move || self.said(node, module));
        async move {
            said.await;
            self.tap.caught_up().await;
        }
    }

    /// Waits until the kept report is of this state; answers it in short.
    #[track_caller]
    pub fn is<'a>(
        &'a self,
        node: &'a str,
        module: &'a str,
        state: &'a str,
    ) -> impl Future<Output = String> + use<'a> {
        let waited = eventually_async(state.to_owned(), move || async move {
            self.said(node, module).await.split(' ').next().unwrap_or_default().to_owned()
        });
        async move {
            waited.await;
            self.tap.caught_up().await;
            self.said(node, module).await
        }
    }

    /// What was published of a module's reports from a place on, in short.
    pub fn published(&self, place: usize, node: &str, module: &str) -> Vec<String> {
        let subject = key::applied_subject(node, module);
        let machine = self.machine(node);
        let heard = self.tap.since(place, &subject);
        heard.iter().filter(|one| one.subject == subject).map(|one| machine.short(&one.json())).collect()
    }

    /// The needs that are recorded for a module: kind and name of each.
    pub async fn needs(&self, node: &str, module: &str) -> Vec<String> {
        let prefix = format!("{}.", key::module_key(node, module).unwrap());
        let found = self.bus.entries(key::NEEDS, &prefix).await;
        found.into_keys().map(|key| key[prefix.len()..].to_owned()).collect()
    }

    /// How the vault is started.
    pub fn vault_arguments(&self) -> Vec<String> {
        let text = |name: &str| self.at(name).to_str().unwrap().to_owned();
        let credentials = self.broker.credentials(&Account::Vault).to_str().unwrap().to_owned();
        let mut arguments =
            vec!["--servers".to_owned(), self.broker.address(), "--credentials".to_owned(), credentials];
        for (name, file) in [
            ("--store", "store"),
            ("--key-file", "vault.key"),
            ("--audit", "audit"),
            ("--socket", "vault.sock"),
        ] {
            arguments.extend([name.to_owned(), text(file)]);
        }
        if self.at("rules").exists() {
            arguments.extend(["--rules".to_owned(), text("rules")]);
        }
        arguments.extend(["--metrics".to_owned(), ANY_PORT.to_owned()]);
        arguments.extend(["--pin".to_owned(), Self::pin()]);
        arguments.extend(self.vault_also.iter().cloned());
        arguments
    }

    /// Starts the vault and waits until it listens to operators.
    pub async fn start_vault(&mut self) {
        let arguments = self.vault_arguments();
        let _ = fs::remove_file(self.at("vault.sock"));
        let mut vault = Program::quartermaster("vault", &arguments, &[], self.dir.path());
        let socket = self.at("vault.sock");
        eventually("the vault listens", || {
            vault.assert_running();
            socket.exists().then_some(())
        })
        .await;
        self.vault = Some(vault);
    }

    /// Kills the vault.
    pub fn kill_vault(&mut self) {
        self.vault = None;
    }

    /// Stops the vault, so that its store is closed in order.
    pub async fn stop_vault(&mut self) {
        if let Some(vault) = self.vault.take() {
            vault.stop().await;
        }
    }

    /// The vault, while it runs.
    pub fn vault(&self) -> Option<&Program> {
        self.vault.as_ref()
    }

    fn vault_verb(&self, verb: &[&str], more: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.arg("vault").args(verb).args(more).current_dir(self.dir.path());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs a verb of a running vault; answers what it printed.
    #[track_caller]
    pub fn ask_vault(&self, verb: &[&str], input: &[u8]) -> String {
        let run = self.vault_verb(verb, &["--socket", "vault.sock"], input);
        assert!(run.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    }

    /// Stores a secret, which from here on is looked for wherever it may not be.
    #[track_caller]
    pub fn store(&mut self, name: &str, value: &[u8]) -> u64 {
        self.canary.watch(name, value);
        let said = self.ask_vault(&["set", name], value);
        said.trim().strip_prefix("version ").unwrap().parse().unwrap()
    }

    /// Stores a secret that is watched for already; answers whether the vault said that it did.
    pub fn try_store(&self, name: &str, value: &[u8]) -> bool {
        self.vault_verb(&["set", name], &["--socket", "vault.sock"], value).status.success()
    }

    /// Has the vault make another value of a secret.
    #[track_caller]
    pub fn rotate(&self, name: &str) -> u64 {
        let said = self.ask_vault(&["rotate", name], b"");
        said.trim().strip_prefix("version ").unwrap().parse().unwrap()
    }

    /// Asks the vault over its socket, as its verbs do, without a process for each.
    pub fn admin(&self, request: &AdminRequest) -> AdminReply {
        AdminClient::connect(&self.at("vault.sock")).unwrap().ask(request).unwrap()
    }

    /// Deposits a credential as a provider's helper does; answers what the vault says.
    pub async fn deposit(&mut self, node: &str, provider: &str, name: &str, value: &[u8]) -> PutReply {
        self.canary.watch(name, value);
        let AdminReply::BoxKey(key) = self.admin(&AdminRequest::Key) else { panic!("the vault has no key") };
        let key = base64::engine::general_purpose::STANDARD.decode(key).unwrap();
        let sealed = seal(&key.try_into().unwrap(), value).unwrap();
        let request = PutRequest { name: name.parse().unwrap(), sealed };
        let account = Account::Provider { node: node.to_owned(), module: provider.to_owned() };
        let helper = self.broker.connect(&account).await;
        let subject = format!("{}.{}", key::VAULT_PUT, account.name());
        let reply = helper.request(subject, request.encode().into()).await.unwrap();
        PutReply::read(&reply.payload).unwrap()
    }

    /// The audit's lines: operation, account, name, outcome.
    pub fn audit(&self) -> Vec<String> {
        let text = fs::read_to_string(self.at("audit")).unwrap_or_default();
        let word = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        text.lines()
            .map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                ["op", "account", "name", "outcome"].map(|name| word(&line, name)).join(" ")
            })
            .collect()
    }

    /// Every program that was started and not killed.
    pub fn programs(&self) -> Vec<&Program> {
        let machines = self.machines.iter().flat_map(|machine| machine.engine.iter().chain(&machine.client));
        self.vault.iter().chain(machines).collect()
    }

    /// Fails when a secret is anywhere but in the files of the machines it was written to.
    pub fn check_secrets(&self) {
        self.canary.check(self.dir.path(), &self.tap, &self.programs(), self.told());
    }
}
