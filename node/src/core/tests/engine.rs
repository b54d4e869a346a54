use std::time::Duration;

use quartermaster_proto::mesh::{
    fill::{FileCode, RequestCode},
    report::{Action, Outcome, Program, ProgramReport, ProgramResult},
};

use quartermaster_proto::time::WallClock;

use super::{
    super::*,
    drive::{Drive, START},
};

const TWO: &str = r#""files":[{"path":"/a","template":"a","owner-at-runtime":"owned"},{"path":"/b","template":"b","owner-at-runtime":"seed"}]"#;

fn sent() -> Drive {
    let mut drive = Drive::new();
    drive.assign(1, TWO);
    drive.archive(&[("a", "${config:a}"), ("b", "b")]);
    drive.config("a", "1");
    drive.settle();
    drive
}

fn paths(drive: &Drive) -> Vec<String> {
    drive.sent().into_iter().map(|(path, _)| path).collect()
}

#[test]
fn only_files_that_changed_are_sent_and_every_minute_all_of_them() {
    let mut drive = sent();
    assert_eq!(paths(&drive), ["/a", "/b"]);
    drive.engine_does(Action::Written);
    drive.pass(Duration::from_secs(20));
    drive.config("a", "2");
    drive.settle();
    assert_eq!(paths(&drive), ["/a"]);
    drive.engine_does(Action::Written);
    assert_eq!(drive.said(), "applied /a=written, /b=unchanged");
    drive.pass(Duration::from_secs(40));
    assert_eq!(paths(&drive), ["/a", "/b"]);
}

#[test]
fn a_minute_without_a_change_says_nothing() {
    let mut drive = sent();
    drive.engine_does(Action::Written);
    let reports = drive.reports.len();
    for minute in 1..20 {
        drive.pass(Duration::from_mins(1));
        assert_eq!(drive.writes.len(), 1 + minute);
        drive.engine_does(Action::Unchanged);
    }
    assert_eq!(drive.reports.len(), reports);
    drive.pass(Duration::from_mins(1));
    drive.engine_does(Action::Restored);
    assert_eq!(drive.said(), "applied /a=restored, /b=restored");
}

#[test]
fn modules_that_begin_together_write_again_at_times_of_their_own() {
    let mut drive = Drive::with_phase(Duration::from_secs(45));
    drive.assign(1, TWO);
    drive.archive(&[("a", "${config:a}"), ("b", "b")]);
    drive.config("a", "1");
    drive.settle();
    drive.engine_does(Action::Written);
    drive.pass(Duration::from_secs(14));
    assert_eq!(drive.writes.len(), 1);
    drive.pass(Duration::from_secs(1));
    assert_eq!(drive.writes.len(), 2, "the first round comes before a minute has passed");
    for minute in 1..4 {
        drive.engine_does(Action::Unchanged);
        drive.pass(Duration::from_secs(59));
        assert_eq!(drive.writes.len(), 1 + minute);
        drive.pass(Duration::from_secs(1));
        assert_eq!(drive.writes.len(), 2 + minute, "and then every minute");
    }
}

#[test]
fn a_late_tick_is_skipped_and_not_doubled() {
    let mut drive = sent();
    // The engine needs two and a half minutes: the ticks of the first two fall away.
    drive.pass(Duration::from_secs(150));
    assert_eq!(drive.writes.len(), 1);
    drive.engine_does(Action::Written);
    drive.pass(Duration::from_secs(20));
    assert_eq!(drive.writes.len(), 1);
    drive.pass(Duration::from_secs(15));
    assert_eq!(drive.writes.len(), 2, "the third comes at its time");
}

#[test]
fn an_engine_that_is_away_is_waited_for_and_tried_again() {
    let mut drive = sent();
    drive.engine_is_away();
    assert_eq!((drive.state(), drive.said().as_str()), (State::Writing, "waiting engine  no-answer"));
    for _ in 0..12 {
        let writes = drive.writes.len();
        drive.pass(Duration::from_secs(12));
        assert!(drive.writes.len() > writes, "tried again");
        assert_eq!(paths(&drive), ["/a", "/b"], "what it did is not known");
        drive.engine_is_away();
    }
    assert_eq!(drive.reports.len(), 3, "the wait is said once");
    drive.pass(Duration::from_secs(12));
    drive.engine_does(Action::Unchanged);
    assert_eq!(drive.said(), "applied /a=unchanged, /b=unchanged");
}

#[test]
fn an_engine_with_another_copy_of_the_plan_is_tried_again() {
    for code in [RequestCode::Behind, RequestCode::Stale, RequestCode::UnknownModule] {
        let mut drive = sent();
        drive.engine_fails(code);
        assert_eq!(drive.said(), "waiting engine  not-loaded");
        drive.pass(Duration::from_millis(600));
        assert_eq!(drive.writes.len(), 2);
    }
}

#[test]
fn a_file_that_cannot_be_written_fails_the_module_until_the_next_minute() {
    let mut drive = sent();
    drive.engine_refuses_file(FileCode::PathRefused, "etc is a symbolic link");
    assert_eq!(drive.said(), "failed /a: path-refused: etc is a symbolic link");
    let Outcome::Failed { retry_at, .. } = drive.reports.last().unwrap().outcome else { panic!("it failed") };
    assert_eq!(retry_at.map(WallClock::seconds), Some(START + 60));
    drive.pass(Duration::from_secs(30));
    assert_eq!(drive.writes.len(), 1);
    drive.pass(Duration::from_secs(31));
    assert_eq!(paths(&drive), ["/a", "/b"]);
    drive.engine_does(Action::Written);
    assert_eq!(drive.said(), "applied /a=written, /b=written");
}

#[test]
fn a_program_that_fails_fails_the_module() {
    let mut drive = sent();
    let program = ProgramReport {
        program: Program::Restart("forge.service".to_owned()),
        result: ProgramResult::Failed,
        reason: Some("timed out".to_owned()),
    };
    drive.engine_does_and_tells(Action::Written, vec![program]);
    assert_eq!(drive.said(), "failed restart of forge.service: timed out");
    drive.pass(Duration::from_secs(61));
    assert_eq!(drive.writes.len(), 2);
}

#[test]
fn a_request_the_engine_does_not_understand_fails_the_module() {
    let mut drive = sent();
    drive.engine_fails(RequestCode::TooLarge);
    assert_eq!(drive.said(), "failed the engine: too-large: knows revision 0");
    drive.pass(Duration::from_secs(61));
    assert_eq!(drive.writes.len(), 2);
}

#[test]
fn an_answer_about_an_older_plan_is_not_believed() {
    let mut drive = sent();
    let old = drive.writes[0].0;
    drive.assign(2, TWO);
    let new = drive.writes.last().unwrap().0;
    assert_ne!(old, new);
    drive.handle(Event::Engine(old, EngineAnswer::Away));
    assert_eq!(drive.state(), State::Writing);
    drive.engine_does(Action::Written);
    assert_eq!(drive.said(), "applied /a=written, /b=written");
    let reports = drive.reports.len();
    drive.engine_does(Action::Restored);
    assert_eq!(drive.reports.len(), reports, "nor a second answer");
}
