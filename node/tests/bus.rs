//! Watchers of our own against a real broker whose users have exactly the rights of the table.
#![cfg(test)]

mod support;

use std::time::Duration;

use async_nats::{Client, jetstream};
use bytes::Bytes;
use quartermaster_node::client::bus::{FromBus, Target, watch};
use quartermaster_proto::mesh::{accounts::Account, key};
use support::Broker;
use tokio::sync::mpsc;

/// Longest wait for something that must come.
const LIMIT: Duration = Duration::from_secs(30);

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
    put(config.client(), key::CONFIG, "web1.forge.port", "3000").await;
    put(config.client(), key::CONFIG, "web1.forge.port", "3001").await;
    delete(config.client(), key::CONFIG, "web1.forge.port").await;
    own.expect(&["web1.forge.port=3000", "web1.forge.port=3001", "web1.forge.port deleted"]).await;
    put(config.client(), key::CONFIG, "web1.forge.name", "\"x\"").await;
    let mut second = Watcher::start(&broker, &node("web1"), Target::bucket(key::CONFIG, "web1.>")).await;
    second.expect(&["begun 2", "web1.forge.port deleted", "web1.forge.name=\"x\""]).await;
}

#[tokio::test]
async fn a_broker_that_comes_back_is_watched_anew() {
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
async fn a_client_can_watch_nothing_of_another_machine() {
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
async fn a_brokers_answer_that_lands_in_a_bucket_is_told_apart() {
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
