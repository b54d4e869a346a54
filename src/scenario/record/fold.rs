//! A whole record, read again: what was done, what is still to be taken back. Pure but for the seal.

use std::collections::BTreeMap;

use quartermaster_actors::steps::{Ledger, Record};
use quartermaster_proto::provider::{Invocation, Limits, Members, Number, Value};

use super::cover::Cover;
use super::line::{Header, SeenProvider};

const LIMITS: Limits = Limits { max_bytes: 256 * 1024 * 1024, max_depth: 140, max_items: 16_000_000 };

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// Its first line.
    pub header: Header,
    /// The steps.
    pub ledger: Ledger,
    /// How the run ended, if it did.
    pub status: Option<String>,
    /// How many bytes of it are whole lines; what follows was cut off while it was written.
    pub whole: usize,
}

/// Why a file is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A line is none of a record.
    #[error("line {line} is no line of a record: {what}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// It ends before its first line does: nothing was done.
    #[error("it is empty")]
    Empty,
    /// The first line does not say which run it is.
    #[error("it does not begin with the line of a run")]
    Header,
}

/// Reads a record. Its first line is read before `cover` can be made, so that is asked for with the run.
///
/// # Errors
/// What is no record.
pub fn fold(text: &[u8], cover: impl FnOnce(&str) -> Cover) -> Result<Folded, RecordError> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut lines = text.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n').enumerate();
    let (_, first) = lines.next().ok_or(RecordError::Empty)?;
    let header = header(&members(0, first)?).ok_or(RecordError::Header)?;
    let cover = cover(&header.run);
    let mut ledger = Ledger::default();
    ledger.apply(&Record::Began { run: header.run.clone(), scope: None });
    let mut status = None;
    for (number, line) in lines {
        let members = members(number, line)?;
        let word = text_of(&members, "t").unwrap_or_default();
        if word == "end" {
            status = text_of(&members, "status");
            continue;
        }
        let unknown = || RecordError::Line { line: number + 1, what: format!("`{}`", word.escape_debug()) };
        // Those are only for people.
        if matches!(word.as_str(), "unknown" | "outputs") {
            continue;
        }
        ledger.apply(&record(&word, &members, &cover).ok_or_else(unknown)?);
    }
    Ok(Folded { header, ledger, status, whole })
}

fn members(number: usize, line: &[u8]) -> Result<Members, RecordError> {
    let wrong = |what: String| RecordError::Line { line: number + 1, what };
    let text = std::str::from_utf8(line).map_err(|_| wrong("it is no UTF-8".to_owned()))?;
    match Value::from_json(text, &LIMITS) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(other) => Err(wrong(format!("it is {}", other.kind()))),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn text_of(members: &Members, name: &str) -> Option<String> {
    members.get(name)?.as_str().map(str::to_owned)
}

fn header(members: &Members) -> Option<Header> {
    if members.get("t")?.as_str()? != "run" {
        return None;
    }
    let object = |name: &str| members.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let masked = members.get("masked").and_then(Value::as_list).unwrap_or_default();
    let providers: BTreeMap<String, SeenProvider> = object("providers")
        .into_iter()
        .filter_map(|(name, seen)| {
            let seen = seen.as_object()?;
            let text = |name: &str| text_of(seen, name).unwrap_or_default();
            let (version, sha256, schema_sha256) = (text("version"), text("sha256"), text("schema_sha256"));
            Some((name, SeenProvider { version, sha256, schema_sha256 }))
        })
        .collect();
    Some(Header {
        run: text_of(members, "run")?,
        scenario: text_of(members, "scenario")?,
        file: text_of(members, "file")?,
        vars: object("vars"),
        masked: masked.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        providers,
    })
}

fn record(word: &str, members: &Members, cover: &Cover) -> Option<Record> {
    let text = |name: &str| text_of(members, name);
    let number = |name: &str| members.get(name).and_then(Value::as_number).and_then(Number::as_u64);
    let index = || number("call").and_then(|call| usize::try_from(call).ok());
    let attempt = || number("attempt").and_then(|attempt| u32::try_from(attempt).ok());
    let opened = |name: &str| opened(members.get(name)?, cover);
    Some(match word {
        "sent" => Record::Sent {
            step: text("step")?,
            provider: text("provider")?,
            action: text("action")?,
            key: text("key")?,
            attempt: attempt()?,
            at_ms: 0,
            attrs: opened("attrs"),
        },
        "ok" => Record::Ok {
            step: text("step")?,
            ms: number("ms").unwrap_or_default(),
            outputs: members.get("outputs").and_then(Value::as_object).cloned(),
            undo: calls(members.get("undo"), cover),
        },
        "failed" => Record::Failed {
            step: text("step")?,
            error: text("error").unwrap_or_default(),
            clean: members.get("nothing_done").and_then(Value::as_bool).unwrap_or(false),
            undo: calls(members.get("undo"), cover),
        },
        "skipped" => Record::Skipped { step: text("step")?, why: text("why") },
        "undoing" => Record::TakingBack { why: text("why").unwrap_or_default() },
        "undo_sent" => Record::UndoSent { step: text("step")?, index: index()?, attempt: attempt()? },
        "undone" => Record::Undone { step: text("step")?, index: index().unwrap_or_default() },
        "undo_failed" => Record::UndoFailed {
            step: text("step")?,
            index: index()?,
            error: text("error").unwrap_or_default(),
        },
        "decided" => Record::Decided,
        _ => return None,
    })
}

/// Attributes behind their seals: each may have one, or all together.
fn opened(value: &Value, cover: &Cover) -> Option<Members> {
    match cover.open(value)? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// The calls that take a step back; none when they cannot be read any more, for want of the key.
fn calls(value: Option<&Value>, cover: &Cover) -> Option<Vec<Invocation>> {
    let one = |call: &Value| {
        let members = call.as_object()?;
        let attrs = opened(members.get("attrs")?, cover)?;
        Some(Invocation { action: text_of(members, "action")?, attrs })
    };
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::List(calls)) => calls.iter().map(one).collect(),
        Some(call) => one(call).map(|call| vec![call]),
    }
}
