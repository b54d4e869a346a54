//! The link outlives its broker, and nothing is left behind by reconnecting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quartermaster_actors::link::{CallError, ConflictFlag, EventSubscription};
use quartermaster_actors::supervise::{Ending, Force, OverseerSettings, release_blocked_threads};

use super::support::link::{Host, Link, TestCredentials, at, call};
use super::support::{Broker, BrokerOptions, eventually};

const HOST: &str = "n1.example.net";

/// Sockets of this process, in any state that holds a descriptor, whose other end is the broker.
fn sockets_to(broker: &Broker) -> usize {
    const TIME_WAIT: &str = "06";
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let port = format!(":{:04X}", broker.port());
    let ours = |line: &&str| {
        let mut fields = line.split_whitespace().skip(2);
        let remote = fields.next().is_some_and(|remote| remote.ends_with(&port));
        remote && fields.next() != Some(TIME_WAIT)
    };
    table.lines().filter(ours).count()
}

#[actix::test]
async fn fifty_bounces_of_the_broker_leave_one_connection_and_the_same_subscriptions() {
    let Some(mut broker) = BrokerOptions::new().start() else { return };
    let events = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&events);
    let link = Link::start(TestCredentials::default(), |settings| {
        settings.servers = at(&[&broker]);
        settings.backoff_scale = 0.001;
        settings.events.push(EventSubscription {
            subject: "choria.lifecycle.event.startup.>".to_owned(),
            lane: "events",
            sink: Arc::new(move |_| {
                seen.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }),
        });
    });
    link.ready().await;
    let held = |broker: &Broker| (broker.connections(), broker.subscriptions(), sockets_to(broker));
    eventually("one connection, two subscriptions, one socket", || held(&broker) == (1, 2, 1)).await;
    for _ in 0..50 {
        let before = link.handle.snapshot().connects;
        broker.restart();
        eventually("it has connected again", || link.handle.snapshot().connects > before).await;
    }
    link.ready().await;
    eventually("and again, not more", || held(&broker) == (1, 2, 1)).await;
    let host = Host::connect(&broker.url(), HOST, &["pong"]).await;
    assert_eq!(link.call(HOST).await, "pong");
    host.client.publish("choria.lifecycle.event.startup.provision_mode_server", "{}".into()).await.unwrap();
    eventually("the event has arrived", || events.load(Ordering::SeqCst) == 1).await;
}

#[actix::test]
async fn a_call_made_while_the_broker_is_away_is_answered_once_it_is_back() {
    let Some(mut broker) = BrokerOptions::new().start() else { return };
    let link = Link::start(TestCredentials::default(), |settings| {
        settings.servers = at(&[&broker]);
        settings.reconnect_grace = Duration::from_secs(20);
    });
    link.ready().await;
    let host = Host::connect(&broker.url(), HOST, &["pong"]).await;
    broker.stop();
    eventually("the link notices", || !link.handle.is_connected()).await;
    let waiting = {
        let handle = link.handle.clone();
        actix::spawn(async move { handle.call(call(HOST, &ConflictFlag::new())).await })
    };
    // Until the host is back as well nobody would hear the request.
    let listening = {
        let client = host.client.clone();
        move || client.connection_state() == async_nats::connection::State::Connected
    };
    broker.restart();
    eventually("the host is back", listening).await;
    let answer = waiting.await.unwrap();
    match answer {
        Ok(answer) => assert_eq!(answer.payload, b"pong"),
        // The link may have been back before the host; its caller tries again.
        Err(CallError::TimedOut { .. }) => assert_eq!(link.call(HOST).await, "pong"),
        Err(other) => panic!("{other:?}"),
    }
}

#[actix::test]
async fn each_end_of_the_actor_leaves_one_connection() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let watching = OverseerSettings {
        ping_every: Duration::from_millis(100),
        stuck_after: Duration::from_secs(2),
        ..OverseerSettings::default()
    };
    let link =
        Link::watched(TestCredentials::default(), watching, |settings| settings.servers = at(&[&broker]));
    link.ready().await;
    let _host = Host::connect(&broker.url(), HOST, &["pong"]).await;
    for ending in Ending::ALL {
        let before = link.handle.snapshot().connects;
        link.handle.slot().addr().expect("it lives").do_send(Force(ending));
        eventually("the next life has connected", || link.handle.snapshot().connects > before).await;
        assert_eq!(link.call(HOST).await, "pong", "after {ending:?}");
        release_blocked_threads();
        eventually("the old connection is gone", || broker.connections() == 2).await;
        assert_eq!(link.call(HOST).await, "pong", "after {ending:?} and the end of the old life");
    }
}

#[actix::test]
async fn an_outside_client_dies_with_the_connection_and_the_next_one_is_handed_out() {
    let Some(mut broker) = BrokerOptions::new().start() else { return };
    let link = Link::to(&broker);
    let mut clients = link.handle.watch_client();
    let first = clients.connected().await.unwrap();
    broker.restart();
    clients.changed().await;
    let second = clients.connected().await.unwrap();
    second.flush().await.unwrap();
    assert!(first.flush().await.is_err(), "the first one does not come back by itself");
    eventually("one connection", || broker.connections() == 1).await;
}
