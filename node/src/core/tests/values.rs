use std::{sync::Arc, time::Duration};

use quartermaster_proto::{
    mesh::{
        plan::Credential,
        report::{Action, Outcome, Program, ProgramReport, ProgramResult, Why},
        vault::{Binding, SecretName},
    },
    time::WallClock,
};

use super::{super::*, drive::Drive, life::FILE};
use crate::check::Want;

/// A module whose one file was sent to the engine, from these values of `a` and `b`.
fn sent() -> Drive {
    let mut drive = Drive::new();
    drive.assign(1, FILE);
    drive.archive(&[("a", "${config:a}${config:b}")]);
    drive.config("a", "1");
    drive.config("b", "2");
    drive.settle();
    drive
}

/// The same, applied.
fn applied() -> Drive {
    let mut drive = sent();
    drive.engine_does(Action::Written);
    drive.pass(Duration::from_secs(2));
    drive
}

#[test]
fn a_change_is_sent_soon_and_a_burst_once_more() {
    let mut drive = applied();
    drive.config("a", "3");
    drive.pass(Duration::from_millis(9));
    assert_eq!(drive.writes.len(), 1);
    drive.pass(Duration::from_millis(1));
    assert_eq!(drive.sent(), [("/a".to_owned(), "32".to_owned())]);
    drive.engine_does(Action::Written);
    for value in 4..12 {
        drive.config("a", &value.to_string());
        drive.pass(Duration::from_millis(20));
    }
    assert_eq!(drive.writes.len(), 2);
    drive.settle();
    assert_eq!((drive.writes.len(), drive.sent()[0].1.as_str()), (3, "112"));
}

#[test]
fn after_a_start_that_changed_nothing_on_the_disk_a_change_is_sent_soon() {
    for (action, wait) in [(Action::Unchanged, 10), (Action::Written, 100)] {
        let mut drive = sent();
        drive.engine_does(action);
        drive.config("a", "3");
        drive.pass(Duration::from_millis(wait - 1));
        assert_eq!(drive.writes.len(), 1, "{action:?}");
        drive.pass(Duration::from_millis(1));
        assert_eq!(drive.writes.len(), 2, "{action:?}");
    }
}

#[test]
fn a_value_that_comes_to_the_same_content_makes_no_burst() {
    let mut drive = applied();
    drive.config("a", r#""1""#);
    drive.settle();
    drive.config("a", "3");
    drive.pass(Duration::from_millis(10));
    assert_eq!(drive.sent(), [("/a".to_owned(), "32".to_owned())]);
}

#[test]
fn a_program_that_was_told_is_left_alone_for_a_second_also_when_another_failed() {
    let told = |result, unit: &str| ProgramReport {
        program: Program::Restart(unit.to_owned()),
        result,
        reason: None,
    };
    for results in [vec![ProgramResult::Done], vec![ProgramResult::Done, ProgramResult::Failed]] {
        let mut drive = applied();
        drive.config("a", "3");
        drive.settle();
        drive.config("a", "4");
        drive.pass(Duration::from_millis(700));
        assert_eq!(drive.writes.len(), 2, "one request at a time");
        drive.config("a", "5");
        let programs = results.iter().map(|result| told(*result, "forge.service")).collect();
        drive.engine_does_and_tells(Action::Written, programs);
        drive.pass(Duration::from_millis(999));
        assert_eq!(drive.writes.len(), 2, "{results:?}");
        drive.pass(Duration::from_millis(1));
        assert_eq!((drive.writes.len(), drive.sent()[0].1.as_str()), (3, "52"), "{results:?}");
    }
}

#[test]
fn a_change_while_the_engine_works_is_sent_after_it() {
    let mut drive = applied();
    drive.config("a", "3");
    drive.settle();
    drive.config("a", "4");
    drive.settle();
    assert_eq!(drive.writes.len(), 2, "one request at a time");
    drive.engine_does(Action::Written);
    assert_eq!((drive.writes.len(), drive.sent()[0].1.as_str()), (3, "42"));
}

#[test]
fn a_value_that_goes_stops_the_writing_and_leaves_the_file() {
    let mut drive = applied();
    drive.no_config("b");
    drive.settle();
    assert_eq!((drive.state(), drive.said().as_str()), (State::Gathering, "waiting config b no-entry"));
    let writes = drive.writes.len();
    drive.pass(Duration::from_mins(3));
    assert_eq!((drive.writes.len(), drive.reports.len()), (writes, 4), "not even the minute's");
    drive.config("b", "2");
    drive.settle();
    assert_eq!(
        drive.sent(),
        [("/a".to_owned(), "12".to_owned())],
        "sent although the engine holds it, to have it said"
    );
    drive.engine_does(Action::Unchanged);
    assert_eq!(drive.said(), "applied /a=unchanged");
}

#[test]
fn a_value_that_goes_while_the_engine_works_is_said_after_its_answer() {
    let mut drive = applied();
    drive.config("a", "3");
    drive.settle();
    drive.no_config("b");
    drive.settle();
    drive.engine_does(Action::Written);
    assert_eq!(drive.said(), "waiting config b no-entry");
}

#[test]
fn null_fails_naming_the_key_and_empty_does_not() {
    let mut drive = applied();
    drive.config("a", "null");
    drive.settle();
    assert_eq!(drive.said(), "failed config a: the value is null");
    drive.config("a", "");
    drive.settle();
    assert_eq!(drive.sent(), [("/a".to_owned(), "2".to_owned())]);
}

#[test]
fn stored_digits_reach_the_file() {
    for text in ["9007199254740993", "1e400", "true", "[1, 2]", "not json"] {
        let mut drive = applied();
        drive.config("b", "");
        drive.config("a", text);
        drive.settle();
        assert_eq!(drive.sent(), [("/a".to_owned(), text.to_owned())]);
    }
}

#[test]
fn a_refusal_fails_the_module_and_what_else_is_missing_goes_on_being_gathered() {
    let mut drive = Drive::new();
    drive.assign(1, &format!(r#"{FILE},"secrets":[{{"name":"pw"}}]"#));
    drive.archive(&[("a", "${config:a}")]);
    let at = WallClock::from_seconds(1);
    let refused = Found::Refused { reason: "not in the plan".to_owned(), retry_at: Some(at) };
    drive.found(Drive::vault("own/forge/pw"), refused);
    drive.settle();
    assert_eq!(drive.said(), "failed secret pw: the vault refused: not in the plan");
    let Outcome::Failed { retry_at, .. } = drive.reports.last().unwrap().outcome else { panic!("it failed") };
    assert_eq!(retry_at, Some(at));
    drive.config("a", "1");
    drive.settle();
    drive.secret("own/forge/pw", "x");
    drive.settle();
    assert_eq!(drive.sent(), [("/a".to_owned(), "1".to_owned())]);
}

#[test]
fn a_secret_with_a_path_is_a_file_of_its_own_and_nothing_else() {
    let mut drive = Drive::new();
    drive.assign(1, r#""secrets":[{"name":"key","path":"/key"}]"#);
    drive.archive(&[]);
    drive.secret("own/forge/key", "k\0y");
    drive.settle();
    assert_eq!(drive.sent(), [("/key".to_owned(), "k\0y".to_owned())]);
    assert!(drive.writes[0].1.files[0].sensitive);
}

#[test]
fn a_credential_is_asked_for_by_its_name_in_the_vault() {
    let mut drive = Drive::new();
    let provisions = r#""provisions":[{"provision":"read","provider":"hub","credential":"issued","name":"token"},{"provision":"x","provider":"hub","credential":"issued"}]"#;
    drive.assign(1, &format!("{FILE},{provisions}"));
    drive.archive(&[("a", "${secret:token}")]);
    assert_eq!(drive.wants.len(), 1, "an entry without a name asks nothing");
    let name = "provision/hub/read/web1/forge";
    drive.found(Drive::vault(name), Found::Missing(Why::NoAnswer));
    drive.settle();
    assert_eq!(drive.said(), "waiting secret token no-answer");
    drive.secret(name, "t");
    drive.settle();
    assert_eq!(drive.sent(), [("/a".to_owned(), "t".to_owned())]);
}

#[test]
fn what_a_provider_serves_is_waited_for_and_its_refusal_fails() {
    let mut drive = Drive::new();
    let provisions =
        r#""provisions":[{"provision":"postgres","provider":"pg","credential":"none","local":"main"}]"#;
    drive.assign(1, &format!("{FILE},{provisions}"));
    drive.archive(&[("a", "${bound:postgres:host} ${bound:postgres.main:as}")]);
    let want = drive.wants.first().unwrap().clone();
    for why in [Why::NoBucket, Why::NoEntry] {
        drive.found(want.clone(), Found::Missing(why));
        drive.settle();
        assert_eq!(drive.said(), format!("waiting bound postgres.main {}", why.as_str()));
    }
    drive.bound(r#"{"state":"bound","as":"u"}"#);
    drive.settle();
    assert_eq!(drive.said(), "waiting bound postgres:host absent", "served, but not this key");
    drive.bound(r#"{"state":"refused","reason":"no room"}"#);
    drive.settle();
    assert_eq!(drive.said(), "failed bound postgres.main: the provider refused: no room");
    drive.bound(r#"{"state":"bound","as":"u","values":{"host":"db1"}}"#);
    drive.settle();
    assert_eq!(drive.sent(), [("/a".to_owned(), "db1 u".to_owned())]);
}

fn consumer(node: &str, module: &str, local: Option<&str>, credential: Credential) -> ConsumerRef {
    let binding = Binding {
        provider: "forge".to_owned(),
        provision: "read".to_owned(),
        node: node.to_owned(),
        module: module.to_owned(),
        local: local.map(str::to_owned),
    };
    ConsumerRef { binding, credential }
}

#[test]
fn consumers_are_listed_with_what_the_vault_holds_for_each() {
    let mut drive = Drive::new();
    drive.assign(1, &format!(r#"{FILE},"provides":["read"]"#));
    drive.archive(&[("a", "${consumers:read}")]);
    let want = Want::Consumers("read".to_owned());
    let list = vec![
        consumer("web1", "a", Some("main"), Credential::Pair),
        consumer("web2", "b", None, Credential::None),
        consumer("web2", "c", None, Credential::Issued),
        consumer("web2", "d", None, Credential::Pair),
    ];
    drive.found(want.clone(), Found::Here(Stored::Consumers(Arc::new(list.clone()))));
    assert_eq!(drive.wants.len(), 4, "each credential is asked for");
    let pair = |consumer: &ConsumerRef| SecretName::Pair(consumer.binding.clone()).to_string();
    drive.secret(&pair(&list[0]), "k\"1");
    drive.found(Drive::vault(&pair(&list[2])), Found::Missing(Why::NoAnswer));
    drive.found(Drive::vault(&pair(&list[3])), Found::Refused { reason: "no".to_owned(), retry_at: None });
    drive.settle();
    assert_eq!(drive.said(), "waiting consumers read no-answer", "silence would lock everybody out");
    drive.found(Drive::vault(&pair(&list[2])), Found::Missing(Why::Absent));
    drive.settle();
    assert_eq!(
        drive.sent()[0].1,
        r#"[{"consumer":"web1","module":"a","local":"main","credential":"pair/forge/read/web1/a/main","value":"k\"1"},{"consumer":"web2","module":"b","local":"","credential":"","value":""}]"#
    );
    let left_out: Vec<_> =
        drive.notes.iter().map(|Note::LeftOut { credential, why }| format!("{credential}: {why}")).collect();
    let expected = [
        "pair/forge/read/web2/c: the vault does not hold it yet",
        "pair/forge/read/web2/d: the vault refused: no",
    ];
    assert_eq!(left_out, expected);
    drive.engine_does(Action::Written);
    assert_eq!(drive.said(), "applied /a=written", "to leave one out is no fault of the module");
    drive.secret(&pair(&list[2]), "k3");
    drive.settle();
    assert!(drive.sent()[0].1.contains(r#""value":"k3""#));
    drive.engine_does(Action::Written);
    drive.found(want, Found::Here(Stored::Consumers(Arc::new(vec![]))));
    drive.settle();
    assert_eq!((drive.sent()[0].1.as_str(), drive.wants.len()), ("[]", 1));
}
