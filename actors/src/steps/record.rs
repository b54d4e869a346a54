//! What is written down of steps: before a call is made, when it has answered, and when it was taken back. The words are those of
//! a run's record (provider.md D19); where they are kept, and how what is secret in them is covered, is the keeper's part.

use quartermaster_proto::provider::{Invocation, Limits, Members, Value};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// What a provider answers may not be larger than this when it is read again.
const LIMITS: Limits = Limits { max_bytes: usize::MAX, max_depth: 80, max_items: 10_000_000 };

const ATTRS: &str = "attrs";
const OUTPUTS: &str = "outputs";
const UNDO: &str = "undo";
const SCOPE: &str = "scope";
const ACTION: &str = "action";

/// One thing that is written down. Values may be secret; texts are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The steps of a run begin.
    Began {
        /// The run: the beginning of every key.
        run: String,
        /// What later steps refer to beside the outputs of earlier ones; none when it could not be kept.
        scope: Option<Members>,
    },
    /// A step is about to be sent. Without a later word of it, nobody knows whether it was done.
    Sent {
        /// The step.
        step: String,
        /// The provider's local name.
        provider: String,
        /// Its action.
        action: String,
        /// The same for every attempt of this step in this run.
        key: String,
        /// Which attempt it is, from 1.
        attempt: u32,
        /// When, Unix milliseconds.
        at_ms: i64,
        /// With what; none when it could not be kept.
        attrs: Option<Members>,
    },
    /// A step was done.
    Ok {
        /// The step.
        step: String,
        /// How long it took, milliseconds.
        ms: u64,
        /// What it gave; none when that could not be kept.
        outputs: Option<Members>,
        /// The calls that take it back, in their order; none when they could not be kept.
        undo: Option<Vec<Invocation>>,
    },
    /// A step failed, or surely was not done.
    Failed {
        /// The step.
        step: String,
        /// Why; nothing secret.
        error: String,
        /// It is sure that nothing was done.
        clean: bool,
        /// The calls that clear what was done all the same.
        undo: Option<Vec<Invocation>>,
    },
    /// A step was left out: its condition did not hold, or its attributes are not known and its failure may be ignored.
    Skipped {
        /// The step.
        step: String,
        /// Why, if not by its condition; nothing secret.
        why: Option<String>,
    },
    /// From here on everything is taken back.
    TakingBack {
        /// Why; nothing secret.
        why: String,
    },
    /// A call that takes a step back is about to be sent.
    UndoSent {
        /// The step.
        step: String,
        /// Which of its calls, from 0.
        index: usize,
        /// Which attempt it is, from 1.
        attempt: u32,
    },
    /// One of the calls that take a step back was done, or there was nothing to take back.
    Undone {
        /// The step.
        step: String,
        /// Which of its calls, from 0.
        index: usize,
    },
    /// A call that takes a step back failed, or surely was not done.
    UndoFailed {
        /// The step.
        step: String,
        /// Which of its calls, from 0.
        index: usize,
        /// Why; nothing secret.
        error: String,
    },
    /// An operator has decided about everything whose outcome nobody knows: steps count as not done, calls that take steps back
    /// are made once more.
    Decided,
}

/// A record without what is secret in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum Open {
    Began { run: String },
    Sent { step: String, provider: String, action: String, key: String, attempt: u32, at_ms: i64 },
    Ok { step: String, ms: u64 },
    Failed { step: String, error: String, clean: bool },
    Skipped { step: String, why: Option<String> },
    TakingBack { why: String },
    UndoSent { step: String, index: usize, attempt: u32 },
    Undone { step: String, index: usize },
    UndoFailed { step: String, index: usize, error: String },
    Decided,
}

impl Record {
    /// The record as JSON, apart: what anybody may read, and what may be secret, if there is any.
    pub fn split(&self) -> (String, Option<Zeroizing<String>>) {
        let mut secret = Members::new();
        let mut keep = |name: &str, members: &Option<Members>| {
            if let Some(members) = members {
                secret.insert(name.to_owned(), Value::Object(members.clone()));
            }
        };
        let open = match self.clone() {
            Self::Began { run, scope } => {
                keep(SCOPE, &scope);
                Open::Began { run }
            }
            Self::Sent { step, provider, action, key, attempt, at_ms, attrs } => {
                keep(ATTRS, &attrs);
                Open::Sent { step, provider, action, key, attempt, at_ms }
            }
            Self::Ok { step, ms, outputs, undo } => {
                keep(OUTPUTS, &outputs);
                keep_undo(&mut secret, undo);
                Open::Ok { step, ms }
            }
            Self::Failed { step, error, clean, undo } => {
                keep_undo(&mut secret, undo);
                Open::Failed { step, error, clean }
            }
            Self::Skipped { step, why } => Open::Skipped { step, why },
            Self::TakingBack { why } => Open::TakingBack { why },
            Self::UndoSent { step, index, attempt } => Open::UndoSent { step, index, attempt },
            Self::Undone { step, index } => Open::Undone { step, index },
            Self::UndoFailed { step, index, error } => Open::UndoFailed { step, index, error },
            Self::Decided => Open::Decided,
        };
        // These shapes hold strings and numbers only, so this cannot fail.
        let open = serde_json::to_string(&open).unwrap_or_default();
        let secret = (!secret.is_empty()).then(|| Zeroizing::new(Value::Object(secret).to_json()));
        (open, secret)
    }

    /// The record of these two parts; what is secret is none when it cannot be read any more. `None` when the first part is no
    /// record.
    pub fn join(open: &str, secret: Option<&str>) -> Option<Self> {
        let open: Open = serde_json::from_str(open).ok()?;
        let secret = secret.and_then(|secret| Value::from_json(secret, &LIMITS).ok());
        let members =
            |name: &str| -> Option<Members> { secret.as_ref()?.as_object()?.get(name)?.as_object().cloned() };
        let undo = || -> Option<Vec<Invocation>> {
            secret.as_ref()?.as_object()?.get(UNDO)?.as_list()?.iter().map(invocation).collect()
        };
        Some(match open {
            Open::Began { run } => Self::Began { run, scope: members(SCOPE) },
            Open::Sent { step, provider, action, key, attempt, at_ms } => {
                Self::Sent { step, provider, action, key, attempt, at_ms, attrs: members(ATTRS) }
            }
            Open::Ok { step, ms } => Self::Ok { step, ms, outputs: members(OUTPUTS), undo: undo() },
            Open::Failed { step, error, clean } => Self::Failed { step, error, clean, undo: undo() },
            Open::Skipped { step, why } => Self::Skipped { step, why },
            Open::TakingBack { why } => Self::TakingBack { why },
            Open::UndoSent { step, index, attempt } => Self::UndoSent { step, index, attempt },
            Open::Undone { step, index } => Self::Undone { step, index },
            Open::UndoFailed { step, index, error } => Self::UndoFailed { step, index, error },
            Open::Decided => Self::Decided,
        })
    }

    /// The step it is about, if it is about one.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::Sent { step, .. }
            | Self::Ok { step, .. }
            | Self::Failed { step, .. }
            | Self::Skipped { step, .. }
            | Self::UndoSent { step, .. }
            | Self::Undone { step, .. }
            | Self::UndoFailed { step, .. } => Some(step),
            Self::Began { .. } | Self::TakingBack { .. } | Self::Decided => None,
        }
    }
}

fn keep_undo(secret: &mut Members, undo: Option<Vec<Invocation>>) {
    if let Some(undo) = undo {
        secret.insert(UNDO.to_owned(), undo.into_iter().map(Value::from).collect());
    }
}

fn invocation(value: &Value) -> Option<Invocation> {
    let members = value.as_object()?;
    let attrs = members.get(ATTRS)?.as_object()?.clone();
    Some(Invocation { action: members.get(ACTION)?.as_str()?.to_owned(), attrs })
}
