//! A mesh in one process: a broker with the accounts' rights, the vault, and machines with engine and client, each with its root.

use std::{
    collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc, time::Duration,
};

use async_nats::{HeaderMap, Subscriber, jetstream};
use ed25519_dalek::SigningKey;
use futures::StreamExt as _;
use quartermaster_node::{
    client::service::{self as client, NodeError, NodeMetrics, Running, Status, ask_status},
    engine::service::{self as engine, EngineError, Source},
    vault::Value,
    vault::service::{self as vault, AdminClient, AdminReply, AdminRequest, AdminValue, ServiceError},
};
use quartermaster_proto::{
    mesh::{
        accounts::Account,
        key,
        plan::Digest,
        registry::Entry,
        report::Report,
        signature::{HEADER, PublicNkey, sign},
    },
    time::WallClock,
};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};
use zeroize::Zeroizing;

use super::Broker;

/// The seed of the controller's signing key.
pub const SEED: [u8; 32] = [7; 32];
/// Longest wait for something that is awaited.
const PATIENCE: Duration = Duration::from_secs(90);

/// A program that runs until it is told to stop.
pub struct Program<E> {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), E>>,
}

impl<E: std::fmt::Debug> Program<E> {
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }
}

pub struct Site {
    pub broker: Broker,
    folder: TempDir,
    pub controller: jetstream::Context,
    configurer: jetstream::Context,
    reports: Subscriber,
    serial: u64,
}

impl Site {
    /// A mesh of these machines: the buckets are there, the registry is signed, nothing runs.
    pub async fn start(nodes: &[&str]) -> Option<Self> {
        let mut accounts = vec![Account::Controller, Account::Vault, Account::Config];
        for node in nodes {
            let node = || (*node).to_owned();
            accounts.extend([
                Account::Provisioner { node: node() },
                Account::Engine { node: node() },
                Account::ToolRunner { node: node() },
                Account::Provider { node: node(), module: "postgres".to_owned() },
            ]);
        }
        let broker = Broker::start(&accounts)?;
        let bus = broker.connect(&Account::Controller).await;
        let reports = bus.client().subscribe("prov.applied.>").await.unwrap();
        let controller = jetstream::new(bus.client().clone());
        let configurer = jetstream::new(broker.connect(&Account::Config).await.client().clone());
        let buckets = [key::ASSIGNMENTS, key::REGISTRY, key::NEEDS, key::COLLECT, key::APPLIED, key::CONFIG];
        for bucket in buckets.into_iter().chain(["postgres_bound"]) {
            let bucket = jetstream::kv::Config { bucket: bucket.to_owned(), ..Default::default() };
            controller.create_key_value(bucket).await.unwrap();
        }
        let stream = jetstream::stream::Config {
            name: key::CHANGED_STREAM.to_owned(),
            subjects: vec![format!("{}.>", key::SECRET_CHANGED)],
            max_messages_per_subject: 1,
            ..Default::default()
        };
        controller.create_stream(stream).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let site = Self { broker, folder, controller, configurer, reports, serial: 0 };
        for entry in Entry::defaults(None) {
            let subject = key::kv_subject(key::REGISTRY, entry.kind.as_str());
            site.put_signed(subject, entry.encode()).await;
        }
        fs::write(site.at("vault.key"), [1; 32]).unwrap();
        fs::set_permissions(site.at("vault.key"), fs::Permissions::from_mode(0o600)).unwrap();
        for node in nodes {
            fs::create_dir_all(site.root(node)).unwrap();
        }
        Some(site)
    }

    pub fn at(&self, rest: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(rest)
    }

    /// The folder below which a machine's files lie.
    pub fn root(&self, node: &str) -> PathBuf {
        self.at(node).join("root")
    }

    pub fn pin() -> PublicNkey {
        PublicNkey::user(SigningKey::from_bytes(&SEED).verifying_key().to_bytes())
    }

    /// Puts a value with the controller's signature; answers its revision.
    pub async fn put_signed(&self, subject: String, body: Vec<u8>) -> u64 {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, sign(&SEED, &subject, &body).as_str());
        let ack = self.controller.publish_with_headers(subject, headers, body.into()).await.unwrap();
        ack.await.unwrap().sequence
    }

    /// Makes an archive of templates; answers the member of a plan that names it.
    pub fn templates(&self, name: &str, templates: &[(&str, &str)]) -> String {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, text) in templates {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        let bytes = archive.into_inner().unwrap();
        let file = self.at(&format!("{name}.tar"));
        fs::write(&file, &bytes).unwrap();
        format!(r#""templates":{{"reference":"file:{}","digest":"{}"}}"#, file.display(), Digest::of(&bytes))
    }

    /// Assigns a module with a plan of these members; answers the revision.
    pub async fn assign(&mut self, node: &str, module: &str, members: &str) -> u64 {
        self.assign_raw(node, module, &format!(r#","provisioning":{{{members}}}"#)).await
    }

    /// Assigns a module; what follows its serial is given.
    pub async fn assign_raw(&mut self, node: &str, module: &str, rest: &str) -> u64 {
        self.serial += 1;
        let text = format!(r#"{{"node":"{node}","module":"{module}","serial":{}{rest}}}"#, self.serial);
        let key = key::module_key(node, module).unwrap();
        self.put_signed(key::kv_subject(key::ASSIGNMENTS, &key), text.into_bytes()).await
    }

    pub async fn unassign(&self, node: &str, module: &str) {
        let bucket = self.controller.get_key_value(key::ASSIGNMENTS).await.unwrap();
        bucket.delete(key::module_key(node, module).unwrap()).await.unwrap();
    }

    /// Sets a config value, as mesh-config.
    pub async fn config(&self, node: &str, module: &str, name: &str, json: &str) {
        let key = key::config_key(node, module, name).unwrap();
        let subject = key::kv_subject(key::CONFIG, &key);
        let ack = self.configurer.publish(subject, json.to_owned().into()).await.unwrap();
        ack.await.unwrap();
    }

    /// What lies in a bucket, by key.
    pub async fn bucket(&self, name: &str) -> BTreeMap<String, String> {
        let bucket = self.controller.get_key_value(name).await.unwrap();
        let mut keys = bucket.keys().await.unwrap();
        let mut found = BTreeMap::new();
        while let Some(Ok(key)) = keys.next().await {
            if let Some(value) = bucket.get(&key).await.unwrap() {
                found.insert(key, String::from_utf8(value.to_vec()).unwrap());
            }
        }
        found
    }

    /// The next report of a module for which this holds.
    pub async fn report(&mut self, module: &str, is: impl Fn(&Report) -> bool) -> Report {
        let mut heard = Vec::new();
        let wait = async {
            while let Some(message) = self.reports.next().await {
                let report = Report::read(&message.payload).unwrap();
                if report.module == module && is(&report) {
                    return Some(report);
                }
                heard.push(report);
            }
            None
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(Some(report)) => report,
            _ => panic!("no such report of {module} came, but {heard:#?}"),
        }
    }

    /// The next report of a module that says this state.
    pub async fn reported(&mut self, module: &str, state: &str) -> Report {
        self.report(module, |report| report.outcome.as_str() == state).await
    }

    pub async fn engine(&self, node: &str) -> Program<EngineError> {
        let settings = engine::Settings {
            node: node.to_owned(),
            state: self.at(node).join("engine"),
            socket: self.at(node).join("fill.sock"),
            roots: vec![self.root(node).to_str().unwrap().to_owned()],
            commands: None,
            client: rustix::process::geteuid().as_raw().to_string(),
            source: Source::Mirror {
                bus: self.broker.settings(&Account::Engine { node: node.to_owned() }),
                pins: vec![Self::pin()],
            },
            user_units: false,
            metrics: None,
        };
        let program = begin(|stop| engine::run(settings, |_| (), stop));
        until(&program, || self.at(node).join("fill.sock").exists()).await;
        program
    }

    pub async fn vault(&self) -> Program<ServiceError> {
        let settings = vault::Settings {
            store: self.at("vault.store"),
            key_file: self.at("vault.key"),
            audit: self.at("vault.audit"),
            rules: None,
            socket: self.at("vault.sock"),
            bus: self.broker.settings(&Account::Vault),
            pins: vec![Self::pin()],
            kv: None,
            metrics: None,
        };
        let clock = Arc::new(|| WallClock::from_seconds(1_795_975_200));
        let program = begin(|stop| vault::run(settings, clock, |_| (), stop));
        until(&program, || self.at("vault.sock").exists()).await;
        program
    }

    /// Stores a value with the vault.
    pub async fn store(&self, name: &str, value: &str) {
        let value = AdminValue(Value::new(Zeroizing::new(value.as_bytes().to_vec())));
        let request = AdminRequest::Set { name: name.to_owned(), value };
        let socket = self.at("vault.sock");
        let asked = tokio::task::spawn_blocking(move || AdminClient::connect(&socket)?.ask(&request));
        assert!(matches!(asked.await.unwrap().unwrap(), AdminReply::Version(_)));
    }

    pub fn client_settings(&self, node: &str) -> client::Settings {
        let bus = self.broker.settings(&Account::Provisioner { node: node.to_owned() });
        client::Settings {
            node: node.to_owned(),
            servers: bus.servers,
            credentials: bus.credentials.unwrap(),
            pins: vec![Self::pin()],
            socket: self.at(node).join("fill.sock"),
            state: self.at(node).join("client"),
            allow_root: true,
            pace: 1,
        }
    }

    pub async fn client(&self, node: &str) -> (Program<NodeError>, Running) {
        self.client_with_clock(node, now).await
    }

    pub async fn client_with_clock(
        &self,
        node: &str,
        clock: impl Fn() -> WallClock + Send + Sync + 'static,
    ) -> (Program<NodeError>, Running) {
        let settings = self.client_settings(node);
        let (told, begun) = oneshot::channel();
        let program = begin(|stop| {
            let begun = |running| drop(told.send(running));
            client::run(settings, NodeMetrics::new().unwrap(), Arc::new(clock), begun, stop)
        });
        match begun.await {
            Ok(running) => (program, running),
            Err(error) => panic!("{error}: the client did not start: {:?}", program.ended.await),
        }
    }

    /// Where a machine's modules stand.
    pub async fn status(&self, node: &str) -> Status {
        let state = self.at(node).join("client");
        tokio::task::spawn_blocking(move || ask_status(&state)).await.unwrap().unwrap()
    }
}

pub fn now() -> WallClock {
    let nanos = time::OffsetDateTime::now_utc().unix_timestamp_nanos();
    WallClock::from_nanos(i64::try_from(nanos).unwrap())
}

fn begin<E: 'static, F: Future<Output = Result<(), E>> + 'static>(
    run: impl FnOnce(std::pin::Pin<Box<dyn Future<Output = ()>>>) -> F,
) -> Program<E> {
    let (stop, stopped) = oneshot::channel();
    let stopped = Box::pin(async move { drop(stopped.await) });
    Program { stop, ended: actix::spawn(run(stopped)) }
}

async fn until<E>(program: &Program<E>, is: impl Fn() -> bool) {
    while !is() {
        assert!(!program.ended.is_finished(), "the program did not start");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
