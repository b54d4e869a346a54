//! Lines of a record, there and back.

use quartermaster_actors::journal::Seal;
use quartermaster_actors::steps::{Ledger, Record};
use quartermaster_proto::provider::{Invocation, Limits, Members, Value};

use crate::scenario::record::{Cover, Folded, Header, Line, RecordError, fold};
use crate::scenario::secrets::Secrets;

const KEY: [u8; 32] = [7; 32];
const LIMITS: Limits = Limits { max_bytes: 10_000, max_depth: 32, max_items: 1_000 };

fn members(text: &str) -> Members {
    Value::from_json(text, &LIMITS).unwrap().as_object().unwrap().clone()
}

fn cover(key: Option<[u8; 32]>) -> Cover {
    let secrets = Secrets::default();
    secrets.cover([&Value::from("s3cr3t")]);
    Cover::new(secrets, key.and_then(|key| Seal::new(&key)), "r1".to_owned())
}

fn header() -> Header {
    Header {
        run: "r1".to_owned(),
        scenario: "demo".to_owned(),
        file: "/x/steps.hcl".to_owned(),
        vars: members(r#"{"size":1.50}"#),
        masked: vec!["token".to_owned()],
        providers: std::collections::BTreeMap::new(),
    }
}

fn records() -> Vec<Record> {
    let step = || "make.a".to_owned();
    let call = |attrs: &str| Invocation { action: "unmake".to_owned(), attrs: members(attrs) };
    vec![
        Record::Sent {
            step: step(),
            provider: "things".to_owned(),
            action: "make".to_owned(),
            key: "r1/make.a".to_owned(),
            attempt: 1,
            at_ms: 0,
            attrs: Some(members(r#"{"a":["x-s3cr3t",1.50],"b":null}"#)),
        },
        Record::Ok {
            step: step(),
            ms: 4,
            outputs: Some(members(r#"{"id":"7"}"#)),
            undo: Some(vec![call(r#"{"id":"7"}"#), call(r#"{"s3cr3t":1}"#)]),
        },
        Record::TakingBack { why: "asked for".to_owned() },
        Record::UndoSent { step: step(), index: 0, attempt: 1 },
        Record::Undone { step: step(), index: 0 },
        Record::UndoSent { step: step(), index: 1, attempt: 1 },
        Record::UndoFailed { step: step(), index: 1, error: "no".to_owned() },
    ]
}

fn text() -> String {
    let lines = std::iter::once(Line::Run(header()))
        .chain(records().into_iter().map(|record| Line::Step(record, Vec::new())));
    lines.map(|line| line.to_text(&cover(Some(KEY)), "2026-01-02T03:04:05Z")).collect()
}

fn folded(text: &str, key: Option<[u8; 32]>) -> Result<Folded, RecordError> {
    fold(text.as_bytes(), |_| cover(key))
}

#[test]
fn a_record_comes_back_as_it_was_and_holds_no_secret() {
    let text = text();
    assert!(!text.contains("s3cr3t"), "{text}");
    assert_eq!(text.matches("x_sealed").count(), 2, "{text}");
    let folded = folded(&text, Some(KEY)).unwrap();
    let mut ledger = Ledger::default();
    ledger.apply(&Record::Began { run: "r1".to_owned(), scope: None });
    for record in &records() {
        ledger.apply(record);
    }
    assert_eq!((folded.header, folded.ledger, folded.whole), (header(), ledger, text.len()));
}

#[test]
fn without_the_key_what_was_sealed_is_lost_and_all_else_is_not() {
    let folded = folded(&text(), Some([8; 32])).unwrap();
    let entry = folded.ledger.entry("make.a").unwrap();
    assert_eq!(entry.attrs, None);
    assert!(folded.ledger.left().iter().all(quartermaster_actors::steps::Left::asks_operator));
}

#[test]
fn cut_off_anywhere_it_is_what_was_whole() {
    let text = text();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let ends: Vec<usize> = lines
        .iter()
        .scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        })
        .collect();
    for cut in 0..text.len() {
        let whole = ends.iter().copied().filter(|end| *end <= cut).max().unwrap_or(0);
        match folded(&text[..cut], Some(KEY)) {
            Ok(folded) => assert_eq!(folded.whole, whole),
            Err(error) => assert!(whole == 0 && error == RecordError::Empty, "{cut}: {error}"),
        }
    }
}

#[test]
fn a_line_that_is_none_is_told_by_its_number() {
    let text = text();
    for (broken, expected) in [
        (text.replacen("{\"t\":\"ok\"", "{\"t\":\"fine\"", 1), "line 3 is no line of a record: `fine`"),
        (text.replacen("{\"t\":\"ok\"", "\"t\":\"ok\"", 1), "line 3 is no line of a record: "),
        ("{\"t\":\"sent\"}\n".to_owned(), "it does not begin with the line of a run"),
    ] {
        let error = folded(&broken, Some(KEY)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
