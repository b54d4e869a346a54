use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quartermaster_actors::control::{ControlHandle, Controller, RunState};
use quartermaster_actors::fleet::{FleetHandle, FleetSnapshot};
use quartermaster_actors::journal::JournalHandle;
use quartermaster_actors::link::{LinkSnapshot, LinkState};
use quartermaster_actors::metrics::Recorder;
use quartermaster_actors::supervise::{
    Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy, SendRefused, Slot,
};
use serde_json::Value;
use tokio::sync::watch;

use super::*;

const SOON: Duration = Duration::from_secs(20);

/// An operator with a Controller of its own, a folder and a subject that the test reads.
struct Bench {
    operator: Operator,
    overseer: OverseerHandle,
    folder: tempfile::TempDir,
    published: Arc<Mutex<Vec<Bytes>>>,
    looks: Arc<Mutex<usize>>,
}

impl Bench {
    async fn new() -> Self {
        let (state, read) = watch::channel(RunState::working());
        let (state, recorder) = (Arc::new(state), Recorder::new("lab").unwrap());
        let slot = Slot::new("control", 8);
        let control = ControlHandle::new(slot.clone(), read);
        let owned = Owned::new(slot.clone(), RestartPolicy::standard(), move |birth, _| {
            Controller::new(Arc::clone(&state), recorder.clone(), birth.notice)
        });
        let overseer = Overseer::launch(OverseerSettings::default(), vec![Box::new(owned)], Arc::new(|_| {}));
        assert!(slot.up(SOON).await);
        let folder = tempfile::tempdir().unwrap();
        let published = Arc::new(Mutex::new(Vec::new()));
        let sink: AuditPublisher = {
            let published = Arc::clone(&published);
            Arc::new(move |record| {
                published.lock().unwrap().push(record);
                Box::pin(async { Ok(()) })
            })
        };
        let looks = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&looks);
        let operator = Operator::new(OperatorParts {
            about: About { instance: "prov1".to_owned(), site: "lab".to_owned(), cluster: "off" },
            config: serde_json::json!({"workers": 2}),
            control,
            fleet: FleetHandle::new(Slot::new("fleet", 1), watch::channel(FleetSnapshot::default()).1),
            journal: JournalHandle::in_memory(),
            look: Arc::new(move || {
                *counted.lock().unwrap() += 1;
                Ok::<(), SendRefused>(())
            }),
            link: Arc::new(link),
            cluster: Arc::new(ClusterView::default),
            overseer: overseer.clone(),
            audit: Audit::new(Some(folder.path()), Some(sink)),
            started: Instant::now(),
        });
        Self { operator, overseer, folder, published, looks }
    }

    /// The lines of the audit file.
    fn audited(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn close(self) {
        self.overseer.stop(Duration::from_secs(1)).await;
    }
}

fn link() -> LinkSnapshot {
    LinkSnapshot {
        state: LinkState::Connecting { rounds: 0, last_error: String::new(), refused: false },
        since: Duration::ZERO,
        connects: 0,
        refused_logins: 0,
        pending: 0,
        requests: 0,
        replies: 0,
        late: 0,
        rejected: 0,
        conflicts: 0,
        dropped: 0,
    }
}

fn by(who: &str, why: &str) -> Change {
    Change::new(who, why, Via::Message).unwrap()
}

#[actix::test]
async fn a_pause_says_who_why_and_since_when_until_it_is_resumed() {
    let bench = Bench::new().await;
    let paused = bench.operator.pause(&by("ann", "a move")).await.unwrap();
    assert!(paused.changed);
    assert_eq!(paused.run_state.paused.as_ref().map(|by| by.who.as_str()), Some("ann"));
    let says = &paused.run_state.says;
    assert!(says.starts_with("paused by ann since 20") && says.ends_with("Z because a move"), "{says}");
    assert_eq!(bench.operator.status().ready.role, "paused");
    assert!(!bench.operator.pause(&by("ann", "a move")).await.unwrap().changed);
    assert!(bench.operator.pause(&by("bob", "another")).await.unwrap().changed, "bob takes it over");
    let resumed = bench.operator.resume(&by("ann", "done")).await.unwrap();
    assert_eq!((resumed.changed, resumed.run_state.says.as_str()), (true, "working"));
    assert!(!bench.operator.resume(&by("ann", "done")).await.unwrap().changed);
    bench.close().await;
}

#[actix::test]
async fn a_flip_pauses_and_then_resumes() {
    let bench = Bench::new().await;
    assert!(bench.operator.flip(&by("ann", "x")).await.unwrap().run_state.paused.is_some());
    assert!(bench.operator.flip(&by("ann", "x")).await.unwrap().run_state.paused.is_none());
    bench.close().await;
}

#[actix::test]
async fn a_look_is_refused_while_paused_and_made_when_working() {
    let bench = Bench::new().await;
    bench.operator.discover(&by("ann", "x")).await.unwrap();
    bench.operator.pause(&by("ann", "x")).await.unwrap();
    let error = bench.operator.discover(&by("ann", "x")).await.unwrap_err();
    assert_eq!((error.code(), error.status()), ("not_now", 409));
    assert!(error.to_string().starts_with("not now: this instance is paused by ann"), "{error}");
    assert_eq!(*bench.looks.lock().unwrap(), 1);
    bench.close().await;
}

#[actix::test]
async fn a_drain_is_heard_by_who_waits_for_it() {
    let bench = Bench::new().await;
    let waiting = tokio::spawn({
        let operator = bench.operator.clone();
        async move { operator.drain_asked().await }
    });
    assert!(bench.operator.drain(&by("ann", "x")).await.unwrap().run_state.draining);
    tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
    bench.close().await;
}

#[actix::test]
async fn every_change_is_in_the_file_and_on_the_subject_with_its_outcome() {
    let bench = Bench::new().await;
    bench.operator.pause(&by("ann", "a \"move\"")).await.unwrap();
    bench.operator.discover(&by("bob", "x")).await.unwrap_err();
    bench.operator.resume(&by("ann", "done")).await.unwrap();
    bench.operator.resume(&by("ann", "done")).await.unwrap();
    bench.operator.settled(SOON).await;
    let audited = bench.audited();
    let outcomes: Vec<_> =
        audited.iter().map(|line| (line["verb"].as_str(), line["outcome"].as_str())).collect();
    let expected =
        [("pause", "done"), ("discover", "not_now"), ("resume", "done"), ("resume", "nothing_to_do")];
    assert_eq!(outcomes, expected.map(|(verb, outcome)| (Some(verb), Some(outcome))));
    assert_eq!(audited[0]["who"], "ann");
    assert_eq!(audited[0]["why"], "a \"move\"");
    assert_eq!(audited[0]["via"], "message");
    let published: Vec<Value> =
        bench.published.lock().unwrap().iter().map(|bytes| serde_json::from_slice(bytes).unwrap()).collect();
    assert_eq!(published, audited);
    let mode = std::fs::metadata(bench.folder.path().join("audit.log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777 & !0o640, 0, "{mode:o}");
    bench.close().await;
}

#[actix::test]
async fn a_file_that_was_moved_away_is_begun_anew_and_one_that_cannot_be_written_stops_nothing() {
    let bench = Bench::new().await;
    bench.operator.pause(&by("ann", "x")).await.unwrap();
    let file = bench.folder.path().join("audit.log");
    std::fs::rename(&file, bench.folder.path().join("audit.log.1")).unwrap();
    bench.operator.resume(&by("ann", "x")).await.unwrap();
    assert_eq!(bench.audited().len(), 1);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(bench.operator.pause(&by("ann", "x")).await.unwrap().changed);
    bench.close().await;
}

/// The place and the words of what is wrong with these two texts.
fn check_refused(who: &str, why: &str, at: &str, words: &str) {
    let error = Change::new(who, why, Via::Web).unwrap_err();
    assert_eq!((error.code(), error.at()), ("bad_input", Some(at)));
    assert!(error.to_string().contains(words), "{error}");
}

#[rustfmt::skip]
mod refused {
    use super::*;
    #[test] fn nobody() { check_refused(" ", "x", "/who", "must be said") }
    #[test] fn no_reason() { check_refused("ann", "", "/why", "must be said") }
    #[test] fn a_long_name() { check_refused(&"a".repeat(MAX_WHO + 1), "x", "/who", "more than 200") }
    #[test] fn a_long_reason() { check_refused("ann", &"é".repeat(MAX_WHY + 1), "/why", "more than 1000") }
    #[test] fn a_second_line() { check_refused("ann", "x\nERROR forged", "/why", "line break") }
}

#[test]
fn the_configuration_is_shown_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let yaml = write(
        "p.yaml",
        "helper: /bin/true --password hunter2\ntoken: s3cret-token\nbroker_provisioning_password: s3cret-pass\n\
         choria_insecure: true\nupgrades_repository: https://joe:s3cret-url@repo.example.net/x\n\
         control: {user: ops, password: s3cret-control}\n",
    );
    let cfg = write(
        "c.cfg",
        "identity = prov1.example.net\nplugin.choria.middleware_hosts = broker.example.net:4222\n",
    );
    let loaded = crate::config::load(&yaml, Some(&cfg), &crate::machine::surroundings());
    let shown = redacted(&loaded.config.unwrap());
    let text = shown.to_string();
    for secret in ["hunter2", "s3cret"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert_eq!(shown["token"], "[redacted]");
    assert_eq!(shown["broker"]["password"], "[redacted]");
    assert_eq!(shown["upgrades_repository"], "https://repo.example.net/x");
    assert_eq!(shown["broker"]["servers"][0], "nats://broker.example.net:4222");
    assert_eq!(shown["control"]["login"]["password"], "[redacted]");
    assert_eq!(shown["retry"]["give_up_after"], "never");
    // Every key of the file is there, so that one added later is not forgotten.
    let elsewhere = [
        "choria_insecure",
        "monitor_port",
        "broker_port",
        "rego_policy",
        "broker_provisioning_password",
        "leader_election",
    ];
    for key in crate::config::raw::KEYS[0].1.iter().filter(|key| !elsewhere.contains(key)) {
        assert!(shown.get(key).is_some(), "{key}");
    }
}

#[actix::test]
async fn a_name_that_cannot_be_one_a_keeper_that_is_down_and_their_codes() {
    let bench = Bench::new().await;
    let wrong = bench.operator.host("no such name").await.unwrap_err();
    assert_eq!((wrong.code(), wrong.at(), wrong.status()), ("bad_input", Some("/name"), 400));
    let down = bench.operator.retry("web1.example.net", &by("ann", "x")).await.unwrap_err();
    assert_eq!((down.code(), down.status()), ("unavailable", 503));
    assert_eq!(bench.audited()[0]["host"], "web1.example.net");
    assert_eq!(bench.audited()[0]["outcome"], "unavailable");
    bench.close().await;
}
