use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quartermaster_proto::choria::Generation;
use quartermaster_proto::time::WallClock;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::*;
use crate::link::fake::{FakeBroker, FakeCredentials, FakeResolver};
use crate::link::{Asked, LinkHandle, LinkParts, LinkSettings, ServerAddress, Servers};
use crate::supervise::{Ending, Force, Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy};

/// A service over a fake broker: `echo` (a question) and `change` (a command) answer at once, `slow` and `hold` when let go,
/// `fail` with a fault, `panic` never.
struct Rig {
    broker: FakeBroker,
    service: ServiceHandle,
    overseer: OverseerHandle,
    gate: Arc<Semaphore>,
}

fn answer(request: &Request) -> Reply {
    match request.endpoint {
        "fail" => Reply::Fault {
            status: 404,
            text: "no such\nthing".to_owned(),
            body: Bytes::from_static(b"{\"error\":1}"),
        },
        "panic" => panic!("as asked"),
        _ => Reply::Answer(request.payload.clone()),
    }
}

fn asked(subject: &str, payload: &'static [u8], reply: &str) -> Asked {
    Asked {
        subject: subject.to_owned(),
        payload: Bytes::from_static(payload),
        reply: Some(reply.to_owned()).filter(|reply| !reply.is_empty()),
    }
}

impl Rig {
    async fn start() -> Self {
        let servers = Servers::List(vec![ServerAddress::new("broker.example.net", 4222)]);
        let mut settings = LinkSettings::new(servers, "prov1.example.net", Generation::V1);
        settings.backoff_scale = 0.01;
        let broker = FakeBroker::new();
        let link = LinkHandle::new(
            settings,
            LinkParts {
                credentials: Arc::new(FakeCredentials::new("choria=test")),
                broker: Arc::new(broker.clone()),
                resolver: Arc::new(FakeResolver::default()),
                clock: Arc::new(|| WallClock::from_seconds(0)),
                random: Arc::new(|| [7; 16]),
                random_u32: Arc::new(|| 7),
                facts: Arc::new(|_| ()),
            },
        );
        let gate = Arc::new(Semaphore::new(0));
        let opens = Arc::clone(&gate);
        let handler: RequestHandler = Arc::new(move |request| {
            let opens = Arc::clone(&opens);
            Box::pin(async move {
                if matches!(request.endpoint, "slow" | "hold") {
                    opens.acquire().await.unwrap().forget();
                }
                answer(&request)
            })
        });
        let endpoint = |name, lane| Endpoint {
            name,
            lane,
            metadata: BTreeMap::from([("for".to_owned(), name.to_owned())]),
        };
        let service = ServiceHandle::new(ServiceSettings {
            name: "made-up",
            version: "1.2.3",
            description: "for a test",
            metadata: BTreeMap::from([("site".to_owned(), "lab".to_owned())]),
            prefix: "qm".to_owned(),
            instance: "prov1.example.net".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            endpoints: vec![
                endpoint("echo", Lane::Question),
                endpoint("slow", Lane::Question),
                endpoint("fail", Lane::Question),
                endpoint("panic", Lane::Question),
                endpoint("change", Lane::Command),
                endpoint("hold", Lane::Command),
            ],
            handler,
            busy: Reply::Fault { status: 429, text: "busy".to_owned(), body: Bytes::from_static(b"busy") },
            link: link.clone(),
        });
        let wards: Vec<Box<dyn crate::supervise::Ward>> = vec![
            Box::new(Owned::new(link.slot().clone(), RestartPolicy::standard().at_once(), link.factory())),
            Box::new(Owned::new(
                service.slot().clone(),
                RestartPolicy::standard().at_once(),
                service.factory(),
            )),
        ];
        let overseer = Overseer::launch(OverseerSettings::default(), wards, Arc::new(|_| ()));
        let rig = Self { broker, service, overseer, gate };
        rig.listening(true).await;
        rig
    }

    async fn listening(&self, listening: bool) {
        let mut state = self.service.subscribe();
        let wait = state.wait_for(|now| now.listening == listening);
        tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap().unwrap();
    }

    fn ask(&self, subject: &str, payload: &'static [u8], reply: &str) {
        assert!(self.broker.ask(&asked(subject, payload, reply)), "nobody listens to {subject}");
    }

    /// Asks for an echo as soon as somebody listens: that nobody did may be over before it can be seen.
    async fn asked_once_heard(&self, reply: &str) {
        self.until("somebody listens", || self.broker.ask(&asked("qm.echo", b"x", reply))).await;
    }

    async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..2000 {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not seen: {what}");
    }

    /// Payload and headers of the answer that went there.
    async fn answered(&self, reply: &str) -> (Bytes, Vec<(&'static str, String)>) {
        for _ in 0..2000 {
            if let Some(found) = self.broker.answers().into_iter().find(|answer| answer.to == reply) {
                return (found.payload, found.headers);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no answer to {reply}: {:?}", self.broker.answers());
    }

    async fn json(&self, subject: &str) -> Value {
        let reply = format!("to.{subject}");
        self.ask(subject, b"", &reply);
        serde_json::from_slice(&self.answered(&reply).await.0).unwrap()
    }

    async fn close(self) {
        self.overseer.stop(Duration::from_secs(2)).await;
    }
}

#[actix::test]
async fn everybody_and_this_instance_alone_can_be_asked() {
    let rig = Rig::start().await;
    for subject in ["qm.echo", "qm.echo.prov1.example.net"] {
        rig.ask(subject, b"hello", subject);
        assert_eq!(rig.answered(subject).await, (Bytes::from_static(b"hello"), vec![]));
    }
    rig.close().await;
}

#[actix::test]
async fn the_services_protocol_tells_who_is_there_what_is_offered_and_what_was_done() {
    let rig = Rig::start().await;
    let ping = rig.json("$SRV.PING").await;
    let id = ping["id"].as_str().unwrap().to_owned();
    assert_eq!(
        ping,
        json!({
            "type": "io.nats.micro.v1.ping_response", "name": "made-up", "id": id, "version": "1.2.3",
            "metadata": {"site": "lab"},
        })
    );
    let info = rig.json("$SRV.INFO.made-up").await;
    assert_eq!(info["type"], "io.nats.micro.v1.info_response");
    assert_eq!(info["description"], "for a test");
    let echo = json!({"name": "echo", "subject": "qm.echo", "queue_group": "", "metadata": {"for": "echo"}});
    assert_eq!(info["endpoints"][0], echo);
    rig.ask("qm.fail", b"", "to.fail");
    rig.answered("to.fail").await;
    rig.service.settled(Duration::from_secs(5)).await;
    let stats = rig.json(&format!("$SRV.STATS.made-up.{id}")).await;
    assert_eq!(stats["started"], "2026-01-01T00:00:00Z");
    let fail = &stats["endpoints"][2];
    assert_eq!((&fail["num_requests"], &fail["num_errors"]), (&json!(1), &json!(1)));
    assert_eq!(fail["last_error"], "404:no such\nthing");
    rig.close().await;
}

#[actix::test]
async fn a_fault_has_its_number_and_its_words_in_headers_on_one_line() {
    let rig = Rig::start().await;
    rig.ask("qm.fail", b"", "to");
    let (body, headers) = rig.answered("to").await;
    assert_eq!(body, "{\"error\":1}");
    let expected = [("Nats-Service-Error", "no such\\nthing"), ("Nats-Service-Error-Code", "404")];
    assert_eq!(headers, expected.map(|(name, value)| (name, value.to_owned())));
    rig.close().await;
}

#[actix::test]
async fn a_slow_request_holds_up_no_other_and_a_flood_of_questions_no_command() {
    let rig = Rig::start().await;
    for number in 0..200 {
        rig.ask("qm.slow", b"", &format!("slow.{number}"));
    }
    // The first so many wait; the others are refused at once.
    assert_eq!(rig.answered("slow.199").await.0, "busy");
    rig.ask("qm.change", b"done", "command");
    assert_eq!(rig.answered("command").await.0, "done");
    assert_eq!(rig.service.snapshot().under_way, 64);
    rig.gate.add_permits(64);
    rig.answered("slow.0").await;
    rig.service.settled(Duration::from_secs(20)).await;
    rig.ask("qm.echo", b"x", "echo");
    assert_eq!(rig.answered("echo").await.0, "x");
    rig.close().await;
}

#[actix::test]
async fn a_panic_costs_the_one_request_that_caused_it() {
    let rig = Rig::start().await;
    rig.ask("qm.panic", b"", "panic");
    rig.ask("qm.echo", b"x", "echo");
    assert_eq!(rig.answered("echo").await.0, "x");
    rig.service.settled(Duration::from_secs(20)).await;
    assert_eq!(rig.service.snapshot().under_way, 0);
    assert!(rig.broker.answers().iter().all(|answer| answer.to != "panic"));
    rig.close().await;
}

#[actix::test]
async fn a_command_that_nobody_waits_for_is_carried_out_and_a_question_is_not() {
    let rig = Rig::start().await;
    rig.ask("qm.slow", b"", "");
    rig.ask("qm.hold", b"", "");
    let mut state = rig.service.subscribe();
    state.wait_for(|now| now.under_way == 1).await.unwrap();
    rig.gate.add_permits(1);
    state.wait_for(|now| now.under_way == 0).await.unwrap();
    assert_eq!(rig.broker.answers(), vec![]);
    rig.close().await;
}

#[actix::test]
async fn a_new_connection_and_a_new_life_are_the_same_service_with_its_numbers() {
    let rig = Rig::start().await;
    rig.ask("qm.echo", b"x", "first");
    rig.answered("first").await;
    let id = rig.json("$SRV.PING").await["id"].clone();
    rig.broker.drop_connections();
    rig.asked_once_heard("second").await;
    rig.answered("second").await;
    let before = rig.service.slot().addr();
    rig.service.slot().try_send(Force(Ending::Panic)).unwrap();
    rig.until("it lives again", || rig.service.slot().addr().is_some_and(|now| Some(now) != before)).await;
    rig.asked_once_heard("third").await;
    rig.answered("third").await;
    rig.service.settled(Duration::from_secs(5)).await;
    let stats = rig.json("$SRV.STATS").await;
    assert_eq!((&stats["id"], &stats["endpoints"][0]["num_requests"]), (&id, &json!(3)));
    rig.close().await;
}
