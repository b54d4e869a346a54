use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use quartermaster_proto::choria::envelope::Proof;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::support::{HOST, Rig, jwt_call};
use crate::link::fake::{FakeCredentials, reply_to};
use crate::link::{
    CallError, ConflictFlag, ConnectFault, Credentials, CredentialsError, LinkState, Login, ServerAddress,
    Servers, SrvTarget,
};

fn refusal() -> ConnectFault {
    ConnectFault::Refused("authorization violation".to_owned())
}

#[actix::test]
async fn it_tries_for_ever_with_growing_waits() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.fail_next((0..12).map(|_| ConnectFault::Network("connection refused".to_owned())));
    let began = Instant::now();
    rig.ready().await;
    // The first twelve waits of the table, with the jitter fixed at its middle.
    assert_eq!(began.elapsed().as_secs(), 33);
    assert_eq!(rig.broker.attempts().len(), 13);
}

#[actix::test]
async fn a_refused_login_is_logged_once_a_minute_shows_in_the_snapshot_and_heals() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.fail_next((0..60).map(|_| refusal()));
    tokio::time::sleep(Duration::from_mins(5)).await;
    let snapshot = rig.link.snapshot();
    match &snapshot.state {
        LinkState::Connecting { refused: true, last_error, .. } => {
            assert!(last_error.contains("refused the login"));
        }
        other => panic!("{other:?}"),
    }
    assert!(snapshot.refused_logins > 15, "{}", snapshot.refused_logins);
    let said = rig.said();
    assert!((5..=6).contains(&said.len()), "five minutes, one line each: {said:?}");
    assert!(said[1].contains("more like it since"), "{}", said[1]);
    rig.ready().await;
    assert!(rig.said().last().unwrap().starts_with("connected to"));
}

#[actix::test]
async fn all_brokers_of_a_round_are_tried_before_any_wait() {
    tokio::time::pause();
    let rig = Rig::start(|settings| {
        settings.servers =
            Servers::List((1..=3).map(|n| ServerAddress::new(format!("b{n}"), 4222)).collect());
    });
    rig.broker.fail_next([refusal(), ConnectFault::TimedOut(Duration::from_secs(2))]);
    let began = Instant::now();
    rig.ready().await;
    assert!(began.elapsed() < Duration::from_millis(100));
    let tried: HashSet<_> = rig.broker.attempts().into_iter().collect();
    assert_eq!(tried.len(), 3);
}

#[actix::test]
async fn srv_is_asked_again_at_every_connect() {
    tokio::time::pause();
    let rig = Rig::start(|settings| {
        settings.servers = Servers::Srv {
            domain: "example.net".to_owned(),
            services: vec!["_mcollective-server._tcp".to_owned()],
            fallback: vec![ServerAddress::new("puppet", 4222)],
        };
    });
    let target = |host: &str| SrvTarget { host: host.to_owned(), port: 4222, priority: 0, weight: 0 };
    // The name servers are down at first, so the fallback is tried and is not there.
    rig.broker.fail_next([ConnectFault::Network("no such host".to_owned())]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    rig.resolver.set(Some(vec![target("first")]));
    rig.ready().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    rig.resolver.set(Some(vec![target("second")]));
    rig.broker.drop_connections();
    tokio::time::sleep(Duration::from_mins(1)).await;
    rig.ready().await;
    let hosts: Vec<_> = rig.broker.attempts().iter().map(|address| address.host().to_owned()).collect();
    assert_eq!(hosts, ["puppet", "first", "second"]);
}

#[actix::test]
async fn a_reply_that_comes_after_a_short_reconnect_still_counts() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.ready().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let waiting = {
        let link = rig.link.clone();
        actix::spawn(async move { link.call(jwt_call(&ConflictFlag::new())).await })
    };
    tokio::time::sleep(Duration::from_millis(10)).await;
    rig.broker.drop_connections();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let request = rig.broker.published()[0].payload.clone();
    assert!(rig.broker.deliver(&reply_to(&request, HOST, b"pong").unwrap()));
    assert_eq!(waiting.await.unwrap().unwrap().payload, b"pong");
}

#[actix::test]
async fn a_request_whose_connection_was_lost_is_not_waited_for_to_the_full_deadline() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.ready().await;
    let began = Instant::now();
    let waiting = {
        let link = rig.link.clone();
        actix::spawn(async move { link.call(jwt_call(&ConflictFlag::new())).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.broker.drop_connections();
    assert!(matches!(waiting.await.unwrap(), Err(CallError::TimedOut { .. })));
    assert_eq!(began.elapsed().as_secs(), 9);
}

#[actix::test]
async fn a_call_waits_a_little_for_the_connection_and_then_says_what_is_wrong() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.fail_next((0..60).map(|_| refusal()));
    let began = Instant::now();
    match rig.link.call(jwt_call(&ConflictFlag::new())).await.unwrap_err() {
        CallError::NotConnected { detail } => assert!(detail.contains("refused the login"), "{detail}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[actix::test]
async fn a_broker_that_drops_everybody_at_once_is_not_hammered() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    for _ in 0..600 {
        rig.broker.drop_connections();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!((5..30).contains(&rig.broker.connections()), "a minute of it: {}", rig.broker.connections());
}

#[actix::test]
async fn a_replaced_life_lets_go_of_its_connection() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.ready().await;
    let old = rig.link.slot().addr().unwrap();
    rig.live();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(!old.connected());
    assert_eq!(rig.broker.subscriptions().len(), 1);
    assert!(rig.link.is_connected());
}

/// Credentials whose caller is another one at each connect, as after a token was renewed.
struct Renewed(std::sync::atomic::AtomicUsize);

impl Credentials for Renewed {
    fn caller(&self) -> BoxFuture<'static, Result<String, CredentialsError>> {
        let count = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move { Ok(format!("caller{count}")) }.boxed()
    }

    fn tls_config(&self) -> BoxFuture<'static, Result<Option<Arc<rustls::ClientConfig>>, CredentialsError>> {
        FakeCredentials::new("").tls_config()
    }

    fn login(&self, nonce: Option<Vec<u8>>) -> BoxFuture<'static, Result<Login, CredentialsError>> {
        FakeCredentials::new("").login(nonce)
    }

    fn sign_request(&self, body: Zeroizing<Vec<u8>>) -> BoxFuture<'static, Result<Proof, CredentialsError>> {
        FakeCredentials::new("").sign_request(body)
    }
}

#[actix::test]
async fn the_caller_is_asked_for_again_at_each_connect() {
    tokio::time::pause();
    let rig = Rig::with_credentials(Arc::new(Renewed(std::sync::atomic::AtomicUsize::new(0))), |_| {});
    rig.ready().await;
    let first = rig.broker.subscriptions();
    rig.broker.drop_connections();
    tokio::time::sleep(Duration::from_mins(1)).await;
    rig.ready().await;
    let second = rig.broker.subscriptions();
    assert_ne!(first, second);
    rig.broker.respond(|_, request| reply_to(request, HOST, b"pong").into_iter().collect());
    assert!(rig.link.call(jwt_call(&ConflictFlag::new())).await.is_ok());
}

/// A keeper of keys that cannot read its files.
struct Unreadable;

impl Credentials for Unreadable {
    fn caller(&self) -> BoxFuture<'static, Result<String, CredentialsError>> {
        let error = CredentialsError { doing: "read the client token", reason: "no such file".to_owned() };
        async move { Err(error) }.boxed()
    }

    fn tls_config(&self) -> BoxFuture<'static, Result<Option<Arc<rustls::ClientConfig>>, CredentialsError>> {
        FakeCredentials::new("").tls_config()
    }

    fn login(&self, nonce: Option<Vec<u8>>) -> BoxFuture<'static, Result<Login, CredentialsError>> {
        FakeCredentials::new("").login(nonce)
    }

    fn sign_request(&self, body: Zeroizing<Vec<u8>>) -> BoxFuture<'static, Result<Proof, CredentialsError>> {
        FakeCredentials::new("").sign_request(body)
    }
}

#[actix::test]
async fn credentials_that_cannot_be_read_are_named() {
    tokio::time::pause();
    let rig = Rig::with_credentials(Arc::new(Unreadable), |_| {});
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rig.said(), ["could not connect: could not read the client token: no such file"]);
}
