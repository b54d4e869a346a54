//! Which replies count, and what a message over the broker's limit does.

use std::time::Duration;

use quartermaster_actors::link::fake::reply_to;
use quartermaster_actors::link::{CallError, ConflictFlag, Retry};
use quartermaster_actors::metrics::Fact;
use zeroize::Zeroizing;

use super::support::link::{Host, Link, TestCredentials, at, call, next, settle};
use super::support::{BrokerOptions, eventually};

const HOST: &str = "n1.example.net";

#[actix::test]
async fn a_request_over_the_brokers_limit_fails_at_once_naming_size_and_limit_and_nothing_else_does() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let link = Link::to(&broker);
    link.ready().await;
    let _host = Host::connect(&broker.url(), HOST, &["pong"]).await;
    let mut big = call(HOST, &ConflictFlag::new());
    big.data = Zeroizing::new(format!(r#"{{"policy":"{}"}}"#, "x".repeat(1_500_000)));
    let error = link.handle.call(big).await.unwrap_err();
    assert!(matches!(error, CallError::TooLarge { limit: 1_048_576, .. }), "{error:?}");
    assert!(error.to_string().contains("1048576"), "{error}");
    assert_eq!(error.retry(), Retry::Never);
    assert_eq!(link.call(HOST).await, "pong");
    assert_eq!(link.handle.snapshot().connects, 1, "no disconnect");
}

#[actix::test]
async fn a_broker_with_a_wide_limit_lets_two_mebibytes_of_facts_through() {
    let Some(broker) = BrokerOptions::new().max_payload(8 * 1024 * 1024).start() else { return };
    let link = Link::to(&broker);
    link.ready().await;
    let facts = "f".repeat(2 * 1024 * 1024);
    let _host = Host::connect(&broker.url(), HOST, &[&facts]).await;
    assert_eq!(link.call(HOST).await.len(), facts.len());
}

#[actix::test]
async fn two_different_replies_raise_the_flag_and_two_equal_ones_do_not() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let link = Link::to(&broker);
    link.ready().await;
    let _twice = Host::connect(&broker.url(), "n1.example.net", &["same", "same"]).await;
    let _racer = Host::connect(&broker.url(), "n2.example.net", &["one", "two"]).await;
    let (calm, raised) = (ConflictFlag::new(), ConflictFlag::new());
    link.handle.call(call("n1.example.net", &calm)).await.unwrap();
    link.handle.call(call("n2.example.net", &raised)).await.unwrap();
    eventually("the flag is up", || raised.is_raised()).await;
    assert!(!calm.is_raised());
    let conflicts =
        |fact: &&Fact| matches!(fact, Fact::ReplyConflict { host, .. } if host == "n2.example.net");
    eventually("it is told once", || link.facts().iter().filter(conflicts).count() == 1).await;
}

#[actix::test]
async fn forged_replies_that_race_the_host_change_nothing() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let link = Link::to(&broker);
    link.ready().await;
    // Any holder of a provisioning token can hear the request and answer first.
    let racer = async_nats::connect(broker.url()).await.unwrap();
    let mut requests = racer.subscribe("provisioning.node.>").await.unwrap();
    settle(&racer).await;
    let flag = ConflictFlag::new();
    let waiting = {
        let (handle, flag) = (link.handle.clone(), flag.clone());
        actix::spawn(async move { handle.call(call(HOST, &flag)).await })
    };
    let request = next(&mut requests).await;
    let wrong_sender = reply_to(&request.payload, "evil.example.net", b"forged").unwrap();
    let true_one = reply_to(&request.payload, HOST, b"true").unwrap();
    let mut bad_hash = true_one.payload.to_vec();
    let middle = bad_hash.len() / 2;
    bad_hash[middle] = if bad_hash[middle] == b'A' { b'B' } else { b'A' };
    for bytes in [wrong_sender.payload, bad_hash.into(), "rubbish".into()] {
        racer.publish(true_one.subject.clone(), bytes).await.unwrap();
    }
    eventually("the forgeries were looked at", || link.handle.snapshot().rejected == 3).await;
    racer.publish(true_one.subject, true_one.payload).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().payload, b"true");
    assert!(!flag.is_raised());
}

#[actix::test]
async fn a_late_reply_is_counted_and_ignored() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let link = Link::start(TestCredentials::default(), |settings| {
        settings.servers = at(&[&broker]);
        settings.deadlines.provision = Duration::from_millis(100);
        settings.discovery_timeout = Duration::ZERO;
    });
    link.ready().await;
    let slow = async_nats::connect(broker.url()).await.unwrap();
    let mut requests = slow.subscribe(format!("provisioning.node.{HOST}")).await.unwrap();
    settle(&slow).await;
    let error = link.handle.call(call(HOST, &ConflictFlag::new())).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    let request = next(&mut requests).await;
    let reply = reply_to(&request.payload, HOST, b"late").unwrap();
    slow.publish(reply.subject, reply.payload).await.unwrap();
    eventually("it was counted", || link.handle.snapshot().late == 1).await;
}

#[actix::test]
async fn a_subject_we_may_not_use_is_named_in_the_log() {
    let lines = "authorization { users: [ { user: a, password: a, permissions: { publish: \"provisioning.node.>\", subscribe: \"provisioning.reply.>\" } } ] }";
    let Some(broker) = BrokerOptions::new().extra(lines).start() else { return };
    let credentials = TestCredentials::default();
    credentials.set_password("a", "a");
    let link = Link::start(credentials, |settings| settings.servers = at(&[&broker]));
    link.ready().await;
    link.handle.publish("choria.lifecycle.event.startup.provisioner", "{}").await.unwrap();
    eventually("the broker's words are in the log", || {
        link.said().iter().any(|line| line.to_lowercase().contains("permissions violation"))
    })
    .await;
    assert!(link.handle.is_connected());
}
