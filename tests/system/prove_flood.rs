//! More events than anybody wants, many of them hostile: nothing is lost that a look would not heal, nothing gets into the log.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use quartermaster::emulate::FaultPlan;
use quartermaster_proto::choria::event::{self, Event, EventFormat, EventKind};
use serde_json::json;

use super::prove_site::{PATIENCE, Process, Site};
use super::support::{BrokerOptions, eventually};

const SUBJECT: &str = "choria.lifecycle.event.startup.provision_mode_server";
const SERVERS: &str = "choria.lifecycle.event.startup.server";

fn unix_now() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

/// The startup event of a server in provisioning mode, as a server writes it.
fn started(identity: &str) -> Vec<u8> {
    let event = Event {
        kind: EventKind::Startup,
        id: uuid::Uuid::new_v4().to_string(),
        identity: identity.to_owned(),
        component: "provision_mode_server".to_owned(),
        timestamp: unix_now(),
        version: Some("0.29.4".to_owned()),
        new_version: None,
    };
    event::encode(&event, EventFormat::CloudEvent)
}

/// Events that nobody honest sends.
fn hostile() -> Vec<Vec<u8>> {
    let document = |identity: serde_json::Value| {
        json!({"protocol": "io.choria.lifecycle.v1.startup", "id": "1", "identity": identity,
               "component": "provision_mode_server", "timestamp": unix_now(), "version": "1"})
        .to_string()
        .into_bytes()
    };
    let named = |identity: &str| document(json!(identity));
    let mut events = vec![
        Vec::new(),
        b"not JSON".to_vec(),
        b"\x00\x01\x02\x1b[2J\r\nINJECTED".to_vec(),
        b"\xff\xfe\xff".to_vec(),
        b"{\"protocol\":\"io.choria.lifecycle.v1.startup\"".to_vec(),
        b"{\"protocol\":\"io.choria.lifecycle.v1.INJECTED\\n\\u001b[31mINJECTED\"}".to_vec(),
        "[".repeat(100_000).into_bytes(),
        format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000)).into_bytes(),
        vec![b'x'; 10 * 1024 * 1024],
        named(&"a".repeat(10 * 1024 * 1024)),
        named(&"a".repeat(300)),
        named("web\n2026-01-01T00:00:00Z ERROR INJECTED"),
        named("web\r\nINJECTED"),
        named("\u{1b}[31mINJECTED\u{1b}[0m"),
        named("web\u{7}\u{8}\u{0}INJECTED"),
        named("web\u{2028}INJECTED\u{202e}"),
        named("web.*"),
        named("web.>"),
        named("..".to_owned().as_str()),
        named(""),
        named("web example net"),
        named("wéb.example.net"),
        document(json!(42)),
        document(json!(null)),
        document(json!(["web1.example.net"])),
        document(json!({"web1": "example.net"})),
    ];
    for (key, value) in [
        ("timestamp", json!("now")),
        ("timestamp", json!(1.5e300)),
        ("timestamp", json!(i64::MIN)),
        ("timestamp", json!(i64::MAX)),
        ("id", json!(7)),
        ("component", json!(["provision_mode_server"])),
        ("protocol", json!({"io": "choria"})),
        ("version", json!({})),
    ] {
        let mut event: serde_json::Value = serde_json::from_slice(&named("liar.example.net")).unwrap();
        event.as_object_mut().unwrap().insert(key.to_owned(), value);
        events.push(event.to_string().into_bytes());
    }
    events
}

async fn publisher(site: &Site) -> async_nats::Client {
    async_nats::connect(site.broker.url()).await.unwrap()
}

/// No line of the log was made by a stranger: every one begins as ours do, and nothing in it can move a cursor.
fn assert_log_is_ours(process: &Process) {
    let log = process.log_bytes();
    let harmful = log.iter().filter(|byte| byte.is_ascii_control() && **byte != b'\n').count();
    assert_eq!(harmful, 0, "{}", process.log().escape_debug());
    let log = String::from_utf8(log).expect("the log is UTF-8");
    for line in log.lines() {
        let ours = line.get(..4).is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit()));
        assert!(ours && !line.starts_with("2026-01-01T00:00:00Z"), "not a line of ours: {line:?}");
        assert!(!line.contains(['\u{2028}', '\u{202e}']), "{line:?}");
    }
}

#[tokio::test]
async fn five_thousand_events_a_second_and_hostile_ones_lose_no_server_and_get_nowhere() {
    let options = BrokerOptions::new().max_payload(16 * 1024 * 1024).extra("max_pending: 256MB");
    let Some(site) = Site::with(options) else { return };
    // So few may wait that most sightings have to be turned away.
    site.yaml("queue: 100\nin_flight: 1024");
    let mut process = site.run();
    process.ready().await;
    let client = publisher(&site).await;
    let before = process.series().len();
    let mut events: Vec<(&str, bytes::Bytes)> = Vec::new();
    for number in 0..5000 {
        events.push((SUBJECT, started(&format!("ghost{number}.example.net")).into()));
    }
    for (number, event) in hostile().into_iter().enumerate() {
        let event = bytes::Bytes::from(event);
        events.insert(number * 100, (SUBJECT, event.clone()));
        events.insert(number * 100, (SERVERS, event));
    }
    // As fast as they go, which is a second or so.
    for (subject, event) in events {
        client.publish(subject, event).await.unwrap();
    }
    client.flush().await.unwrap();
    let fleet = site.servers("web", 50, |_| ()).await;
    eventually("hostile events were counted", || process.metric("quartermaster_rejected_events_total") >= 20)
        .await;
    eventually("turned-away sightings were counted", || {
        process.metric("quartermaster_dropped_sightings_total") >= 100
    })
    .await;
    // At the latest the look after a minute finds those that were turned away.
    fleet.wait_until_all_provisioned(3 * PATIENCE).await.unwrap();
    assert_eq!(fleet.report().duplicate_configures, 0);
    assert_eq!(process.series().len(), before);
    assert!(process.exited().is_none());
    assert_eq!(process.metric("quartermaster_actor_endings_total"), 0);
    assert_log_is_ours(&process);
}

#[tokio::test]
async fn fifty_thousand_identities_make_no_new_series_and_memory_stays_bounded() {
    let Some(site) = Site::new() else { return };
    // Each server fails for a reason of its own.
    site.helper_also("echo no role for $identity >&2; exit 1");
    let mut process = site.run();
    process.ready().await;
    let before: BTreeSet<String> = process.series().iter().map(|line| name_and_labels(line)).collect();
    let failing = site.servers("odd", 20, |_| ()).await;
    eventually("all odd ones have failed", || process.fleet("failed_total") >= 20).await;
    let client = publisher(&site).await;
    for thousand in 0..50 {
        for number in 0..1000 {
            let identity = format!("ghost{thousand}-{number}.example.net");
            client.publish(SUBJECT, started(&identity).into()).await.unwrap();
        }
        client.flush().await.unwrap();
        let status = process.status();
        assert_eq!(status["link"]["connected"], true, "{status}");
    }
    let known = |process: &Process| {
        let fleet = process.status()["fleet"].clone();
        ["queued", "in_flight", "cooling"].iter().filter_map(|key| fleet[key].as_u64()).sum::<u64>()
    };
    let dropped = |process: &Process| process.metric("quartermaster_dropped_sightings_total");
    eventually("all are known or counted as dropped", || known(&process) + dropped(&process) >= 49_900).await;
    assert!(known(&process) >= 30_000, "{}", process.status());
    let after: BTreeSet<String> = process.series().iter().map(|line| name_and_labels(line)).collect();
    assert_eq!(after.symmetric_difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
    let resident = process.resident();
    assert!(resident < 300 * 1024 * 1024, "{resident} bytes resident");
    assert_eq!(failing.stats().configures, 0);
    assert!(process.exited().is_none());
}

fn name_and_labels(line: &str) -> String {
    line.rsplit_once(' ').map_or(line, |(series, _)| series).to_owned()
}

#[tokio::test]
async fn a_thousand_machines_that_vanish_do_not_hold_up_fifty_that_stay() {
    let Some(site) = Site::new() else { return };
    let mut process = site.run();
    process.ready().await;
    let gone = |settings: &mut quartermaster::emulate::FleetSettings| {
        settings.faults = FaultPlan::parse("vanish=all").unwrap();
    };
    let vanished = site.servers("gone", 1000, gone).await;
    vanished.wait_until(PATIENCE, |stats| stats.vanished == 1000).await.unwrap();
    let stays = site.servers("web", 50, |_| ()).await;
    // 64 places, each lent for two seconds to one that does not answer: half a minute for all of those before us.
    stays.wait_until_all_provisioned(2 * PATIENCE).await.unwrap();
    assert_eq!(stays.report().duplicate_configures, 0);
}

#[tokio::test]
async fn with_room_for_ten_two_hundred_servers_get_done_once_however_often_their_start_is_replayed() {
    let Some(site) = Site::new() else { return };
    let runs = site.path("runs");
    site.helper_also(&format!("echo $identity >> {}", runs.display()));
    let listener = publisher(&site).await;
    let mut starts = listener.subscribe(SUBJECT).await.unwrap();
    listener.flush().await.unwrap();
    let inside = site
        .inside(|config| {
            config.queue = std::num::NonZeroUsize::new(10).unwrap();
            config.in_flight = std::num::NonZeroUsize::new(20).unwrap();
        })
        .await;
    let fleet = site.servers("web", 200, |_| ()).await;
    let mut recorded = Vec::new();
    while recorded.len() < 200 {
        recorded.push(starts.next().await.unwrap().payload);
    }
    let mut numbers = inside.fleet.subscribe();
    let turned_away = numbers.wait_for(|now| now.counts.known > 0);
    tokio::time::timeout(PATIENCE, turned_away).await.expect("some are turned away").unwrap();
    fleet.wait_until_all_provisioned(2 * PATIENCE).await.unwrap();
    for _ in 0..50 {
        for event in &recorded {
            listener.publish(SUBJECT, event.clone()).await.unwrap();
        }
        listener.flush().await.unwrap();
    }
    // Its start comes after all of the replays.
    let last = site.servers("last", 1, |_| ()).await;
    last.wait_until_all_provisioned(2 * PATIENCE).await.unwrap();
    let report = fleet.report();
    assert_eq!((report.totals.configures, report.totals.restarts), (200, 200));
    assert_eq!(report.duplicate_configures, 0);
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 201);
    assert_eq!(inside.fleet.snapshot().failed, 0);
}

#[tokio::test]
async fn a_server_whose_helper_always_fails_is_tried_ever_more_rarely_and_alone_in_it() {
    let Some(site) = Site::new() else { return };
    let runs = site.path("runs");
    site.helper_also(&format!(
        "case $identity in bad*) date +%s%N >> {}; echo no such role >&2; exit 1;; esac",
        runs.display()
    ));
    let inside = site
        .inside(|config| {
            config.retry.first = Duration::from_millis(500);
            config.retry.cap = Duration::from_secs(4);
        })
        .await;
    let bad = site.servers("bad", 1, |_| ()).await;
    let good = site.servers("good", 30, |_| ()).await;
    good.wait_until_all_provisioned(PATIENCE).await.unwrap();
    let tries = || -> Vec<u128> {
        let text = std::fs::read_to_string(&runs).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    eventually("it was tried five times", || tries().len() >= 5).await;
    let tries = tries();
    let waits: Vec<u128> =
        tries.windows(2).map(|pair| pair.last().unwrap() - pair.first().unwrap()).collect();
    // The second run may have waited for a worker; nothing makes a wait shorter.
    assert!(waits.last().unwrap() >= &(2 * waits.iter().min().unwrap()), "waits do not grow: {waits:?}");
    let troubled = inside.fleet.troubled(10).await.unwrap();
    let view =
        troubled.iter().find(|view| view.identity.as_str() == "bad1.example.net").expect("it is listed");
    let failure = view.failure.as_ref().expect("with its last failure");
    assert_eq!(failure.cause, "helper");
    assert!(failure.error.contains("exit"), "{}", failure.error);
    assert_eq!(troubled.len(), 1, "{troubled:?}");
    assert_eq!((good.stats().repeated_configures, bad.stats().configures), (0, 0));
}

#[tokio::test]
async fn steps_that_fail_twice_are_tried_again_however_old_the_process() {
    let Some(site) = Site::new() else { return };
    site.yaml("helper_timeout: 5s");
    let inside = site.inside(|config| config.broker.connect_timeout = Duration::from_secs(1)).await;
    // Longer than any of these limits, with nothing to do.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let fleet = site
        .servers("web", 3, |settings| {
            settings.faults = FaultPlan::parse("abort_configure:2=all").unwrap();
        })
        .await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert_eq!((fleet.stats().configures, fleet.stats().repeated_configures), (3, 0));
    assert_eq!(inside.fleet.snapshot().failed, 0);
}
