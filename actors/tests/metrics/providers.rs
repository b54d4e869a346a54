//! The series of providers: which fact counts where.

use std::collections::BTreeSet;
use std::time::Duration;

use quartermaster_actors::metrics::Recorder;
use quartermaster_actors::provider::{
    CallEnded, CallError, Happening, Load, Note, Outcome, ProviderFact, Said,
};
use quartermaster_proto::provider::{HostCode, Level};

use super::Scraper;

fn call(code: &'static str) -> Happening {
    let action = "provision".to_owned();
    let took = Duration::from_secs(1);
    Happening::Called(CallEnded { method: "execute", action, code, waited: took, took })
}

fn say(recorder: &Recorder, what: Happening) {
    recorder.provider_sink("helper").unwrap()(ProviderFact { provider: "helper".to_owned(), what });
}

/// Lets every family of a provider's show itself.
pub fn called(recorder: &Recorder) {
    say(recorder, call("ok"));
}

/// The provider's series that change with this, and by how much, after `before`.
async fn check(before: Option<Happening>, what: Happening, expected: &[&str]) {
    let scraper = Scraper::start().await;
    let _made = scraper.recorder.provider_sink("helper").unwrap();
    if let Some(before) = before {
        say(&scraper.recorder, before);
    }
    let old = scraper.scrape().await;
    say(&scraper.recorder, what);
    let new = scraper.scrape().await;
    let changed: BTreeSet<String> = new
        .series
        .iter()
        .filter(|(name, _)| name.starts_with("quartermaster_") && !name.contains("_bucket"))
        .filter(|(name, value)| (old.series.get(*name).copied().unwrap_or(0.0) - **value).abs() > 1e-12)
        .map(|(name, value)| {
            format!("{} {value}", name.replace(",site=\"lab\"", "").replace("quartermaster_provider_", ""))
        })
        .collect();
    assert_eq!(changed, expected.iter().map(|name| (*name).to_owned()).collect());
    scraper.end().await;
}

#[actix::test]
async fn calls_are_counted_by_action_and_code_with_their_time_and_their_wait() {
    check(
        None,
        call("conflict"),
        &[
            "calls_total{action=\"provision\",code=\"conflict\",method=\"execute\",provider=\"helper\"} 1",
            "call_seconds_count{provider=\"helper\"} 1",
            "call_seconds_sum{provider=\"helper\"} 1",
            "wait_seconds_count{provider=\"helper\"} 1",
            "wait_seconds_sum{provider=\"helper\"} 1",
        ],
    )
    .await;
}

#[actix::test]
async fn its_load_is_shown_as_it_is_now() {
    let (busy, idle) = (Load { ready: 2, queued: 5, open: 3 }, Load { ready: 2, queued: 0, open: 1 });
    let expected = ["open_calls{provider=\"helper\"} 1", "queued_calls{provider=\"helper\"} 0"];
    check(Some(Happening::Loaded(busy)), Happening::Loaded(idle), &expected).await;
}

#[actix::test]
async fn what_happens_to_its_processes_is_counted() {
    let noted = Happening::Noted;
    let error = CallError::host(Outcome::NotSent, HostCode::Exited, "gone");
    let cases = [
        (
            noted(Note::Crashed(1, "gone".to_owned(), Duration::ZERO)),
            "restarts_total{provider=\"helper\",why=\"crashed\"} 1",
        ),
        (
            noted(Note::Replaced(1, "hung".to_owned())),
            "restarts_total{provider=\"helper\",why=\"replaced\"} 1",
        ),
        (noted(Note::Failed(None, error)), "failures_total{provider=\"helper\"} 1"),
        (noted(Note::Late(1)), "late_answers_total{provider=\"helper\"} 1"),
        (noted(Note::BadFrame(1)), "bad_frames_total{provider=\"helper\"} 1"),
    ];
    for (what, series) in cases {
        check(None, what, &[series]).await;
    }
}

#[actix::test]
async fn bytes_and_lines_that_were_not_logged_are_counted() {
    let moved = Happening::Moved(7, 9);
    let expected = [
        "bytes_total{direction=\"read\",provider=\"helper\"} 7",
        "bytes_total{direction=\"written\",provider=\"helper\"} 9",
    ];
    check(None, moved, &expected).await;
    let said = Said { level: Level::Warn, text: "more".to_owned(), about: None, dropped: 12 };
    check(None, Happening::Said(1, said), &["stderr_dropped_total{provider=\"helper\"} 12"]).await;
}
