//! A key-value watch outlives a broker restart, also when its reader was busy meanwhile.

use std::time::Duration;

use async_nats::jetstream::{self, kv};
use futures::StreamExt as _;
use quartermaster_actors::link::{KvSeen, watch_rebuilding};

use super::support::link::Link;
use super::support::{BrokerOptions, eventually};

/// Long enough for the watch's heartbeats to be missed.
const BUSY: Duration = Duration::from_secs(11);

const LIMIT: Duration = Duration::from_mins(1);

async fn put(url: &str, key: &str, value: &str) {
    let client = async_nats::connect(url).await.unwrap();
    let store = jetstream::new(client).get_key_value("settings").await.unwrap();
    store.put(key, value.to_owned().into()).await.unwrap();
}

async fn create_bucket(client: async_nats::Client) -> kv::Store {
    let config = kv::Config {
        bucket: "settings".to_owned(),
        storage: jetstream::stream::StorageType::File,
        ..kv::Config::default()
    };
    jetstream::new(client).create_key_value(config).await.unwrap()
}

#[actix::test]
async fn the_client_librarys_own_watch_sees_an_update_after_a_restart_under_a_busy_reader() {
    let Some(mut broker) = BrokerOptions::new().jetstream().start() else { return };
    let client = async_nats::connect(broker.url()).await.unwrap();
    let store = create_bucket(client).await;
    store.put("before", "1".into()).await.unwrap();
    let mut watch = store.watch_all().await.unwrap();
    broker.restart();
    tokio::time::sleep(BUSY).await;
    put(&broker.url(), "after", "2").await;
    let seen = tokio::time::timeout(LIMIT, async {
        loop {
            match watch.next().await {
                Some(Ok(entry)) if entry.key == "after" => return,
                Some(_) => {}
                None => panic!("the watch ended"),
            }
        }
    });
    seen.await.expect("the update is seen in time");
}

#[actix::test]
async fn our_watch_is_built_anew_and_sees_what_was_put_meanwhile() {
    let Some(mut broker) = BrokerOptions::new().jetstream().start() else { return };
    let link = Link::to(&broker);
    link.ready().await;
    let store = create_bucket(link.handle.watch_client().connected().await.unwrap()).await;
    store.put("before", "1".into()).await.unwrap();
    let mut watch = watch_rebuilding(link.handle.watch_client(), "settings", ">");
    let first = tokio::time::timeout(LIMIT, watch.next()).await.unwrap();
    assert!(matches!(first, Some(KvSeen::Entry(entry)) if entry.key == "before"));
    for round in 0..3 {
        let before = link.handle.snapshot().connects;
        broker.restart();
        eventually("it has connected again", || link.handle.snapshot().connects > before).await;
        let key = format!("after{round}");
        put(&broker.url(), &key, "2").await;
        let mut rebuilt = false;
        let seen = tokio::time::timeout(LIMIT, async {
            loop {
                match watch.next().await {
                    Some(KvSeen::Entry(entry)) if entry.key == key => return rebuilt,
                    Some(KvSeen::Rebuilt { .. }) => rebuilt = true,
                    Some(KvSeen::Entry(_)) => {}
                    None => panic!("the watch ended"),
                }
            }
        });
        assert!(seen.await.expect("the update is seen in time"), "and it said that it was rebuilt");
    }
    eventually("no consumers pile up", || {
        let jsz = broker.monitor("/jsz?consumers=1");
        jsz["consumers"].as_u64().is_some_and(|count| count <= 4)
    })
    .await;
}
