use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use time::OffsetDateTime;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::config::LogLevel;

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Sink for Lines {
    fn line(&self, line: &str) -> io::Result<()> {
        self.0.lock().unwrap().push(line.to_owned());
        Ok(())
    }
}

/// The lines that `work` logs.
fn logged(format: LogFormat, level: LogLevel, work: impl FnOnce()) -> Vec<String> {
    let lines = Arc::new(Lines::default());
    let layer =
        LogLayer::new(format, level, Arc::clone(&lines) as Arc<dyn Sink>).at(|| OffsetDateTime::UNIX_EPOCH);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
    std::mem::take(&mut lines.0.lock().unwrap())
}

fn json(work: impl FnOnce()) -> serde_json::Value {
    let lines = logged(LogFormat::Json, LogLevel::Debug, work);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(line.matches('\n').count(), 1, "one event is one line");
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_json_line_has_its_keys_in_order() {
    let lines = logged(LogFormat::Json, LogLevel::Info, || {
        tracing::info!(
            component = "hosts",
            host = "n1.example.net",
            took_ms = 12,
            ok = true,
            "Provisioned n1"
        );
    });
    assert_eq!(
        lines,
        [
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"msg\":\"Provisioned n1\",\"component\":\"hosts\",\
          \"host\":\"n1.example.net\",\"took_ms\":12,\"ok\":true}\n"
        ]
    );
}

#[test]
fn a_line_for_the_journal_has_its_priority_and_no_time_and_names_the_host() {
    let to_journal = |format| {
        let lines = Arc::new(Lines::default());
        let layer = LogLayer::new(format, LogLevel::Debug, Arc::clone(&lines) as Arc<dyn Sink>)
            .at(|| OffsetDateTime::UNIX_EPOCH)
            .to_journal(true)
            .of_host(Some("web1"));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!(component = "client", "e");
            tracing::warn!(component = "client", module = "forge", reason = "<3>", "failed");
            tracing::info!(component = "client", host = "other", "i");
            tracing::debug!(component = "client", "d");
        });
        std::mem::take(&mut *lines.0.lock().unwrap())
    };
    assert_eq!(
        to_journal(LogFormat::Text),
        [
            "<3>ERROR   client: e host=web1\n",
            "<4>WARNING client: failed host=web1 module=forge reason=<3>\n",
            "<6>INFO    client: i host=other\n",
            "<7>DEBUG   client: d host=web1\n",
        ]
    );
    assert_eq!(
        to_journal(LogFormat::Json)[1],
        "<4>{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"warning\",\"msg\":\"failed\",\"component\":\"client\",\
         \"host\":\"web1\",\"module\":\"forge\",\"reason\":\"<3>\"}\n"
    );
}

#[test]
fn a_text_line_is_for_people() {
    let lines = logged(LogFormat::Text, LogLevel::Info, || {
        tracing::warn!(component = "hosts", host = "n1", cause = "too slow", "Could not provision n1");
        tracing::info!(component = "n1", host = "n1", "Provisioning n1");
    });
    assert_eq!(
        lines,
        [
            "1970-01-01T00:00:00.000Z WARNING hosts: Could not provision n1 host=n1 cause=\"too slow\"\n",
            "1970-01-01T00:00:00.000Z INFO    n1: Provisioning n1\n"
        ]
    );
}

#[test]
fn nothing_from_outside_forges_a_line() {
    let evil = "x\n{\"level\":\"error\",\"msg\":\"forged\"}\r\u{1b}[2J\u{85}\u{2028}\u{202e}\u{7f}\0";
    for format in [LogFormat::Json, LogFormat::Text] {
        let lines = logged(format, LogLevel::Info, || {
            tracing::info!(host = evil, component = evil, other = evil, "Adding {evil}");
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let body = line.strip_suffix('\n').unwrap();
        assert!(!body.contains(|c: char| c.is_control() || c == '\u{2028}' || c == '\u{202e}'), "{line:?}");
    }
    assert_eq!(json(|| tracing::info!(host = evil, "x"))["host"], evil, "and JSON readers get it back whole");
}

#[test]
fn a_field_cannot_pass_for_a_key_of_the_line() {
    let line = json(|| tracing::info!(level = "forged", time = "forged", msg = "forged", "true"));
    assert_eq!(
        (line["level"].as_str(), line["msg"].as_str(), line["field.level"].as_str()),
        (Some("info"), Some("true"), Some("forged"))
    );
}

#[test]
fn fields_of_spans_are_part_of_the_line() {
    let line = json(|| {
        let _cycle = tracing::info_span!("cycle", host = "n1", attempt = 2).entered();
        let step = tracing::info_span!("step", step = tracing::field::Empty);
        step.record("step", "jwt");
        let _step = step.entered();
        tracing::info!(attempt = 3, "x");
    });
    assert_eq!(
        (line["host"].as_str(), line["step"].as_str(), line["attempt"].as_i64()),
        (Some("n1"), Some("jwt"), Some(3))
    );
}

#[test]
fn an_error_is_shown_with_its_causes() {
    let error = TelemetryError::Open { path: "/l".into(), source: io::Error::other("no space") };
    let line = json(|| tracing::error!(error = &error as &dyn std::error::Error, "x"));
    assert_eq!(line["error"], "failed to open the log file `/l`: no space");
}

#[test]
fn the_component_is_the_folder_unless_it_is_named() {
    assert_eq!(
        json(|| tracing::info!(target: "quartermaster_actors::link::actor", "x"))["component"],
        "link"
    );
    assert_eq!(json(|| tracing::info!(target: "async_nats", "x"))["component"], "async_nats");
    assert_eq!(json(|| tracing::info!(component = "rpc", "x"))["component"], "rpc");
}

#[test]
fn levels_are_the_peers_and_libraries_stay_quiet() {
    let said = |level| {
        logged(LogFormat::Text, level, || {
            tracing::debug!("own");
            tracing::debug!(target: "async_nats::connection", "CONNECT with a password");
            tracing::info!(target: "async_nats", "library");
            tracing::info!("own");
            tracing::warn!(target: "async_nats", "library");
            tracing::error!("own");
        })
        .len()
    };
    let counts = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error].map(said);
    assert_eq!(counts, [5, 3, 2, 1]);
    assert_eq!(json(|| tracing::warn!("x"))["level"], "warning");
}

#[test]
fn attempts_to_connect_are_the_links_to_report() {
    let said = |level| {
        logged(LogFormat::Text, level, || {
            tracing::error!(target: "async_nats::connector", "authorization violation");
            tracing::error!(target: "async_nats::jetstream", "something else");
        })
        .len()
    };
    assert_eq!([LogLevel::Debug, LogLevel::Info, LogLevel::Error].map(said), [2, 1, 1]);
}

#[test]
fn long_values_are_cut_and_counted() {
    let long = "é".repeat(10_000);
    let line = json(|| tracing::info!(long, "x"));
    let shown = line["long"].as_str().unwrap();
    assert!(shown.len() < 9000 && shown.ends_with("(11808 bytes more)"), "{}", &shown[shown.len() - 40..]);
}

#[test]
fn a_new_log_file_is_private_and_a_loose_one_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.log");
    let file = LogFile::open(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!((mode & 0o027, file.loose_mode()), (0, None), "{mode:o}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(file.loose_mode(), Some(0o644));
}

#[test]
fn a_log_file_is_appended_to_and_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("q.log"), folder.path().join("q.log.1"));
    std::fs::write(&path, "old\n").unwrap();
    let file = LogFile::open(&path).unwrap();
    file.line("one\n").unwrap();
    std::fs::rename(&path, &moved).unwrap();
    file.reopen().unwrap();
    file.line("two\n").unwrap();
    assert_eq!(std::fs::read_to_string(&moved).unwrap(), "old\none\n");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert!(file.reopen().is_err());
    file.line("three\n").unwrap();
}

/// Writes `line` until it is where it should be.
fn say_until(file: &LogFile, line: &str, arrived: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !arrived() {
        assert!(Instant::now() < end, "{line:?} never arrived");
        file.line(line).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_log_file_that_was_moved_away_is_replaced_without_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("q.log"), folder.path().join("q.log.1"));
    let file = LogFile::open(&path).unwrap();
    file.line("one\n").unwrap();
    std::fs::rename(&path, &moved).unwrap();
    say_until(&file, "two\n", || path.exists());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "made by whoever rotates\n").unwrap();
    say_until(&file, "three\n", || std::fs::read_to_string(&path).unwrap().ends_with("rotates\nthree\n"));
    assert!(!std::fs::read_to_string(&moved).unwrap().contains("three"));
}

#[test]
fn a_log_file_that_was_copied_and_emptied_goes_on_from_its_begin() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q.log");
    let file = LogFile::open(&path).unwrap();
    file.line("one\n").unwrap();
    std::fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    file.line("two\n").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
}

#[test]
fn a_log_file_that_cannot_be_followed_stays_with_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, moved) = (folder.path().join("logs"), folder.path().join("moved.log"));
    std::fs::create_dir(&inside).unwrap();
    let path = inside.join("q.log");
    let file = LogFile::open(&path).unwrap();
    std::fs::rename(&path, &moved).unwrap();
    std::fs::remove_dir(&inside).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    file.line("one\n").unwrap();
    assert_eq!(std::fs::read_to_string(&moved).unwrap(), "one\n");
    std::fs::create_dir(&inside).unwrap();
    say_until(&file, "two\n", || path.exists());
}

proptest! {
    #[test]
    fn any_text_comes_back_from_json(text in "\\PC*|[\\x00-\\x1f\u{80}-\u{9f}\u{2028}\u{202e}\"\\\\]{0,20}") {
        let back: String = serde_json::from_str(&json_text(&text)).unwrap();
        prop_assert_eq!(back, text);
    }

    #[test]
    fn no_text_leaves_its_line(text in "[\\x00-\\x1f\u{7f}-\u{9f}\u{2028}a\"=\\\\ ]{0,20}") {
        prop_assert!(!plain_text(&text, true).contains(char::is_control));
        prop_assert!(!plain_text(&text, false).contains(char::is_control));
    }
}
