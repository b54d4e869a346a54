//! T54: the accounts of the mesh on a real broker; each tries what every other one may.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use quartermaster_proto::mesh::accounts::{Account, matches};
use quartermaster_proto::mesh::key;
use tempfile::TempDir;

use crate::support::Broker;

/// A connection of an account, and what the broker refuses it.
async fn connect(broker: &Broker, account: &Account) -> (Client, Refusals) {
    let seed = std::fs::read_to_string(broker.credentials(account)).unwrap();
    let refused: Refusals = Arc::default();
    let hear = Arc::clone(&refused);
    let client = ConnectOptions::with_nkey(seed)
        .custom_inbox_prefix(account.inbox_prefix())
        .event_callback(move |event| {
            let hear = Arc::clone(&hear);
            async move {
                if let Event::ServerError(error) = event {
                    hear.lock().unwrap().push(error.to_string());
                }
            }
        })
        .connect(broker.address())
        .await
        .unwrap();
    (client, refused)
}

type Refusals = Arc<Mutex<Vec<String>>>;

fn accounts() -> Vec<Account> {
    let node = |node: &str| node.to_owned();
    vec![
        Account::Provisioner { node: node("web1.example") },
        Account::Provisioner { node: node("web2") },
        Account::Engine { node: node("web1.example") },
        Account::Engine { node: node("web2") },
        Account::ToolRunner { node: node("web1.example") },
        Account::ToolRunner { node: node("web2") },
        Account::Vault,
        Account::Config,
        Account::Provider { node: node("web1.example"), module: "postgres".to_owned() },
        Account::Provider { node: node("web2"), module: "hub".to_owned() },
        Account::Controller,
    ]
}

/// A subject that a pattern matches.
fn example(pattern: &str) -> String {
    pattern
        .split('.')
        .map(|token| match token {
            "*" => "x",
            ">" => "y.z",
            token => token,
        })
        .collect::<Vec<_>>()
        .join(".")
}

/// Waits until the broker has refused something that is refused for sure: everything before it has been judged then.
async fn judged(client: &Client, refused: &Refusals, last: &str) {
    client.publish(last.to_owned(), "".into()).await.unwrap();
    client.flush().await.unwrap();
    while !refused.lock().unwrap().iter().any(|text| text.contains(last)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// T54, publishing and subscribing: what is not in an account's row is refused, what is in it is not.
#[tokio::test]
async fn t54_the_broker_lets_each_account_do_what_its_row_says_and_nothing_else() {
    let dir = TempDir::new().unwrap();
    let Some(broker) = Broker::start(dir.path(), &accounts()) else { return };
    let grants: Vec<_> = accounts().iter().map(Account::grant).collect();
    let published: BTreeSet<String> =
        grants.iter().flat_map(|grant| &grant.publish).map(|pattern| example(pattern)).collect();
    let heard: BTreeSet<String> = grants.iter().flat_map(|grant| grant.subscribe.clone()).collect();
    for account in accounts() {
        let grant = account.grant();
        let (client, refused) = connect(&broker, &account).await;
        for subject in &published {
            client.publish(subject.clone(), "{}".into()).await.unwrap();
        }
        let mut subscribers = Vec::new();
        for subject in &heard {
            subscribers.push(client.subscribe(subject.clone()).await.unwrap());
        }
        judged(&client, &refused, "nobody.may.do.this").await;
        let refused = refused.lock().unwrap().clone();
        let is_refused = |what: &str, subject: &str| {
            let quoted = format!("\"{}\"", subject.to_lowercase());
            refused.iter().any(|text| {
                let text = text.to_lowercase();
                text.contains(what) && text.contains(&quoted)
            })
        };
        for subject in &published {
            let may = grant.publish.iter().any(|pattern| matches(pattern, subject));
            assert_eq!(
                !is_refused("publish", subject),
                may,
                "{} publishes {subject}: {refused:?}",
                account.name()
            );
        }
        for subject in &heard {
            let may = grant.subscribe.contains(subject);
            assert_eq!(!is_refused("subscription", subject), may, "{} hears {subject}", account.name());
        }
    }
}

/// T54, consumers: a filter in the request's body that is not the one in its subject is refused by the broker.
#[tokio::test]
async fn t54_a_consumer_sees_no_more_than_its_subject_says() {
    let dir = TempDir::new().unwrap();
    let Some(broker) = Broker::start(dir.path(), &accounts()) else { return };
    let (controller, _) = connect(&broker, &Account::Controller).await;
    let jetstream = async_nats::jetstream::new(controller);
    let bucket = async_nats::jetstream::kv::Config { bucket: key::CONFIG.to_owned(), ..Default::default() };
    jetstream.create_key_value(bucket).await.unwrap();
    let web2 = Account::Provisioner { node: "web2".to_owned() };
    let (client, refused) = connect(&broker, &web2).await;
    let stream = format!("KV_{}", key::CONFIG);
    let (own, others, all) = ("web2.>", "web1=2Eexample.>", ">");
    let create = |in_subject: &str, in_body: &str, name: &str| {
        let [subject, body] = [in_subject, in_body].map(|filter| key::kv_subject(key::CONFIG, filter));
        let deliver = format!("{}.deliver", web2.inbox_prefix());
        let request = serde_json::json!({
            "stream_name": stream,
            "config": {
                "name": name, "deliver_subject": deliver, "filter_subject": body, "ack_policy": "none",
                "deliver_policy": "last_per_subject", "mem_storage": true,
            },
        });
        let subject = format!("$JS.API.CONSUMER.CREATE.{stream}.{name}.{subject}");
        let client = client.clone();
        async move {
            let request = client.request(subject, request.to_string().into());
            let reply = tokio::time::timeout(Duration::from_secs(5), request).await.ok()?.ok()?;
            serde_json::from_slice::<serde_json::Value>(&reply.payload).ok()
        }
    };
    assert!(create(own, own, "a").await.is_some_and(|reply| reply["error"].is_null()));
    for filter in [others, all] {
        let reply = create(own, filter, "b").await.unwrap();
        assert!(reply["error"]["err_code"].is_number(), "{reply}");
    }
    let subject =
        |filter: &str| format!("$JS.API.CONSUMER.CREATE.{stream}.c.{}", key::kv_subject(key::CONFIG, filter));
    for filter in [others, all] {
        client.publish(subject(filter), "{}".into()).await.unwrap();
    }
    judged(&client, &refused, "nobody.may.do.this").await;
    let refused = refused.lock().unwrap().join("\n").to_lowercase();
    for filter in [others, all] {
        assert!(refused.contains(&subject(filter).to_lowercase()), "{refused}");
    }
}
