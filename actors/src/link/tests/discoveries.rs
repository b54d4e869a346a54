use std::sync::{Arc, Mutex};
use std::time::Duration;

use quartermaster_proto::choria::envelope::open_request;
use tokio::time::Instant;

use super::support::Rig;
use crate::link::fake::reply_to;
use crate::link::{EventSubscription, MAX_EVENT_BYTES, RawMessage, SinkFull};
use crate::metrics::Fact;

#[actix::test]
async fn every_host_that_answers_is_yielded_once_and_the_window_closes_after_the_last() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.ready().await;
    rig.broker.respond(|subject, request| {
        assert_eq!(subject, "provisioning.broadcast.agent.discovery");
        let hosts = ["n1.example.net", "n2.example.net", "n1.example.net"];
        hosts.iter().filter_map(|host| reply_to(request, host, b"pong")).collect()
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let began = Instant::now();
    let found = rig
        .link
        .discover(move |identity| {
            sink.lock().unwrap().push(identity.as_str().to_owned());
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), ["n1.example.net", "n2.example.net"]);
    assert_eq!((found.found, found.dropped), (2, 0));
    let took = began.elapsed().as_millis();
    assert!((300..=305).contains(&took), "{took} ms");
    let request = open_request(&rig.broker.published()[0].payload).unwrap().request;
    assert_eq!(request.filter.agent, ["choria_provision"]);
    assert_eq!(request.agent, "discovery");
}

#[actix::test]
async fn nobody_answers_within_the_limit() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.ready().await;
    let began = Instant::now();
    let found = rig.link.discover(|_| Ok(())).await.unwrap();
    assert_eq!(found.found, 0);
    assert_eq!(began.elapsed().as_secs(), 2);
}

#[actix::test]
async fn hostile_names_are_dropped_and_told_of() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.respond(|_, request| {
        let hosts = ["", "a b", "evil\nline", "*.example.net", &"x".repeat(300), "good.example.net"];
        let mut messages: Vec<_> = hosts.iter().filter_map(|host| reply_to(request, host, b"pong")).collect();
        let subject = messages[0].subject.clone();
        messages.push(RawMessage { subject: subject.clone(), payload: "rubbish".into() });
        let honest = reply_to(request, "liar.example.net", b"pong").unwrap();
        let forged = String::from_utf8(honest.payload.to_vec()).unwrap().replace("liar", "evil");
        messages.push(RawMessage { subject: subject.clone(), payload: forged.into() });
        messages.push(RawMessage { subject, payload: vec![b'x'; 100_000].into() });
        messages
    });
    let found = rig.link.discover(|_| Ok(())).await.unwrap();
    assert_eq!(found.found, 1);
    assert_eq!(rig.link.snapshot().rejected, 8);
    for fact in rig.facts() {
        if let Fact::ReplyRejected { host, reason } = fact {
            assert!(!host.contains('\n') && host.len() < 1000, "{host:?}");
            assert!(!reason.contains('\n') && reason.len() < 1000, "{reason:?}");
        }
    }
}

#[actix::test]
async fn a_sink_without_room_is_counted_not_waited_for() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.respond(|_, request| reply_to(request, "n1.example.net", b"pong").into_iter().collect());
    let found = rig.link.discover(|_| Err(SinkFull)).await.unwrap();
    assert_eq!((found.found, found.dropped), (1, 1));
    assert!(rig.facts().iter().any(|fact| matches!(fact, Fact::SightingDropped { .. })));
}

#[actix::test]
async fn events_reach_their_lane_across_reconnects() {
    tokio::time::pause();
    let seen = Arc::new(Mutex::new(0));
    let sink = Arc::clone(&seen);
    let rig = Rig::start(|settings| {
        settings.events.push(EventSubscription {
            subject: "choria.lifecycle.event.startup.>".to_owned(),
            lane: "events",
            sink: Arc::new(move |_| {
                let mut seen = sink.lock().unwrap();
                *seen += 1;
                if *seen > 3 { Err(SinkFull) } else { Ok(()) }
            }),
        });
    });
    let event = |size| RawMessage {
        subject: "choria.lifecycle.event.startup.provision_mode_server".to_owned(),
        payload: vec![b'x'; size].into(),
    };
    rig.ready().await;
    assert!(rig.broker.deliver(&event(10)));
    assert!(rig.broker.deliver(&event(MAX_EVENT_BYTES + 1)));
    tokio::time::sleep(Duration::from_millis(1)).await;
    rig.broker.drop_connections();
    tokio::time::sleep(Duration::from_mins(1)).await;
    rig.ready().await;
    for _ in 0..3 {
        assert!(rig.broker.deliver(&event(10)));
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*seen.lock().unwrap(), 4, "the oversized one never reached it");
    assert_eq!(rig.link.snapshot().dropped, 1);
    assert!(rig.facts().iter().any(|fact| matches!(fact, Fact::EventRejected { .. })));
}
