use std::time::Duration;

use quartermaster_proto::mesh::report::{Action, Outcome, Why};

use super::{
    super::*,
    drive::{Drive, START},
};

/// One file from the template `a`.
pub const FILE: &str = r#""files":[{"path":"/a","template":"a","owner-at-runtime":"owned"}]"#;

#[test]
fn a_module_is_filled_once_everything_is_there() {
    let mut drive = Drive::new();
    let members = format!(r#"{FILE},"placement":{{"port":{{"http":3000}}}},"secrets":[{{"name":"pw"}}]"#);
    drive.assign(1, &members);
    assert_eq!((drive.state(), drive.fetched, drive.changed), (State::Fetching, 1, 1));
    assert_eq!(drive.said(), "waiting templates file:/t not-loaded");
    drive.archive(&[("a", "${port:http} ${config:a} ${config:b} ${secret:pw}")]);
    assert_eq!(drive.state(), State::Gathering);
    let needs: Vec<_> = drive.needs.iter().map(|need| format!("{}:{}", need.kind, need.name)).collect();
    assert_eq!(
        needs,
        ["config:a", "config:b", "port:http", "secret:pw"],
        "recorded before any value is there"
    );
    drive.no_config("a");
    drive.no_config("b");
    drive.found(Drive::vault("own/forge/pw"), Found::Missing(Why::Absent));
    drive.settle();
    assert_eq!(drive.said(), "waiting config a no-entry, config b no-entry, secret pw absent");
    drive.config("a", "1");
    drive.settle();
    assert_eq!(drive.said(), "waiting config b no-entry, secret pw absent");
    drive.secret("own/forge/pw", "s3cret");
    drive.settle();
    assert_eq!(drive.said(), "waiting config b no-entry");
    assert!(drive.writes.is_empty());
    drive.config("b", r#""""#);
    drive.settle();
    assert_eq!(drive.sent(), [("/a".to_owned(), "3000 1  s3cret".to_owned())]);
    assert_eq!(drive.state(), State::Writing);
    drive.engine_does(Action::Written);
    assert_eq!((drive.state(), drive.said().as_str()), (State::Applied, "applied /a=written"));
    let Outcome::Applied { files, .. } = &drive.reports.last().unwrap().outcome else {
        panic!("it is applied")
    };
    assert!(files[0].digest.starts_with("hmac-sha256:"));
}

#[test]
fn what_is_missing_is_missing_since_it_was_first_missed() {
    let mut drive = Drive::new();
    drive.assign(1, FILE);
    drive.archive(&[("a", "${config:a}${config:b}")]);
    drive.pass(Duration::from_secs(5));
    drive.no_config("a");
    drive.no_config("b");
    drive.settle();
    drive.pass(Duration::from_secs(30));
    drive.config("b", "1");
    drive.settle();
    let Outcome::Waiting { waiting } = &drive.reports.last().unwrap().outcome else { panic!("it waits") };
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].since.seconds(), START, "another reason does not make it a new wait");
}

#[test]
fn nothing_of_a_module_without_a_plan_is_filled_and_nothing_is_said() {
    let mut drive = Drive::new();
    drive.assign_raw(1, "");
    assert_eq!((drive.state(), drive.reports.len(), drive.removed), (State::Unplanned, 0, 1));
    assert_eq!(drive.changed, 1, "its config values can be asked for");
}

#[test]
fn a_plan_that_cannot_be_read_fails_its_module_with_the_place() {
    let mut drive = Drive::new();
    drive.assign_raw(1, r#","provisioning":{"templates":"bad"}"#);
    assert_eq!(
        drive.said(),
        "failed the plan cannot be read: provisioning.templates: is a string, not an object"
    );
    assert_eq!(drive.fetched, 0);
    drive.assign(2, FILE);
    drive.archive(&[("a", "x")]);
    drive.settle();
    assert_eq!(drive.sent(), [("/a".to_owned(), "x".to_owned())]);
}

#[test]
fn templates_that_can_never_be_filled_fail_until_the_plan_changes() {
    let mut drive = Drive::new();
    drive.assign(1, FILE);
    drive.archive(&[("a", "x\n${foo:bar}")]);
    assert_eq!(drive.said(), "failed template `a`, line 2: foo bar: no such kind of placeholder is known");
    assert_eq!(
        drive.needs.iter().map(|need| (need.kind.as_str(), need.owner.clone())).collect::<Vec<_>>(),
        [("foo", None)]
    );
    drive.archive(&[("b", "")]);
    assert_eq!(drive.said(), "failed template `a` is not in the archive");
    assert!(drive.writes.is_empty());
}

#[test]
fn an_archive_is_waited_for_or_fails() {
    let mut drive = Drive::new();
    drive.assign(1, FILE);
    drive.archive_state(ArchiveState::Waiting(Why::Absent));
    assert_eq!(drive.said(), "waiting templates file:/t absent");
    drive.archive_state(ArchiveState::Failed { reason: "another hash".to_owned(), retry_at: None });
    assert_eq!(drive.said(), "failed templates: another hash");
    drive.archive(&[("a", "x")]);
    assert_eq!(drive.sent(), [("/a".to_owned(), "x".to_owned())]);
}

#[test]
fn a_new_plan_replaces_the_old_one_whole() {
    let mut drive = Drive::new();
    let two = r#""files":[{"path":"/a","template":"a","owner-at-runtime":"owned"},{"path":"/b","template":"b","owner-at-runtime":"owned"}],"items":[{"collection":"c","template":"i"}]"#;
    drive.assign(1, two);
    drive.archive(&[("a", "${config:a}"), ("b", "${config:b}"), ("i", "i")]);
    drive.config("a", "1");
    drive.config("b", "2");
    drive.settle();
    drive.engine_does(Action::Written);
    assert_eq!(drive.items.len(), 1);
    let fetched = drive.fetched;
    drive.assign(2, FILE);
    assert_eq!(drive.fetched, fetched, "the same archive is not fetched again");
    assert_eq!(drive.needs.len(), 1, "needs it no longer has are gone");
    assert!(drive.items.is_empty());
    assert_eq!(drive.sent(), [("/a".to_owned(), "1".to_owned())], "values that are held are not waited for");
    let (_, write) = drive.writes.last().unwrap();
    assert_eq!(write.revision, 2);
    drive.engine_does(Action::Unchanged);
    assert_eq!(drive.said(), "applied /a=unchanged");
    assert_eq!(drive.reports.last().unwrap().revision, 2);
    drive.other_archive();
    drive.assign(3, FILE);
    assert_eq!((drive.state(), drive.fetched), (State::Fetching, fetched + 1));
}

#[test]
fn a_module_that_is_taken_off_says_so_and_leaves_nothing() {
    let mut drive = Drive::new();
    drive.assign(1, FILE);
    drive.archive(&[("a", "${config:a}")]);
    drive.config("a", "1");
    drive.settle();
    drive.engine_does(Action::Written);
    drive.handle(Event::Gone);
    assert_eq!((drive.said().as_str(), drive.state(), drive.removed), ("removed", State::Unplanned, 1));
    assert!(drive.wants.is_empty() && drive.needs.is_empty());
    let (writes, reports) = (drive.writes.len(), drive.reports.len());
    drive.pass(Duration::from_mins(5));
    drive.handle(Event::Gone);
    assert_eq!((drive.writes.len(), drive.reports.len()), (writes, reports), "timers ring in vain");
    drive.assign(2, FILE);
    drive.archive(&[("a", "x")]);
    drive.settle();
    assert_eq!(drive.sent(), [("/a".to_owned(), "x".to_owned())]);
}

#[test]
fn values_of_a_kind_without_an_owner_wait_for_the_registry() {
    let mut drive = Drive::without_registry();
    drive.assign(1, &format!(r#"{FILE},"placement":{{"dir":{{"data":"/d"}}}}"#));
    drive.archive(&[("a", "${config:a}${dir:data}")]);
    assert_eq!(drive.said(), "waiting registry config not-loaded, registry dir not-loaded");
    drive.config("a", "1");
    drive.registry(|entry| entry.kind.as_str() != "config");
    assert_eq!(drive.said(), "waiting registry config no-entry");
    drive.registry(|_| true);
    assert_eq!(drive.sent(), [("/a".to_owned(), "1/d".to_owned())]);
    assert!(drive.needs.iter().all(|need| need.owner.is_some()));
}

#[test]
fn the_return_of_the_bus_is_said() {
    let mut drive = Drive::new();
    drive.assign(1, FILE);
    drive.handle(Event::BusBack);
    assert_eq!(drive.changed, 2);
}
