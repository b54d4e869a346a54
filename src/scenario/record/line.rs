//! One line of a record. The words are those of provider.md D19.

use std::collections::BTreeMap;

use quartermaster_actors::steps::Record;
use quartermaster_proto::provider::{Invocation, Members, Number, Value};
use sha2::{Digest as _, Sha256};

use super::cover::Cover;

/// What a record begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The run: when it began and eight random digits. The beginning of every key.
    pub run: String,
    /// The scenario's name.
    pub scenario: String,
    /// The file of steps; an absolute path.
    pub file: String,
    /// The variables that may be shown.
    pub vars: Members,
    /// The names of the others, which have to be given again.
    pub masked: Vec<String>,
    /// The providers.
    pub providers: BTreeMap<String, SeenProvider>,
}

/// A provider as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenProvider {
    /// Its version.
    pub version: String,
    /// The digest of its program.
    pub sha256: String,
    /// The digest of what it declares.
    pub schema_sha256: String,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The first one.
    Run(Header),
    /// Something of a step, and members that only people read.
    Step(Record, Vec<(&'static str, Value)>),
    /// A step was sent, and whether it was done is not known. For people: without a later line it is so anyway.
    Unknown {
        /// The step.
        step: String,
        /// Why.
        why: String,
    },
    /// A step was never begun.
    NotBegun {
        /// The step.
        step: String,
    },
    /// What the scenario gives.
    Outputs(Members),
    /// The run is over.
    End {
        /// `succeeded`, `failed` or `interrupted`.
        status: String,
    },
}

/// The digest of attributes: that of their canonical JSON, secrets covered, for a digest of a short secret gives it away.
fn attrs_digest(attrs: &Members, cover: &Cover) -> String {
    hex::encode(Sha256::digest(cover.mask(&Value::Object(attrs.clone())).to_canonical().as_bytes()))
}

/// Members in the order in which they are written.
struct Writer(Vec<(&'static str, Value)>);

impl Writer {
    fn new(word: &'static str) -> Self {
        Self(vec![("t", word.into())])
    }

    fn put(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    fn maybe(self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }

    fn text(self) -> String {
        let each: Vec<String> = self
            .0
            .into_iter()
            .map(|(name, value)| format!("{}:{}", Value::from(name).to_json(), value.to_json()))
            .collect();
        format!("{{{}}}\n", each.join(","))
    }
}

fn count(number: u64) -> Value {
    Number::from(number).into()
}

fn place(index: usize) -> Value {
    count(u64::try_from(index).unwrap_or(u64::MAX))
}

fn calls(undo: &[Invocation], cover: &Cover) -> Option<Value> {
    let each: Vec<Value> = undo
        .iter()
        .map(|call| {
            let attrs = cover.seal(&Value::Object(call.attrs.clone()));
            [("action", Value::from(call.action.as_str())), ("attrs", attrs)].into_iter().collect()
        })
        .collect();
    match each.len() {
        0 => None,
        1 => each.into_iter().next(),
        _ => Some(each.into()),
    }
}

impl Line {
    /// The line, ended by a line feed; `at` is when it is written, and `cover` keeps secrets out of it.
    pub fn to_text(&self, cover: &Cover, at: &str) -> String {
        let writer = match self {
            Self::Run(header) => run(header, cover),
            Self::Step(record, more) => {
                let writer = step(record, cover);
                more.iter().fold(writer, |writer, (name, value)| writer.put(name, cover.mask(value)))
            }
            Self::Unknown { step, why } => {
                Writer::new("unknown").put("step", step.as_str()).put("why", cover.text(why))
            }
            Self::NotBegun { step } => Writer::new("skipped").put("step", step.as_str()),
            Self::Outputs(outputs) => {
                Writer::new("outputs").put("outputs", cover.mask(&Value::Object(outputs.clone())))
            }
            Self::End { status } => Writer::new("end").put("status", status.as_str()),
        };
        writer.put("at", at).text()
    }
}

fn run(header: &Header, cover: &Cover) -> Writer {
    let providers = header.providers.iter().map(|(name, seen)| {
        let seen: Value = [
            ("version", Value::from(seen.version.as_str())),
            ("sha256", seen.sha256.as_str().into()),
            ("schema_sha256", seen.schema_sha256.as_str().into()),
        ]
        .into_iter()
        .collect();
        (name.clone(), seen)
    });
    Writer::new("run")
        .put("run", header.run.as_str())
        .put("scenario", header.scenario.as_str())
        .put("file", header.file.as_str())
        .put("vars", cover.mask(&Value::Object(header.vars.clone())))
        .put("masked", header.masked.iter().map(|name| Value::from(name.as_str())).collect::<Value>())
        .put("providers", providers.collect::<Value>())
}

fn step(record: &Record, cover: &Cover) -> Writer {
    match record {
        Record::Began { run, .. } => Writer::new("began").put("run", run.as_str()),
        Record::Sent { step, provider, action, key, attempt, attrs, .. } => Writer::new("sent")
            .put("step", step.as_str())
            .put("provider", provider.as_str())
            .put("action", action.as_str())
            .put("key", key.as_str())
            .put("attempt", count((*attempt).into()))
            .maybe("attrs_sha256", attrs.as_ref().map(|attrs| attrs_digest(attrs, cover)))
            .maybe("attrs", attrs.as_ref().map(|attrs| cover.seal(&Value::Object(attrs.clone())))),
        Record::Ok { step, ms, outputs, undo } => Writer::new("ok")
            .put("step", step.as_str())
            .put("ms", count(*ms))
            .maybe("outputs", outputs.as_ref().map(|outputs| cover.mask(&Value::Object(outputs.clone()))))
            .maybe("undo", undo.as_ref().and_then(|undo| calls(undo, cover))),
        Record::Failed { step, error, clean, undo } => Writer::new("failed")
            .put("step", step.as_str())
            .put("error", cover.text(error))
            .put("nothing_done", *clean)
            .maybe("undo", undo.as_ref().and_then(|undo| calls(undo, cover))),
        Record::Skipped { step, why } => Writer::new("skipped")
            .put("step", step.as_str())
            .maybe("why", why.as_ref().map(|why| Value::from(cover.text(why)))),
        Record::TakingBack { why } => Writer::new("undoing").put("why", cover.text(why)),
        Record::UndoSent { step, index, attempt } => Writer::new("undo_sent")
            .put("step", step.as_str())
            .put("call", place(*index))
            .put("attempt", count((*attempt).into())),
        Record::Undone { step, index } => {
            Writer::new("undone").put("step", step.as_str()).put("call", place(*index))
        }
        Record::UndoFailed { step, index, error } => Writer::new("undo_failed")
            .put("step", step.as_str())
            .put("call", place(*index))
            .put("error", cover.text(error)),
        Record::Decided => Writer::new("decided"),
    }
}
