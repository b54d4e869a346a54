//! The lines that facts become.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quartermaster_actors::metrics::{Fact, Found, HelperOutcome, Recorder};

use super::{SOON, host};

/// A log in memory, one JSON-free line per event: level, fields, message.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn logged(facts: Vec<Fact>) -> Vec<String> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .with_writer(move || writer.clone())
        .finish();
    let recorder = Recorder::new("lab").unwrap();
    tracing::subscriber::with_default(subscriber, || {
        for fact in facts {
            recorder.record(fact);
        }
    });
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(|line| line.trim_start().to_owned()).collect()
}

fn check_line(fact: Fact, expected: &str) {
    assert_eq!(logged(vec![fact]), [expected]);
}

#[test]
fn a_discovered_host_is_logged_in_the_peers_words() {
    check_line(
        Fact::HostFound { host: host(), by: Found::Discovery },
        r#"INFO Adding web1 to the provision list after discovering it component="hosts" host="web1""#,
    );
}

#[test]
fn a_host_found_by_event_is_logged_in_the_peers_words() {
    check_line(
        Fact::HostFound { host: host(), by: Found::Event },
        r#"INFO Adding web1 to the provision list after receiving an event component="hosts" host="web1""#,
    );
}

#[test]
fn the_start_of_a_cycle_is_logged_in_the_peers_words() {
    check_line(
        Fact::CycleStarted { host: host(), attempt: 2, waited: Duration::from_millis(7) },
        r#"INFO Provisioning web1 component="web1" host="web1" attempt=2 waited_ms=7"#,
    );
}

#[test]
fn a_provisioned_host_is_logged_in_the_peers_words() {
    check_line(
        Fact::HostProvisioned { host: host(), took: Duration::from_millis(7) },
        r#"INFO Provisioned web1 component="web1" host="web1" took_ms=7"#,
    );
}

#[test]
fn a_failed_host_is_logged_in_the_peers_words() {
    let error = "it would not".to_owned();
    check_line(
        Fact::HostFailed { host: host(), cause: "csr", error, attempt: 3, retry_in: None },
        r#"ERROR Could not provision web1: it would not component="web1" host="web1" cause="csr" attempt=3 retry_in="never""#,
    );
}

#[test]
fn leadership_and_pauses_are_logged_in_the_peers_words() {
    let lines = logged(vec![Fact::LeadershipWon, Fact::LeadershipLost, Fact::DiscoverySkipped]);
    assert_eq!(
        lines,
        [
            r#"INFO Became leader after winning election component="hosts""#,
            r#"WARN Lost leadership component="hosts""#,
            r#"WARN Skipping discovery while paused component="hosts""#,
        ]
    );
}

#[test]
fn nothing_a_stranger_sends_can_begin_a_line_or_move_the_cursor() {
    let evil = "web1\nINFO Provisioned web2\r\u{1b}[2J\u{202e}".to_owned();
    let facts = vec![
        Fact::HostFound { host: evil.clone(), by: Found::Event },
        Fact::EventRejected { error: evil.clone() },
        Fact::ReplyRejected { host: evil.clone(), reason: evil.clone() },
        Fact::HelperSaid { host: evil.clone(), line: evil.clone() },
        Fact::HostFailed {
            host: evil.clone(),
            cause: "csr",
            error: evil.clone(),
            attempt: 1,
            retry_in: Some(SOON),
        },
        Fact::HostDeferred { host: evil.clone(), msg: evil.clone(), retry_in: SOON },
        Fact::LinkChanged { connected: false, detail: evil.clone() },
        Fact::DiscoveryFailed { error: evil.clone() },
        Fact::ActorEnded { actor: "link", cause: "failed", decision: evil.clone() },
        Fact::HelperRan {
            host: evil.clone(),
            took: SOON,
            waited: SOON,
            outcome: HelperOutcome::Failed,
            error: Some(evil.clone()),
        },
        Fact::RpcFinished { host: evil.clone(), agent: "a", action: "b", took: SOON, error: Some(evil) },
    ];
    let count = facts.len();
    let lines = logged(facts);
    assert_eq!(lines.len(), count, "{lines:#?}");
    for line in lines {
        assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
    }
}

#[test]
fn a_huge_error_is_cut() {
    let error = "x".repeat(1_000_000);
    let lines = logged(vec![Fact::DiscoveryFailed { error }]);
    assert!(lines[0].len() < 1200, "{}", lines[0].len());
}

#[test]
fn a_flood_of_rejected_events_is_counted_whole_and_logged_in_part() {
    let flood = (0..5000).map(|n| Fact::EventRejected { error: format!("not JSON: {n}") }).collect();
    let lines = logged(flood);
    // Ten a second; the recording of five thousand may straddle a second or two on a busy machine.
    assert!((10..=50).contains(&lines.len()), "{}", lines.len());
}

#[test]
fn a_network_that_shows_no_servers_is_explained_once_and_warned_of_never() {
    let unseen = || Fact::HostUnconfirmed { host: host() };
    let lines = logged(vec![unseen(), unseen()]);
    let levels: Vec<_> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(levels, ["INFO", "DEBUG", "DEBUG"], "{lines:?}");
}

#[test]
fn where_servers_are_seen_one_that_is_not_is_a_warning() {
    let seen = Fact::HostConfirmed { host: "web2".to_owned(), took: SOON };
    let lines = logged(vec![seen, Fact::HostUnconfirmed { host: host() }]);
    assert_eq!(lines[1], r#"WARN Not seen as a server after its restart: web1 component="web1" host="web1""#);
}
