//! The engine and the mirror of assignments on a real broker.

#![cfg(test)]

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{HeaderMap, jetstream};
use ed25519_dalek::SigningKey;
use quartermaster_node::engine::service::{EngineError, Settings, Source, run};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::fill::{Body, FillFile, Op, Reply, Request, Write};
use quartermaster_proto::mesh::key;
use quartermaster_proto::mesh::plan::Digest;
use quartermaster_proto::mesh::signature::{HEADER, PublicNkey, sign};
use sha2::Digest as _;
use support::Broker;
use tokio::sync::oneshot;
use zeroize::Zeroizing;

mod support;

/// The seed of the controller's signing key.
const SEED: [u8; 32] = [7; 32];

fn engine_account() -> Account {
    Account::Engine { node: "web1".to_owned() }
}

struct Site {
    broker: Broker,
    folder: tempfile::TempDir,
    controller: jetstream::Context,
}

struct Engine {
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<Result<(), EngineError>>,
}

impl Engine {
    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }
}

impl Site {
    async fn start() -> Option<Self> {
        let broker = Broker::start(&[Account::Controller, engine_account()])?;
        let bus = broker.connect(&Account::Controller).await;
        let controller = jetstream::new(bus.client().clone());
        let bucket = jetstream::kv::Config { bucket: key::ASSIGNMENTS.to_owned(), ..Default::default() };
        controller.create_key_value(bucket).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        Some(Self { broker, folder, controller })
    }

    fn at(&self, rest: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(rest)
    }

    async fn engine(&self) -> Engine {
        let key = SigningKey::from_bytes(&SEED).verifying_key().to_bytes();
        let settings = Settings {
            node: "web1".to_owned(),
            state: self.at("state"),
            socket: self.at("fill.sock"),
            roots: vec![self.at("root").to_str().unwrap().to_owned()],
            commands: None,
            client: rustix::process::geteuid().as_raw().to_string(),
            source: Source::Mirror {
                bus: self.broker.settings(&engine_account()),
                pins: vec![PublicNkey::user(key)],
            },
            user_units: false,
            metrics: None,
        };
        let (stop, stopped) = oneshot::channel();
        let ended = actix::spawn(run(settings, |_| (), async move {
            let _ = stopped.await;
        }));
        while !self.at("fill.sock").exists() {
            assert!(!ended.is_finished(), "the engine did not start");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Engine { stop, ended }
    }

    /// Puts an assignment of one file; answers its digest and revision.
    async fn assign(&self, module: &str, file: &str, serial: u64, is_signed: bool) -> (Digest, u64) {
        let text = format!(
            r#"{{"node":"web1","module":"{module}","serial":{serial},"provisioning":{{"templates":{{"reference":"file:/t","digest":"{}"}},"files":[{{"path":"{}","template":"t","owner-at-runtime":"owned"}}]}}}}"#,
            Digest::of(b""),
            self.at("root").join(file).display()
        );
        let subject = key::kv_subject(key::ASSIGNMENTS, &format!("web1.{module}"));
        let mut headers = HeaderMap::new();
        if is_signed {
            headers.insert(HEADER, sign(&SEED, &subject, text.as_bytes()).as_str());
        }
        let digest = Digest::of(text.as_bytes());
        let ack = self.controller.publish_with_headers(subject, headers, text.into()).await.unwrap();
        (digest, ack.await.unwrap().sequence)
    }

    async fn write(&self, module: &str, file: &str, plan: (Digest, u64)) -> Body {
        let content = b"content".to_vec();
        let sha256 = hex::encode(sha2::Sha256::digest(&content));
        let path = self.at("root").join(file).to_str().unwrap().to_owned();
        let files = vec![FillFile { path, content: Zeroizing::new(content), sha256, sensitive: false }];
        let op = Op::Write(Write { module: module.to_owned(), plan: plan.0, revision: plan.1, files });
        let request = Request { id: 1, op }.encode();
        let mut socket = UnixStream::connect(self.at("fill.sock")).unwrap();
        let asked = tokio::task::spawn_blocking(move || {
            use std::io::{BufRead as _, Write as _};
            socket.write_all(&request).unwrap();
            let mut line = String::new();
            std::io::BufReader::new(socket).read_line(&mut line).unwrap();
            line
        });
        Reply::read(asked.await.unwrap().trim_end().as_bytes()).unwrap().body
    }

    fn has(&self, file: &str) -> bool {
        self.at("root").join(file).exists()
    }
}

#[track_caller]
fn check_written(body: &Body) {
    let Body::Written(written) = body else { panic!("{body:?}") };
    assert!(written.files.iter().all(|file| file.err.is_none()), "{written:?}");
}

/// T48, T58 (engine): only what the controller signed is taken, what it takes back goes, and forgeries change nothing.
#[actix::test]
async fn t48_t58_the_engine_takes_signed_assignments_alone() {
    let Some(site) = Site::start().await else { return };
    let engine = site.engine().await;
    let plan = site.assign("forge", "a", 5, true).await;
    check_written(&site.write("forge", "a", plan).await);
    // None of these may take the file away or put another in its place.
    site.assign("forge", "forged", 6, false).await;
    site.assign("forge", "older", 4, true).await;
    let other = site.assign("other", "b", 1, true).await;
    check_written(&site.write("other", "b", other).await);
    assert!(site.has("a"), "what a forgery no longer names stays");
    let bucket = site.controller.get_key_value(key::ASSIGNMENTS).await.unwrap();
    bucket.delete("web1.forge").await.unwrap();
    while site.has("a") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(site.has("b"));
    engine.stop().await;
}

/// D23: what was known when it was last up serves while the broker is away, and takes nothing away.
#[actix::test]
async fn t50_the_engine_works_from_its_last_copy_while_the_broker_is_away() {
    let Some(mut site) = Site::start().await else { return };
    let engine = site.engine().await;
    let plan = site.assign("forge", "a", 1, true).await;
    check_written(&site.write("forge", "a", plan).await);
    engine.stop().await;
    // Taken back while the engine is down: seen only once the broker is there again.
    let bucket = site.controller.get_key_value(key::ASSIGNMENTS).await.unwrap();
    bucket.delete("web1.forge").await.unwrap();
    site.broker.stop();
    let engine = site.engine().await;
    fs::write(site.at("root/a"), "edited").unwrap();
    check_written(&site.write("forge", "a", plan).await);
    assert_eq!(fs::read_to_string(site.at("root/a")).unwrap(), "content");
    site.broker.restart();
    while site.has("a") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    engine.stop().await;
}
