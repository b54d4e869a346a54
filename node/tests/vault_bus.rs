//! The vault on a real broker with the accounts of the table.

#![cfg(test)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{HeaderMap, jetstream};
use ed25519_dalek::SigningKey;
use quartermaster_node::client::bus::Bus;
use quartermaster_node::sealed::BoxKey;
use quartermaster_node::vault::Value;
use quartermaster_node::vault::service::{
    AdminClient, AdminReply, AdminRequest, AdminValue, ServiceError, Settings, run,
};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::plan::Digest;
use quartermaster_proto::mesh::signature::{HEADER, PublicNkey, sign};
use quartermaster_proto::mesh::vault::{GetReply, GetRequest, SecretChanged};
use quartermaster_proto::time::WallClock;
use support::Broker;
use tokio::sync::oneshot;
use zeroize::Zeroizing;

mod support;

/// The seed of the controller's signing key.
const SEED: [u8; 32] = [7; 32];
const CANARY: &str = "canary-7f3a9c";
const NAME: &str = "own/forge/pw";

fn client_account() -> Account {
    Account::Provisioner { node: "web1".to_owned() }
}

struct Site {
    broker: Broker,
    folder: tempfile::TempDir,
    controller: jetstream::Context,
    client: Bus,
    key: BoxKey,
}

struct Vault {
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<Result<(), ServiceError>>,
}

impl Vault {
    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }
}

impl Site {
    async fn start() -> Option<Self> {
        let broker = Broker::start(&[Account::Controller, Account::Vault, client_account()])?;
        let bus = broker.connect(&Account::Controller).await;
        let controller = jetstream::new(bus.client().clone());
        let bucket = jetstream::kv::Config { bucket: key::ASSIGNMENTS.to_owned(), ..Default::default() };
        controller.create_key_value(bucket).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let site = Self {
            client: broker.connect(&client_account()).await,
            broker,
            folder,
            controller,
            key: BoxKey::generate(),
        };
        fs::write(site.at("key"), [1; 32]).unwrap();
        fs::set_permissions(site.at("key"), fs::Permissions::from_mode(0o600)).unwrap();
        Some(site)
    }

    async fn make_stream(&self) {
        let stream = jetstream::stream::Config {
            name: key::CHANGED_STREAM.to_owned(),
            subjects: vec![format!("{}.>", key::SECRET_CHANGED)],
            max_messages_per_subject: 1,
            ..Default::default()
        };
        self.controller.create_stream(stream).await.unwrap();
    }

    fn at(&self, rest: &str) -> PathBuf {
        self.folder.path().join(rest)
    }

    async fn vault(&self) -> Vault {
        let settings = Settings {
            store: self.at("store"),
            key_file: self.at("key"),
            audit: self.at("audit"),
            rules: None,
            socket: self.at("vault.sock"),
            bus: self.broker.settings(&Account::Vault),
            pins: vec![PublicNkey::user(SigningKey::from_bytes(&SEED).verifying_key().to_bytes())],
        };
        let (stop, stopped) = oneshot::channel();
        let clock = Arc::new(|| WallClock::from_seconds(1_795_975_200));
        let ended = actix::spawn(run(settings, clock, async move {
            let _ = stopped.await;
        }));
        while !self.at("vault.sock").exists() {
            assert!(!ended.is_finished(), "the vault did not start");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Vault { stop, ended }
    }

    async fn assign(&self, secret: &str) -> u64 {
        let text = format!(
            r#"{{"node":"web1","module":"forge","provisioning":{{"templates":{{"reference":"file:/t","digest":"{}"}},"secrets":[{{"name":"{secret}"}}]}}}}"#,
            Digest::of(b""),
        );
        let subject = key::kv_subject(key::ASSIGNMENTS, "web1.forge");
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, sign(&SEED, &subject, text.as_bytes()).as_str());
        let ack = self.controller.publish_with_headers(subject, headers, text.into()).await.unwrap();
        ack.await.unwrap().sequence
    }

    async fn get(&self, revision: u64) -> Option<GetReply> {
        let request = GetRequest { name: NAME.parse().unwrap(), key: self.key.public(), revision };
        let subject = format!("{}.{}", key::VAULT_GET, client_account().name());
        let asked = self.client.client().request(subject, request.encode().into());
        let reply = tokio::time::timeout(Duration::from_secs(5), asked).await.ok()?.ok()?;
        assert!(!reply.payload.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
        Some(GetReply::read(&reply.payload).unwrap())
    }

    /// Asks until the vault answers: at its start its mirror is not whole yet, and nobody may hear requests.
    async fn answer(&self, revision: u64) -> GetReply {
        loop {
            if let Some(reply) = self.get(revision).await {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn open(&self, reply: &GetReply) -> (String, u64) {
        let GetReply::Sealed { sealed, version } = reply else { panic!("{reply:?}") };
        (String::from_utf8(self.key.open(sealed).unwrap().to_vec()).unwrap(), *version)
    }

    async fn admin(&self, request: AdminRequest) -> AdminReply {
        let socket = self.at("vault.sock");
        tokio::task::spawn_blocking(move || AdminClient::connect(&socket).unwrap().ask(&request).unwrap())
            .await
            .unwrap()
    }

    async fn set(&self, value: &str) -> u64 {
        let value = AdminValue(Value::new(Zeroizing::new(value.as_bytes().to_vec())));
        let AdminReply::Version(version) =
            self.admin(AdminRequest::Set { name: NAME.to_owned(), value }).await
        else {
            panic!("it was not set")
        };
        version
    }

    /// The latest word that the secret changed.
    async fn said(&self) -> Option<SecretChanged> {
        let stream = self.controller.get_stream(key::CHANGED_STREAM).await.ok()?;
        let subject = key::secret_changed_subject(key::SECRET_CHANGED, &client_account().name(), NAME);
        let message = stream.get_last_raw_message_by_subject(&subject).await.ok()?;
        Some(SecretChanged::read(&message.payload).unwrap())
    }
}

/// T20, T23 (vault): absent, then sealed to the asker's key, then rotated; only boxes cross the bus.
#[actix::test]
async fn t20_t23_a_secret_is_sealed_to_whom_the_plan_names_and_its_changes_are_said() {
    let Some(site) = Site::start().await else { return };
    site.make_stream().await;
    let vault = site.vault().await;
    // A plan that the vault has not seen yet when it is asked: it waits instead of refusing.
    let revision = site.assign("pw").await;
    assert!(matches!(site.answer(revision).await, GetReply::Absent { .. }));
    let version = site.set(CANARY).await;
    assert_eq!(site.open(&site.answer(revision).await), (CANARY.to_owned(), version));
    let rotated = site.admin(AdminRequest::Rotate { name: NAME.to_owned(), random: 32 }).await;
    let AdminReply::Version(rotated) = rotated else { panic!("{rotated:?}") };
    assert!(rotated > version);
    while site.said().await.is_none_or(|said| said.version < rotated) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (value, second) = site.open(&site.answer(revision).await);
    assert_eq!((value.len(), second), (43, rotated));
    let listed = site.admin(AdminRequest::List).await;
    assert_eq!(listed, AdminReply::Values(vec![(NAME.to_owned(), rotated)]));

    let revision = site.assign("other").await;
    assert!(matches!(site.answer(revision).await, GetReply::Refused { .. }));
    vault.stop().await;
    let audit = fs::read_to_string(site.at("audit")).unwrap();
    assert!(!audit.contains(CANARY) && audit.contains("\"outcome\":\"refused\""));
    assert!(!fs::read(site.at("store")).unwrap().windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
}

/// T53 (vault): what changed while nobody kept it is said after a restart.
#[actix::test]
async fn t53_a_change_that_could_not_be_said_is_said_after_a_restart() {
    let Some(site) = Site::start().await else { return };
    let vault = site.vault().await;
    let revision = site.assign("pw").await;
    site.answer(revision).await;
    let version = site.set(CANARY).await;
    vault.stop().await;
    site.make_stream().await;
    let vault = site.vault().await;
    while site.said().await.is_none_or(|said| said.version != version) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(site.open(&site.answer(revision).await), (CANARY.to_owned(), version));
    vault.stop().await;
}

/// D21: an answer goes into an inbox or nowhere, and the audit says so.
#[actix::test]
async fn t58_an_answer_goes_into_an_inbox_or_nowhere() {
    let Some(site) = Site::start().await else { return };
    let vault = site.vault().await;
    let revision = site.assign("pw").await;
    site.answer(revision).await;
    let request = GetRequest { name: NAME.parse().unwrap(), key: site.key.public(), revision };
    let subject = format!("{}.{}", key::VAULT_GET, client_account().name());
    let elsewhere = key::kv_subject(key::ASSIGNMENTS, "web1.forge");
    site.client.client().publish_with_reply(subject, elsewhere, request.encode().into()).await.unwrap();
    while !fs::read_to_string(site.at("audit")).unwrap().contains("\"outcome\":\"dropped\"") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    vault.stop().await;
}
