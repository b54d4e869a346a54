//! A vault on a real broker of its own, with one client account that asks it.
#![allow(dead_code, reason = "several test programs share this and each uses a part of it")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_nats::{HeaderMap, jetstream};
use ed25519_dalek::SigningKey;
use quartermaster_node::{
    client::bus::{Bus, BusSettings},
    sealed::BoxKey,
    vault::{
        Value,
        kv::KvSettings,
        service::{AdminClient, AdminReply, AdminRequest, AdminValue, ServiceError, Settings, run},
    },
};
use quartermaster_proto::{
    mesh::{
        accounts::Account,
        key,
        plan::Digest,
        signature::{HEADER, PublicNkey, sign},
        vault::{GetReply, GetRequest, SecretChanged},
    },
    time::WallClock,
};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use super::Broker;

/// The seed of the controller's signing key.
pub const SEED: [u8; 32] = [7; 32];
pub const CANARY: &str = "canary-7f3a9c";
pub const NAME: &str = "own/forge/pw";

pub fn client_account() -> Account {
    Account::Provisioner { node: "web1".to_owned() }
}

/// A broker, and what is needed to ask a vault there.
pub struct Site {
    pub broker: Broker,
    pub folder: tempfile::TempDir,
    pub controller: jetstream::Context,
    pub client: Bus,
    pub key: BoxKey,
    /// The values are kept there.
    pub kv: Option<KvSettings>,
    /// Another audit than the site's own file.
    pub audit: Option<PathBuf>,
}

/// A running vault.
pub struct Vault {
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<Result<(), ServiceError>>,
}

impl Vault {
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }
}

impl Site {
    pub async fn start() -> Option<Self> {
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
            kv: None,
            audit: None,
        };
        fs::write(site.at("key"), [1; 32]).unwrap();
        fs::set_permissions(site.at("key"), fs::Permissions::from_mode(0o600)).unwrap();
        Some(site)
    }

    pub async fn make_stream(&self) {
        let stream = jetstream::stream::Config {
            name: key::CHANGED_STREAM.to_owned(),
            subjects: vec![format!("{}.>", key::SECRET_CHANGED)],
            max_messages_per_subject: 1,
            ..Default::default()
        };
        self.controller.create_stream(stream).await.unwrap();
    }

    pub fn at(&self, rest: &str) -> PathBuf {
        self.folder.path().join(rest)
    }

    pub async fn vault(&self) -> Vault {
        let settings = self.settings();
        let (stop, stopped) = oneshot::channel();
        let clock = Arc::new(|| WallClock::from_seconds(1_795_975_200));
        let ended = actix::spawn(run(settings, clock, |_| (), async move {
            let _ = stopped.await;
        }));
        while !self.at("vault.sock").exists() {
            assert!(!ended.is_finished(), "the vault did not start");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Vault { stop, ended }
    }

    pub fn settings(&self) -> Settings {
        let bus = self.broker.settings(&Account::Vault);
        let settings = Self::settings_in(self.folder.path(), bus.servers, bus.credentials.unwrap());
        let audit = self.audit.clone().unwrap_or(settings.audit);
        Settings { audit, kv: self.kv.clone(), ..settings }
    }

    /// Settings of a vault in this folder.
    pub fn settings_in(folder: &Path, servers: String, credentials: PathBuf) -> Settings {
        Settings {
            store: folder.join("store"),
            key_file: folder.join("key"),
            audit: folder.join("audit"),
            rules: None,
            socket: folder.join("vault.sock"),
            bus: BusSettings { servers, account: Account::Vault, credentials: Some(credentials) },
            pins: vec![PublicNkey::user(SigningKey::from_bytes(&SEED).verifying_key().to_bytes())],
            kv: None,
            metrics: None,
        }
    }

    /// Assigns the module that has this secret; answers the revision.
    pub async fn assign(&self, secret: &str) -> u64 {
        self.assign_plan(&format!(r#""secrets":[{{"name":"{secret}"}}]"#)).await
    }

    /// Assigns the module with these members of its plan.
    pub async fn assign_plan(&self, members: &str) -> u64 {
        let text = format!(
            r#"{{"node":"web1","module":"forge","provisioning":{{"templates":{{"reference":"file:/t","digest":"{}"}},{members}}}}}"#,
            Digest::of(b""),
        );
        let subject = key::kv_subject(key::ASSIGNMENTS, "web1.forge");
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, sign(&SEED, &subject, text.as_bytes()).as_str());
        let ack = self.controller.publish_with_headers(subject, headers, text.into()).await.unwrap();
        ack.await.unwrap().sequence
    }

    /// Asks once for the secret; none without an answer.
    pub async fn get(&self, revision: u64) -> Option<GetReply> {
        self.get_name(NAME, revision).await
    }

    /// True when there is no answer within a second, in which there would be many.
    pub async fn is_silent(&self, revision: u64) -> bool {
        tokio::time::timeout(Duration::from_secs(1), self.get(revision)).await.ok().flatten().is_none()
    }

    /// Asks once; none without an answer.
    pub async fn get_name(&self, name: &str, revision: u64) -> Option<GetReply> {
        let request = GetRequest { name: name.parse().unwrap(), key: self.key.public(), revision };
        let subject = format!("{}.{}", key::VAULT_GET, client_account().name());
        let asked = self.client.client().request(subject, request.encode().into());
        let reply = tokio::time::timeout(Duration::from_secs(5), asked).await.ok()?.ok()?;
        assert!(!reply.payload.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
        Some(GetReply::read(&reply.payload).unwrap())
    }

    /// Asks until the vault answers: at its start its mirror is not whole yet, and nobody may hear requests.
    pub async fn answer(&self, revision: u64) -> GetReply {
        loop {
            if let Some(reply) = self.get(revision).await {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn open(&self, reply: &GetReply) -> (String, u64) {
        let GetReply::Sealed { sealed, version } = reply else { panic!("{reply:?}") };
        (String::from_utf8(self.key.open(sealed).unwrap().to_vec()).unwrap(), *version)
    }

    pub async fn admin(&self, request: AdminRequest) -> AdminReply {
        let socket = self.at("vault.sock");
        tokio::task::spawn_blocking(move || AdminClient::connect(&socket).unwrap().ask(&request).unwrap())
            .await
            .unwrap()
    }

    pub async fn set(&self, value: &str) -> u64 {
        let value = AdminValue(Value::new(Zeroizing::new(value.as_bytes().to_vec())));
        let AdminReply::Version(version) =
            self.admin(AdminRequest::Set { name: NAME.to_owned(), value }).await
        else {
            panic!("it was not set")
        };
        version
    }

    /// The latest word that the secret changed.
    pub async fn said(&self) -> Option<SecretChanged> {
        let stream = self.controller.get_stream(key::CHANGED_STREAM).await.ok()?;
        let subject = key::secret_changed_subject(key::SECRET_CHANGED, &client_account().name(), NAME);
        let message = stream.get_last_raw_message_by_subject(&subject).await.ok()?;
        Some(SecretChanged::read(&message.payload).unwrap())
    }
}
