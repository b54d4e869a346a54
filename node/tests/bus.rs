//! Watchers of our own against a real broker whose users have exactly the rights of the table.
#![cfg(test)]

mod support;

use std::time::Duration;

use async_nats::{Client, jetstream};
use base64::Engine as _;
use bytes::Bytes;
use futures::StreamExt as _;
use quartermaster_node::{
    client::{
        asking::Answer,
        bus::{FromBus, Target, watch},
        templates::{FetchError, Fetcher},
        vault::VaultClient,
    },
    sealed::seal,
};
use quartermaster_proto::{
    mesh::{
        accounts::Account,
        key,
        plan::Reference,
        registry::{Entry, Source, VaultSource},
        report::Why,
        vault::{GetReply, GetRequest, SecretChanged},
    },
    time::WallClock,
};
use support::Broker;
use tokio::sync::mpsc;

/// Longest wait for something that must come.
const LIMIT: Duration = Duration::from_mins(1);

fn node(name: &str) -> Account {
    Account::Provisioner { node: name.to_owned() }
}

/// A bucket, made by the controller.
async fn bucket(controller: &Client, name: &str) {
    let config = jetstream::stream::Config {
        name: format!("KV_{name}"),
        subjects: vec![format!("$KV.{name}.>")],
        max_messages_per_subject: 1,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        ..jetstream::stream::Config::default()
    };
    jetstream::new(controller.clone()).create_stream(config).await.unwrap();
}

/// Writes an entry and waits until it is stored.
async fn put(client: &Client, bucket: &str, key: &str, body: &str) {
    let context = jetstream::new(client.clone());
    let body = Bytes::copy_from_slice(body.as_bytes());
    context.publish(key::kv_subject(bucket, key), body).await.unwrap().await.unwrap();
}

async fn delete(client: &Client, bucket: &str, key: &str) {
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("KV-Operation", "DEL");
    let context = jetstream::new(client.clone());
    context
        .publish_with_headers(key::kv_subject(bucket, key), headers, Bytes::new())
        .await
        .unwrap()
        .await
        .unwrap();
}

/// A watcher and what it tells, in short.
struct Watcher(mpsc::Receiver<FromBus>);

impl Watcher {
    async fn start(broker: &Broker, account: &Account, target: Target) -> Self {
        let (sender, receiver) = mpsc::channel(16);
        let bus = broker.connect(account).await;
        tokio::spawn(watch(bus, target, sender, 1));
        Self(receiver)
    }

    async fn next(&mut self) -> String {
        let told = tokio::time::timeout(LIMIT, self.0.recv()).await.expect("nothing came").expect("it ended");
        let shown = |entry: &quartermaster_node::client::bus::Arrived| {
            let key = entry.subject.splitn(3, '.').nth(2).unwrap().to_owned();
            let body = entry.body.as_ref().map(|body| String::from_utf8_lossy(body).into_owned());
            body.map_or(format!("{key} deleted"), |body| format!("{key}={body}"))
        };
        match &told {
            FromBus::Begun(entries) => format!("begun {entries}"),
            FromBus::Entry(entry) => shown(entry),
            FromBus::Misdirected(entry) => format!("misdirected {}", shown(entry)),
            FromBus::Lost => "lost".to_owned(),
            FromBus::NoBucket => "no bucket".to_owned(),
        }
    }

    async fn expect(&mut self, expected: &[&str]) {
        for text in expected {
            assert_eq!(self.next().await, *text);
        }
    }
}

#[tokio::test]
async fn a_client_watches_its_own_keys_of_any_bucket_and_hears_what_changes() {
    let accounts = [node("web1"), node("web2"), Account::Config, Account::Controller];
    let Some(broker) = Broker::start(&accounts) else { return };
    let controller = broker.connect(&Account::Controller).await;
    let config = broker.connect(&Account::Config).await;
    let mut own = Watcher::start(&broker, &node("web1"), Target::bucket(key::CONFIG, "web1.>")).await;
    own.expect(&["no bucket"]).await;
    bucket(controller.client(), key::CONFIG).await;
    loop {
        match own.next().await.as_str() {
            "no bucket" => {}
            other => break assert_eq!(other, "begun 0"),
        }
    }
    put(config.client(), key::CONFIG, "web2.forge.port", "1").await;
    // One after the other: the bucket keeps the last of each key only.
    put(config.client(), key::CONFIG, "web1.forge.port", "3000").await;
    own.expect(&["web1.forge.port=3000"]).await;
    put(config.client(), key::CONFIG, "web1.forge.port", "3001").await;
    own.expect(&["web1.forge.port=3001"]).await;
    delete(config.client(), key::CONFIG, "web1.forge.port").await;
    own.expect(&["web1.forge.port deleted"]).await;
    put(config.client(), key::CONFIG, "web1.forge.name", "\"x\"").await;
    let mut second = Watcher::start(&broker, &node("web1"), Target::bucket(key::CONFIG, "web1.>")).await;
    second.expect(&["begun 2", "web1.forge.port deleted", "web1.forge.name=\"x\""]).await;
}

#[tokio::test]
async fn t50_a_broker_that_comes_back_is_watched_anew() {
    let Some(mut broker) = Broker::start(&[node("web1"), Account::Controller]) else { return };
    let controller = broker.connect(&Account::Controller).await;
    bucket(controller.client(), key::ASSIGNMENTS).await;
    put(controller.client(), key::ASSIGNMENTS, "web9.forge", "{}").await;
    let mut mirror = Watcher::start(&broker, &node("web1"), Target::bucket(key::ASSIGNMENTS, ">")).await;
    mirror.expect(&["begun 1", "web9.forge={}"]).await;
    broker.restart();
    mirror.expect(&["lost", "begun 1", "web9.forge={}"]).await;
    let controller = broker.connect(&Account::Controller).await;
    put(controller.client(), key::ASSIGNMENTS, "web1.blog", "{}").await;
    mirror.expect(&["web1.blog={}"]).await;
}

#[tokio::test]
async fn t54_a_client_can_watch_nothing_of_another_machine() {
    let Some(broker) = Broker::start(&[node("web1"), Account::Controller]) else { return };
    let controller = broker.connect(&Account::Controller).await;
    bucket(controller.client(), key::CONFIG).await;
    let client = broker.connect(&node("web1")).await;
    let context = jetstream::new(client.client().clone());
    for subject in ["$KV.mesh-config_resolved.web1.forge.a", "$KV.mesh-controller_assignments.web1.forge"] {
        let stored = context.publish(subject, Bytes::from_static(b"1")).await.unwrap();
        let stored = tokio::time::timeout(Duration::from_secs(1), stored.into_future()).await;
        assert!(!matches!(stored, Ok(Ok(_))), "{subject} was stored");
    }
    // The subject names the own keys, the body those of another machine.
    let subject = "$JS.API.CONSUMER.CREATE.KV_mesh-config_resolved.x.$KV.mesh-config_resolved.web1.>";
    let body = r#"{"stream_name":"KV_mesh-config_resolved","action":"create","config":{"name":"x","deliver_subject":"_INBOX_provisioner.web1.y","ack_policy":"none","deliver_policy":"all","filter_subject":"$KV.mesh-config_resolved.web2.>"}}"#;
    let answer = client.client().request(subject, Bytes::from_static(body.as_bytes())).await.unwrap();
    let answer = String::from_utf8(answer.payload.to_vec()).unwrap();
    assert!(answer.contains("\"err_code\":10131"), "{answer}");
}

#[tokio::test]
async fn t58_a_brokers_answer_that_lands_in_a_bucket_is_told_apart() {
    let Some(broker) = Broker::start(&[node("web1"), Account::Config, Account::Controller]) else { return };
    let controller = broker.connect(&Account::Controller).await;
    bucket(controller.client(), key::CONFIG).await;
    bucket(controller.client(), key::NEEDS).await;
    let mut own = Watcher::start(&broker, &node("web1"), Target::bucket(key::CONFIG, "web1.>")).await;
    own.expect(&["begun 0"]).await;
    // A write whose acknowledgement is to go to a config value of the own machine.
    let client = broker.connect(&node("web1")).await;
    let reply = "$KV.mesh-config_resolved.web1.forge.port";
    client
        .client()
        .publish_with_reply("$KV.mesh-provisioner_needs.web1.a.b.c", reply, Bytes::from_static(b"x"))
        .await
        .unwrap();
    client.client().flush().await.unwrap();
    let told = own.next().await;
    assert!(
        told.starts_with("misdirected web1.forge.port={\"stream\":\"KV_mesh-provisioner_needs\""),
        "{told}"
    );
}

#[tokio::test]
async fn t16_an_archive_in_the_object_store_is_read_within_the_rights_of_a_client() {
    let Some(broker) = Broker::start(&[node("web1"), Account::Controller]) else { return };
    let controller = broker.connect(&Account::Controller).await;
    let client = broker.connect(&node("web1")).await;
    let fetcher = Fetcher::new(Some(client));
    let reference: Reference = "nats-object:mesh-templates/forge/1.4 é.tar".parse().unwrap();
    assert_eq!(fetcher.fetch(&reference).await, Err(FetchError::Waiting(Why::NoBucket)));
    let config = jetstream::stream::Config {
        name: "OBJ_mesh-templates".to_owned(),
        subjects: vec!["$O.mesh-templates.C.>".to_owned(), "$O.mesh-templates.M.>".to_owned()],
        allow_rollup: true,
        allow_direct: true,
        ..jetstream::stream::Config::default()
    };
    let context = jetstream::new(controller.client().clone());
    context.create_stream(config).await.unwrap();
    assert_eq!(fetcher.fetch(&reference).await, Err(FetchError::Waiting(Why::Absent)));
    // Written as every client of an object store writes it: the chunks, then what is said of them.
    let archive: Vec<u8> = (0..300_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let chunks: Vec<&[u8]> = archive.chunks(128 * 1024).collect();
    for chunk in &chunks {
        let stored = context.publish("$O.mesh-templates.C.n1", Bytes::copy_from_slice(chunk)).await.unwrap();
        stored.await.unwrap();
    }
    let about = |more: &str| {
        let name = base64::engine::general_purpose::URL_SAFE.encode("forge/1.4 é.tar");
        let (size, chunks) = (archive.len(), chunks.len());
        let body = format!(
            r#"{{"name":"x","bucket":"mesh-templates","nuid":"n1","size":{size},"chunks":{chunks}{more}}}"#
        );
        (format!("$O.mesh-templates.M.{name}"), Bytes::from(body))
    };
    for (more, expected) in [
        ("", Ok(archive.clone())),
        (r#","deleted":true"#, Err(FetchError::Waiting(Why::Absent))),
        (r#","size":300001"#, Err(FetchError::Waiting(Why::NoAnswer))),
    ] {
        let (subject, body) = about(more);
        context.publish(subject, body).await.unwrap().await.unwrap();
        assert_eq!(fetcher.fetch(&reference).await, expected, "{more}");
    }
}

/// The registry's word on the vault, as it is first written.
fn vault_source() -> VaultSource {
    let sources = Entry::defaults(None).into_iter().map(|entry| entry.source);
    let mut vaults =
        sources.filter_map(|source| if let Source::Vault(vault) = source { Some(vault) } else { None });
    vaults.next().unwrap()
}

/// The answer in short.
fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Value(value, version) => format!("{}@{version}", String::from_utf8_lossy(value.as_bytes())),
        Answer::Absent => "absent".to_owned(),
        Answer::Refused(reason) => format!("refused {reason}"),
        Answer::Nothing => "nothing".to_owned(),
    }
}

#[tokio::test]
async fn t18_a_secret_is_asked_for_in_the_own_name_and_only_its_box_crosses_the_bus() {
    let Some(broker) = Broker::start(&[node("web1"), Account::Vault, Account::Controller]) else { return };
    let vault = broker.connect(&Account::Vault).await;
    let mut asked = vault.client().subscribe("mesh-vault.get.>").await.unwrap();
    vault.client().flush().await.unwrap();
    let answers = vault.client().clone();
    let serving = tokio::spawn(async move {
        let mut boxes = Vec::new();
        let mut first_box = Vec::new();
        for round in 0..6 {
            let message = asked.next().await.unwrap();
            assert_eq!(message.subject.as_str(), "mesh-vault.get.provisioner.web1");
            let request = GetRequest::read(&message.payload).unwrap();
            assert_eq!((request.name.to_string().as_str(), request.revision), ("own/forge/pw", 81));
            let sealed = seal(&request.key, b"s3cret").unwrap();
            let body = match round {
                0 => GetReply::Sealed { sealed: sealed.clone(), version: 3 }.encode(),
                1 => GetReply::Absent { reason: String::new() }.encode(),
                2 => GetReply::Refused { reason: "no".to_owned() }.encode(),
                // Sealed to somebody else.
                3 => GetReply::Sealed { sealed: seal(&[9; 32], b"s3cret").unwrap(), version: 3 }.encode(),
                4 => b"{}".to_vec(),
                // An answer that another life of the client was given.
                _ => GetReply::Sealed { sealed: first_box.clone(), version: 3 }.encode(),
            };
            if round == 0 {
                first_box = sealed;
            }
            boxes.push(body.clone());
            answers.publish(message.reply.unwrap(), body.into()).await.unwrap();
        }
        boxes
    });
    let (source, name) = (vault_source(), "own/forge/pw".parse().unwrap());
    let client = VaultClient::new(broker.connect(&node("web1")).await, node("web1"));
    for expected in ["s3cret@3", "absent", "refused no", "nothing", "nothing"] {
        assert_eq!(shown(&client.ask(&source, &name, 81).await), expected);
    }
    let restarted = VaultClient::new(broker.connect(&node("web1")).await, node("web1"));
    assert_ne!(client.public_key(), restarted.public_key());
    assert_eq!(shown(&restarted.ask(&source, &name, 81).await), "nothing", "an old box does not open");
    let boxes = serving.await.unwrap();
    assert!(boxes.iter().all(|body| !body.windows(6).any(|part| part == b"s3cret")));
    assert_eq!(shown(&restarted.ask(&source, &name, 81).await), "nothing", "nobody answers");
}

#[tokio::test]
async fn t24_a_client_hears_what_changed_also_while_it_was_away_and_nothing_of_others() {
    let Some(broker) = Broker::start(&[node("web1"), Account::Vault, Account::Controller]) else { return };
    let controller = broker.connect(&Account::Controller).await;
    let config = jetstream::stream::Config {
        name: key::CHANGED_STREAM.to_owned(),
        subjects: vec![format!("{}.>", key::SECRET_CHANGED)],
        max_messages_per_subject: 1,
        ..jetstream::stream::Config::default()
    };
    jetstream::new(controller.client().clone()).create_stream(config).await.unwrap();
    let vault = jetstream::new(broker.connect(&Account::Vault).await.client().clone());
    let say = |account: &'static str, version: u64| {
        let name = "own/forge/pw".to_owned();
        let subject = key::secret_changed_subject(key::SECRET_CHANGED, account, &name);
        let body = SecretChanged { name, version, at: WallClock::from_seconds(0) }.encode();
        let vault = &vault;
        async move { vault.publish(subject, body.into()).await.unwrap().await.unwrap() }
    };
    say("provisioner.web1", 2).await;
    say("provisioner.web1", 3).await;
    say("provisioner.web2", 9).await;
    let bus = broker.connect(&node("web1")).await;
    let client = VaultClient::new(bus.clone(), node("web1"));
    let (sender, mut told) = mpsc::channel(16);
    tokio::spawn(watch(bus, client.changes(&vault_source()), sender, 1));
    assert_eq!(told.recv().await, Some(FromBus::Begun(1)));
    for version in [3, 4] {
        let Some(FromBus::Entry(entry)) = told.recv().await else { panic!("something else came") };
        let (name, found) = VaultClient::read_change(&entry).unwrap();
        assert_eq!((name.to_string().as_str(), found), ("own/forge/pw", version));
        say("provisioner.web2", 10).await;
        say("provisioner.web1", 4).await;
    }
}
