//! What is written down can be read again, and shows nothing secret in its open part.

use quartermaster_proto::provider::{Invocation, Members, Value};

use super::super::*;

fn members(text: &str) -> Members {
    [("k".to_owned(), Value::from(text))].into()
}

#[test]
fn every_record_is_the_same_when_read_again_and_its_open_part_holds_no_value() {
    let undo = || Some(vec![Invocation { action: "drop".to_owned(), attrs: members("hunter2") }]);
    let step = || "a".to_owned();
    let records = [
        Record::Began { run: "r".to_owned(), scope: Some(members("hunter2")) },
        Record::Began { run: "r".to_owned(), scope: None },
        Record::Sent {
            step: step(),
            provider: "p".to_owned(),
            action: "make".to_owned(),
            key: "r/a".to_owned(),
            attempt: 2,
            at_ms: 7,
            attrs: Some(members("hunter2")),
        },
        Record::Ok { step: step(), ms: 3, outputs: Some(members("hunter2")), undo: undo() },
        Record::Ok { step: step(), ms: 3, outputs: Some(Members::new()), undo: Some(Vec::new()) },
        Record::Failed { step: step(), error: "no".to_owned(), clean: true, undo: Some(Vec::new()) },
        Record::Failed { step: step(), error: "no".to_owned(), clean: false, undo: undo() },
        Record::Skipped { step: step(), why: None },
        Record::Skipped { step: step(), why: Some("x".to_owned()) },
        Record::TakingBack { why: "x".to_owned() },
        Record::UndoSent { step: step(), index: 1, attempt: 2 },
        Record::Undone { step: step(), index: 1 },
        Record::UndoFailed { step: step(), index: 1, error: "no".to_owned() },
        Record::Decided,
    ];
    for record in records {
        let (open, secret) = record.split();
        assert!(!open.contains("hunter2"), "{open}");
        assert!(!format!("{record:?}").contains("hunter2"));
        let again = Record::join(&open, secret.as_ref().map(|secret| secret.as_str()));
        assert_eq!(again, Some(record));
    }
    assert_eq!(Record::join("{}", None), None);
}

#[test]
fn without_its_secret_part_a_record_says_that_it_is_lost() {
    let (open, _) = Record::Ok { step: "a".to_owned(), ms: 1, outputs: None, undo: Some(Vec::new()) }.split();
    assert_eq!(
        Record::join(&open, None),
        Some(Record::Ok { step: "a".to_owned(), ms: 1, outputs: None, undo: None })
    );
}
