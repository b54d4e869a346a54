//! A pause overtakes any amount of data: fifty thousand servers announced at once, and the time until a pause is in force,
//! printed and never asserted.
//!
//! `cargo test --test system control_flood -- --nocapture` prints the figure of docs/performance.md.

use std::io::Write as _;
use std::time::{Duration, Instant};

use quartermaster_proto::choria::event::{self, Event, EventFormat, EventKind};
use serde_json::json;

use super::control_site::{Instance, by, client, good};
use super::prove_site::Site;

const SUBJECT: &str = "choria.lifecycle.event.startup.provision_mode_server";
const SERVERS: usize = 50_000;
/// So many in the queue are enough; some are in a cycle.
const ENOUGH: u64 = 45_000;
/// Times that they announce themselves at most.
const ANNOUNCEMENTS: usize = 8;
/// Pauses that are timed while all of them wait.
const ROUNDS: usize = 10;

fn started(number: usize) -> Vec<u8> {
    let event = Event {
        kind: EventKind::Startup,
        id: uuid::Uuid::new_v4().to_string(),
        identity: format!("ghost{number}.example.net"),
        component: "provision_mode_server".to_owned(),
        timestamp: time::OffsetDateTime::now_utc().unix_timestamp(),
        version: Some("0.29.4".to_owned()),
        new_version: None,
    };
    event::encode(&event, EventFormat::CloudEvent)
}

/// The time from asking for a pause until the answer says that it is in force.
async fn timed_pause(client: &async_nats::Client) -> Duration {
    let began = Instant::now();
    let answer = good(client, "quartermaster.pause", by("ann", "a measurement")).await;
    let took = began.elapsed();
    assert_eq!(answer["run_state"]["paused"]["who"], "ann");
    took
}

async fn resume(client: &async_nats::Client) {
    good(client, "quartermaster.resume", by("ann", "a measurement")).await;
}

async fn announce(client: &async_nats::Client) {
    for number in 0..SERVERS {
        client.publish(SUBJECT, started(number).into()).await.unwrap();
    }
    client.flush().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_overtakes_fifty_thousand_servers() {
    let Some(site) = Site::new() else { return };
    site.yaml(&format!("queue: {SERVERS}\ninterval: 1h\nloglevel: warn"));
    let (operator, announcer) = (client(&site).await, client(&site).await);
    let mut instance = Instance::start(&site, "prov1.example.net", "");
    instance.answers(&operator).await;

    let first = announcer.clone();
    let announcing = tokio::spawn(async move { announce(&first).await });
    let mut flooded = Vec::new();
    while !announcing.is_finished() {
        flooded.push(timed_pause(&operator).await);
        resume(&operator).await;
    }
    announcing.await.unwrap();
    // Lanes that were full have turned some away, who would be found at the next look: here they announce themselves again.
    let mut queued = 0;
    for _ in 0..ANNOUNCEMENTS {
        let status = good(&operator, "quartermaster.status", json!({})).await;
        queued = status["fleet"]["queued"].as_u64().unwrap();
        if queued >= ENOUGH {
            break;
        }
        announce(&announcer).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let mut waiting = Vec::new();
    for _ in 0..ROUNDS {
        waiting.push(timed_pause(&operator).await);
        resume(&operator).await;
    }
    assert!(instance.exited().is_none(), "{}", instance.log());
    for (what, mut times) in [("while they announced themselves", flooded), ("while they waited", waiting)] {
        times.sort();
        let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0);
        let line = format!(
            "pause {what}: {} pauses, median {:.1} ms, longest {:.1} ms ({SERVERS} servers, {queued} in the queue)\n",
            times.len(),
            ms(times.get(times.len() / 2)),
            ms(times.last())
        );
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
}
