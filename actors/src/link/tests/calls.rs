use std::time::Duration;

use tokio::time::Instant;
use zeroize::Zeroizing;

use super::support::{HOST, Rig, call_to, jwt_call};
use crate::link::fake::reply_to;
use crate::link::{CallError, ConflictFlag, RawMessage};
use crate::metrics::Fact;

#[actix::test]
async fn a_call_reaches_the_hosts_subject_and_its_reply_comes_back() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.respond(|_, request| reply_to(request, HOST, b"pong").into_iter().collect());
    let answer = rig.link.call(jwt_call(&ConflictFlag::new())).await.unwrap();
    assert_eq!(answer.payload, b"pong");
    let published = rig.broker.published();
    assert_eq!(published[0].subject, "provisioning.node.n1.example.net");
    let open = quartermaster_proto::choria::envelope::open_request(&published[0].payload).unwrap();
    assert_eq!(open.request.caller, "choria=test");
    assert_eq!(open.request.sender, "provisioner.example.net");
    assert_eq!(open.request.ttl, 60);
    assert!(open.reply_to.starts_with("provisioning.reply.") && open.reply_to.ends_with(&open.request.id));
}

#[actix::test]
async fn silence_times_out_at_the_agents_own_deadline() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.ready().await;
    for (agent, seconds) in [("choria_provision", 22), ("rpcutil", 4)] {
        let began = Instant::now();
        let mut call = jwt_call(&ConflictFlag::new());
        call.agent = agent;
        let error = rig.link.call(call).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
    assert_eq!(rig.link.snapshot().pending, 0);
}

#[actix::test]
async fn a_thousand_calls_at_once_each_get_their_own_answer() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.respond(|subject, request| {
        let host = subject.strip_prefix("provisioning.node.").unwrap();
        reply_to(request, host, host.as_bytes()).into_iter().collect()
    });
    let flag = ConflictFlag::new();
    let calls = (0..1000).map(|n| {
        let (link, flag) = (rig.link.clone(), flag.clone());
        async move {
            let host = format!("n{n}.example.net");
            let answer = link.call(call_to(&host, &flag)).await.unwrap();
            assert_eq!(answer.payload, host.as_bytes());
        }
    });
    futures::future::join_all(calls).await;
    assert_eq!(rig.link.snapshot().replies, 1000);
}

#[actix::test]
async fn a_request_over_the_brokers_limit_ends_at_once_and_only_itself() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.respond(|_, request| reply_to(request, HOST, b"pong").into_iter().collect());
    rig.broker.set_max_payload(10_000);
    let mut call = jwt_call(&ConflictFlag::new());
    call.data = Zeroizing::new(format!(r#"{{"token":"{}"}}"#, "x".repeat(20_000)));
    match rig.link.call(call).await.unwrap_err() {
        CallError::TooLarge { size, limit: 10_000 } => assert!(size > 20_000),
        other => panic!("{other:?}"),
    }
    assert_eq!(rig.broker.published().len(), 0);
    assert!(rig.link.call(jwt_call(&ConflictFlag::new())).await.is_ok());
    assert_eq!(rig.broker.connections(), 1);
}

#[actix::test]
async fn racing_forgeries_end_no_call_and_are_told_of() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.respond(|_, request| {
        let subject = reply_to(request, HOST, b"").unwrap().subject;
        let forged = reply_to(request, "evil.example.net", b"forged");
        let broken = RawMessage { subject, payload: "{}".into() };
        forged.into_iter().chain([broken]).chain(reply_to(request, HOST, b"true")).collect()
    });
    let flag = ConflictFlag::new();
    let answer = rig.link.call(jwt_call(&flag)).await.unwrap();
    assert_eq!(answer.payload, b"true");
    assert!(!flag.is_raised());
    assert_eq!(rig.link.snapshot().rejected, 2);
    let told = rig.facts().iter().filter(|fact| matches!(fact, Fact::ReplyRejected { .. })).count();
    assert_eq!(told, 2);
}

#[actix::test]
async fn only_forgeries_end_the_call_two_seconds_later() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.ready().await;
    rig.broker.respond(|_, request| reply_to(request, "evil.example.net", b"forged").into_iter().collect());
    let began = Instant::now();
    let error = rig.link.call(jwt_call(&ConflictFlag::new())).await.unwrap_err();
    assert!(matches!(&error, CallError::Malformed { reason } if reason.contains("evil")), "{error:?}");
    assert_eq!(began.elapsed().as_secs(), 2);
}

#[actix::test]
async fn two_different_replies_raise_the_cycles_flag() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.respond(|_, request| {
        let replies = [&b"one"[..], b"one", b"two"].map(|payload| reply_to(request, HOST, payload));
        replies.into_iter().flatten().collect()
    });
    let flag = ConflictFlag::new();
    let answer = rig.link.call(jwt_call(&flag)).await.unwrap();
    assert_eq!(answer.payload, b"one");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(flag.is_raised());
    assert_eq!(rig.link.snapshot().conflicts, 1);
    let told = |fact: &Fact| matches!(fact, Fact::ReplyConflict { action: "jwt", .. });
    assert!(rig.facts().iter().any(told));
}

#[actix::test]
async fn a_flood_of_rejected_replies_is_told_of_at_a_bounded_rate() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.broker.respond(|_, request| {
        let forged = reply_to(request, "evil.example.net", b"forged").unwrap();
        std::iter::repeat_n(forged, 500).chain(reply_to(request, HOST, b"true")).collect()
    });
    for _ in 0..10 {
        // The true one comes after too many others to be looked at.
        let _ = rig.link.call(jwt_call(&ConflictFlag::new())).await;
    }
    assert!(rig.link.snapshot().rejected >= 5000);
    let told = rig.facts().iter().filter(|fact| matches!(fact, Fact::ReplyRejected { .. })).count();
    assert!((1..=60).contains(&told), "{told}");
}

#[actix::test]
async fn when_the_link_ends_everybody_who_waits_is_told_at_once() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.ready().await;
    let waiting = {
        let link = rig.link.clone();
        actix::spawn(async move { link.call(jwt_call(&ConflictFlag::new())).await })
    };
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(rig.link.snapshot().pending, 1);
    let began = Instant::now();
    let addr = rig.link.slot().addr().unwrap();
    addr.do_send(crate::supervise::Force(crate::supervise::Ending::Panic));
    assert_eq!(waiting.await.unwrap(), Err(CallError::Down));
    assert!(began.elapsed() < Duration::from_secs(1));
    rig.broker.respond(|_, request| reply_to(request, HOST, b"pong").into_iter().collect());
    rig.live();
    assert!(rig.link.call(jwt_call(&ConflictFlag::new())).await.is_ok(), "the next life works");
}

#[actix::test]
async fn without_a_life_a_call_says_so() {
    tokio::time::pause();
    let rig = Rig::start(|_| {});
    rig.link.slot().clear();
    assert_eq!(rig.link.call(jwt_call(&ConflictFlag::new())).await, Err(CallError::Down));
}

#[actix::test]
async fn requests_beyond_the_bound_are_refused_not_queued() {
    tokio::time::pause();
    let rig = Rig::start(|settings| settings.max_pending = 3);
    rig.ready().await;
    let flag = ConflictFlag::new();
    let calls = (0..5).map(|_| {
        let (link, flag) = (rig.link.clone(), flag.clone());
        async move { link.call(jwt_call(&flag)).await.unwrap_err() }
    });
    let errors = futures::future::join_all(calls).await;
    assert_eq!(errors.iter().filter(|error| **error == CallError::QueueFull).count(), 2);
}
