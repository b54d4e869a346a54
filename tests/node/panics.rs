//! T19: a part of the client that panics in the middle of its work shows no secret, and goes on without an operator.
//!
//! The client runs in a process of its own that is this test's program, so that its clock can be a trap: the part that is
//! aimed at panics when it next looks at the time, which every part does with what it was told in its hands.

use std::backtrace::Backtrace;
use std::process::Command;
use std::sync::{Arc, Mutex};

use quartermaster::config::{LogConfig, LogLevel, LogTarget};
use quartermaster::telemetry::{self, LogFormat};
use quartermaster_node::client::service::{self, NodeMetrics, Settings};
use quartermaster_proto::mesh::vault::GetRequest;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::support::{Options, Program, Site, eventually};

/// Holds the client's arguments in the process that runs it.
const CHILD: &str = "QM_NODE_PANICS";
/// What a panic of the trap says.
const FORCED: &str = "A part of the program failed unexpectedly: a trap of this test";

/// The value of a flag.
fn value(arguments: &[String], flag: &str) -> String {
    let at = arguments.iter().position(|argument| argument == flag).unwrap();
    arguments[at + 1].clone()
}

/// Not a test by itself: the next one runs it in a process of its own.
#[test]
fn process_whose_client_panics() {
    let Ok(arguments) = std::env::var(CHILD) else { return };
    let arguments: Vec<String> = serde_json::from_str(&arguments).unwrap();
    let log = LogConfig { target: LogTarget::Stderr, level: LogLevel::Debug };
    telemetry::init(&log, Some(LogFormat::Json)).unwrap();
    let aim: Arc<Mutex<Option<&str>>> = Arc::default();
    let trap = Arc::clone(&aim);
    let clock = move || {
        let mut aim = trap.lock().unwrap();
        if aim.is_some_and(|part| Backtrace::force_capture().to_string().contains(part)) {
            *aim = None;
            drop(aim);
            panic!("a trap of this test");
        }
        quartermaster::clock::now()
    };
    let settings = Settings {
        node: value(&arguments, "--node"),
        servers: value(&arguments, "--servers"),
        credentials: value(&arguments, "--credentials").into(),
        pins: vec![value(&arguments, "--pin").parse().unwrap()],
        socket: value(&arguments, "--socket").into(),
        state: value(&arguments, "--state").into(),
        allow_root: true,
        pace: 1,
    };
    let ended = actix::System::new().block_on(async move {
        for (kind, part) in [
            // When a value reaches it.
            (SignalKind::user_defined1(), "Module::handle_event"),
            // When an answer of the vault was opened.
            (SignalKind::user_defined2(), "VaultAsker::ask"),
        ] {
            let (mut signals, aim) = (signal(kind).unwrap(), Arc::clone(&aim));
            actix_rt::spawn(async move {
                while signals.recv().await.is_some() {
                    *aim.lock().unwrap() = Some(part);
                    tracing::info!(part, "the trap is set");
                }
            });
        }
        let metrics = NodeMetrics::new().unwrap();
        service::run(settings, metrics, Arc::new(clock), |_| (), std::future::pending()).await
    });
    panic!("{ended:?}");
}

/// The public keys that the client asked with, in order.
fn keys(site: &Site) -> Vec<[u8; 32]> {
    let asked = site.tap.since(0, "mesh-vault.get.provisioner.web1");
    asked.iter().map(|asked| GetRequest::read(&asked.body).unwrap().key).collect()
}

/// How often the client's log has this.
fn count(site: &Site, what: &str) -> usize {
    site.web1().log().lines().filter(|line| line.contains(what)).count()
}

/// Has a part of the client panic at the next chance.
async fn aim(site: &Site, signal: Signal) {
    let set = count(site, "the trap is set");
    site.web1().client.as_ref().unwrap().signal(signal);
    eventually("the trap is set", || (count(site, "the trap is set") > set).then_some(())).await;
}

/// T19, N103: the panics are in the log and no secret is; a module goes on with what is held, the vault's asker with another key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t19_a_part_of_the_client_that_panics_shows_no_secret_and_goes_on() {
    let Some(mut site) = Site::start(Options::default()).await else { return };
    site.machines[0].start_engine().await;
    let arguments = serde_json::to_string(&site.web1().client_arguments()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "panics::process_whose_client_panics", "--nocapture"]);
    command.env(CHILD, arguments).env("RUST_BACKTRACE", "full");
    let dir = site.web1().dir().to_owned();
    site.web1_mut().client = Some(Program::start(command, &dir, "node"));
    for (name, value) in [("pw", "canary-t19-first"), ("other", "canary-t19-other")] {
        site.store(&format!("own/forge/{name}"), value.as_bytes());
    }
    let module = site.web1().module("forge").file("a", "${secret:pw} ${secret:other}");
    site.assign(&module.secret("pw").secret("other")).await;
    site.web1().holds("a", "canary-t19-first canary-t19-other").await;
    let (first, asked) = (keys(&site)[0], keys(&site).len());

    aim(&site, Signal::USR1).await;
    site.store("own/forge/pw", b"canary-t19-second");
    site.web1().holds("a", "canary-t19-second canary-t19-other").await;
    assert_eq!((count(&site, FORCED), count(&site, "a module ended")), (1, 1));
    assert_eq!(keys(&site)[asked..], [first], "asked for the new value alone, with the key that is held");
    site.check_secrets();

    aim(&site, Signal::USR2).await;
    site.store("own/forge/pw", b"canary-t19-third");
    site.web1().holds("a", "canary-t19-third canary-t19-other").await;
    assert_eq!((count(&site, FORCED), count(&site, "a part of the client ended")), (2, 1));
    // Once more with the key that died with its holder, then for everything with another.
    let later = &keys(&site)[asked + 1..];
    assert_eq!(later[0], first);
    assert!(later.len() == 3 && later[1] == later[2] && later[1] != first, "{later:?}");
    site.web1_mut().client.as_mut().unwrap().assert_running();
    site.check_secrets();

    // The key of now serves on.
    site.store("own/forge/other", b"canary-t19-fourth");
    site.web1().holds("a", "canary-t19-third canary-t19-fourth").await;
    assert_eq!(keys(&site).last(), Some(&later[1]));
    site.check_secrets();
}
