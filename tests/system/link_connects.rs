//! The link logs in over every kind of connection, says readably why it cannot, and gets in once it can.

use std::time::Duration;

use quartermaster_actors::link::{LinkState, ServerAddress, Servers, SrvTarget};

use super::support::link::{Host, Link, TestCredentials, at};
use super::support::{Authority, BrokerOptions, eventually};

const HOST: &str = "n1.example.net";

#[actix::test]
async fn it_connects_in_clear_text_discovers_and_calls() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let link = Link::to(&broker);
    link.ready().await;
    let _host = Host::connect(&broker.url(), HOST, &["pong"]).await;
    let found = link.handle.discover(|_| Ok(())).await.unwrap();
    assert_eq!(found.found, 1);
    assert_eq!(link.call(HOST).await, "pong");
    let connz = broker.monitor("/connz?subs=1");
    let ours: Vec<_> = connz["connections"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["name"] == "provisioner.example.net")
        .collect();
    assert_eq!(ours.len(), 1, "one connection");
    assert_eq!(ours[0]["subscriptions_list"].as_array().unwrap().len(), 1, "one reply subscription");
    link.stop().await;
    eventually("its connection is gone", || broker.connections() == 1).await;
}

#[actix::test]
async fn it_connects_over_tls_with_a_client_certificate_and_a_password() {
    let authority = Authority::new("fleet authority");
    let options = BrokerOptions::new().tls(&authority).verify_clients().user("provisioner", "s3cret");
    let Some(broker) = options.start() else { return };
    let credentials = TestCredentials::default();
    credentials.set_tls(&authority, Some(&authority.client("provisioner.example.net")));
    credentials.set_password("provisioner", "s3cret");
    let link = Link::start(credentials, |settings| {
        settings.servers = at(&[&broker]);
        settings.require_tls = true;
    });
    link.ready().await;
    let connz = broker.monitor("/connz?auth=1");
    assert_eq!(connz["connections"][0]["authorized_user"], "provisioner");
    assert!(connz["connections"][0]["tls_version"].is_string());
}

#[actix::test]
async fn a_broker_with_a_strangers_certificate_is_refused_until_it_is_trusted() {
    let stranger = Authority::new("stranger");
    let Some(broker) = BrokerOptions::new().tls(&stranger).start() else { return };
    let credentials = TestCredentials::default();
    credentials.set_tls(&Authority::new("fleet authority"), None);
    let link = Link::start(credentials, |settings| settings.servers = at(&[&broker]));
    eventually("it says that the certificate is not trusted", || {
        link.said().iter().any(|line| line.contains("TLS failed") && line.contains("certificate"))
    })
    .await;
    assert!(!link.handle.is_connected());
    // TLS files are read again at every connect, so trusting the authority now is enough.
    link.credentials.set_tls(&stranger, None);
    link.ready().await;
}

#[actix::test]
async fn a_broker_that_wants_a_client_certificate_says_so_until_it_gets_one() {
    let authority = Authority::new("fleet authority");
    let Some(broker) = BrokerOptions::new().tls(&authority).verify_clients().start() else { return };
    let credentials = TestCredentials::default();
    credentials.set_tls(&authority, None);
    let link = Link::start(credentials, |settings| settings.servers = at(&[&broker]));
    eventually("it says what TLS said", || link.said().iter().any(|line| line.contains("TLS failed"))).await;
    link.credentials.set_tls(&authority, Some(&authority.client("provisioner.example.net")));
    link.ready().await;
}

#[actix::test]
async fn a_broker_without_tls_is_no_candidate_when_tls_is_required() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let credentials = TestCredentials::default();
    credentials.set_tls(&Authority::new("fleet authority"), None);
    let link = Link::start(credentials, |settings| {
        settings.servers = at(&[&broker]);
        settings.require_tls = true;
    });
    eventually("a second attempt was made", || {
        matches!(link.handle.snapshot().state, LinkState::Connecting { rounds: 2.., .. })
    })
    .await;
    assert!(!link.handle.is_connected());
}

#[actix::test]
async fn a_wrong_password_is_said_once_shows_in_the_state_and_heals_when_the_broker_is_corrected() {
    let Some(mut broker) = BrokerOptions::new().user("provisioner", "other").start() else { return };
    let credentials = TestCredentials::default();
    credentials.set_password("provisioner", "s3cret");
    let link = Link::start(credentials, |settings| settings.servers = at(&[&broker]));
    eventually("several logins were refused", || link.handle.snapshot().refused_logins >= 5).await;
    let snapshot = link.handle.snapshot();
    assert!(matches!(snapshot.state, LinkState::Connecting { refused: true, .. }), "{snapshot:?}");
    let said = link.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("refused the login") && !said[0].contains("s3cret"), "{said:?}");
    broker.restart_with(BrokerOptions::new().user("provisioner", "s3cret"));
    link.ready().await;
}

#[actix::test]
async fn a_password_corrected_on_our_side_is_taken_up_without_a_restart() {
    let Some(broker) = BrokerOptions::new().user("provisioner", "s3cret").start() else { return };
    let credentials = TestCredentials::default();
    credentials.set_password("provisioner", "wrong");
    let link = Link::start(credentials, |settings| settings.servers = at(&[&broker]));
    eventually("a login was refused", || link.handle.snapshot().refused_logins >= 1).await;
    link.credentials.set_password("provisioner", "s3cret");
    link.ready().await;
}

#[actix::test]
async fn the_brokers_nonce_is_given_to_whoever_signs() {
    // A broker sends a nonce as soon as it knows any public key.
    let key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    let lines = format!("authorization {{ users: [ {{ user: a, password: a }}, {{ nkey: {key} }} ] }}");
    let Some(broker) = BrokerOptions::new().extra(&lines).start() else { return };
    let credentials = TestCredentials::default();
    credentials.set_password("a", "a");
    let link = Link::start(credentials, |settings| settings.servers = at(&[&broker]));
    link.ready().await;
    let nonces = link.credentials.nonces();
    assert!(nonces[0].as_ref().is_some_and(|nonce| nonce.len() >= 11), "{nonces:?}");
}

#[actix::test]
async fn it_starts_without_dns_and_follows_srv_from_broker_to_broker() {
    let (Some(first), Some(second)) = (BrokerOptions::new().start(), BrokerOptions::new().start()) else {
        return;
    };
    let target = |port| SrvTarget { host: "127.0.0.1".to_owned(), port, priority: 0, weight: 0 };
    let link = Link::start(TestCredentials::default(), |settings| {
        settings.servers = Servers::Srv {
            domain: "example.net".to_owned(),
            services: vec!["_mcollective-server._tcp".to_owned()],
            // Nothing listens on port 1.
            fallback: vec![ServerAddress::new("127.0.0.1", 1)],
        };
    });
    eventually("it says that DNS does not answer", || {
        link.said().iter().any(|line| line.contains("_mcollective-server._tcp.example.net"))
    })
    .await;
    link.resolver.set(Some(vec![target(first.port())]));
    link.ready().await;
    assert_eq!(first.connections(), 1);
    link.resolver.set(Some(vec![target(second.port())]));
    drop(first);
    eventually("it is connected to the second", || second.connections() == 1).await;
}

#[actix::test]
async fn a_frozen_broker_is_noticed_and_another_one_is_taken() {
    let (Some(first), Some(second)) = (BrokerOptions::new().start(), BrokerOptions::new().start()) else {
        return;
    };
    let link = Link::start(TestCredentials::default(), |settings| {
        settings.servers = at(&[&first, &second]);
        settings.ping_interval = Duration::from_millis(300);
        settings.connect_timeout = Duration::from_secs(1);
    });
    link.ready().await;
    let (used, other) = if first.connections() == 1 { (first, second) } else { (second, first) };
    used.freeze();
    eventually("it is connected to the other one", || other.connections() == 1).await;
    used.thaw();
    eventually("the frozen connection is gone", || used.connections() == 0).await;
}
