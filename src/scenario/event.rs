//! What happens while steps are done or taken back, as words for people and as JSON.

use quartermaster_proto::provider::Value;

/// One thing that happens. Texts and values are covered before they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What happens is written down there.
    Record(String),
    /// A step is begun.
    Begun(String),
    /// A step is so far.
    Progress {
        /// The step.
        step: String,
        /// How much is done.
        done: Option<u64>,
        /// Of how much.
        total: Option<u64>,
        /// What is going on.
        message: Option<String>,
    },
    /// A step is done.
    Done {
        /// The step.
        step: String,
        /// How long it took, milliseconds.
        ms: u64,
    },
    /// A step is tried again, because nothing was done.
    Again {
        /// The step.
        step: String,
        /// Why the try before failed.
        why: String,
    },
    /// A step failed.
    Failed {
        /// The step.
        step: String,
        /// Why.
        error: String,
        /// The provider's own last words.
        stderr: Vec<String>,
    },
    /// Whether a step was done is not known.
    Unknown {
        /// The step.
        step: String,
        /// Why.
        why: String,
    },
    /// A step was never begun.
    Skipped(String),
    /// From here on everything is taken back.
    Undoing(String),
    /// A step is about to be taken back.
    UndoBegun {
        /// The step.
        step: String,
        /// The action that does it.
        action: String,
    },
    /// A step was taken back.
    Undone {
        /// The step.
        step: String,
        /// How long it took, milliseconds.
        ms: u64,
    },
    /// A step was not taken back.
    UndoFailed {
        /// The step.
        step: String,
        /// Why.
        error: String,
    },
    /// Something is left that could not be taken back.
    Left(String),
    /// What the scenario gives.
    Output {
        /// Its name.
        name: String,
        /// Its value; none when it must not be shown.
        value: Option<Value>,
    },
    /// Something odd.
    Warning(String),
    /// A signal asks for the end.
    Interrupted(&'static str),
    /// It is over.
    End(&'static str),
}

impl Event {
    /// The line for people; none for what only moves a bar.
    pub fn to_line(&self) -> Option<String> {
        Some(match self {
            Self::Record(path) => format!("record {path}"),
            Self::Begun(step) => format!("run action.{step}"),
            Self::Progress { .. } => return None,
            Self::Done { step, ms } => format!("ok action.{step} ({ms}ms)"),
            Self::Again { step, why } => format!("again action.{step}: {why}"),
            Self::Failed { step, error, stderr } => {
                let said: Vec<String> = stderr.iter().map(|line| format!("\n  stderr: {line}")).collect();
                format!("failed action.{step}: {error}{}", said.concat())
            }
            Self::Unknown { step, why } => format!("unknown action.{step}: {why}"),
            Self::Skipped(step) => format!("skipped action.{step}"),
            Self::Undoing(why) => format!("taking back: {why}"),
            Self::UndoBegun { step, action } => format!("undo action.{step} by {action}"),
            Self::Undone { step, ms } => format!("undone action.{step} ({ms}ms)"),
            Self::UndoFailed { step, error } => format!("not undone action.{step}: {error}"),
            Self::Left(what) => format!("left {what}"),
            Self::Output { name, value } => {
                let value = value.as_ref().map_or_else(|| "(sensitive)".to_owned(), Value::to_json);
                format!("{name} = {value}")
            }
            Self::Warning(what) => format!("warning: {what}"),
            Self::Interrupted(signal) => format!("{signal}: what runs is called off"),
            Self::End(status) => (*status).to_owned(),
        })
    }

    /// The line for machines.
    pub fn to_json(&self) -> String {
        let number = |number: u64| Value::from(number);
        let text = |text: &str| Value::from(text);
        let (word, members): (&str, Vec<(&str, Value)>) = match self {
            Self::Record(path) => ("record", vec![("path", text(path))]),
            Self::Begun(step) => ("run", vec![("step", text(step))]),
            Self::Progress { step, done, total, message } => {
                let mut members = vec![("step", text(step))];
                members.extend(done.map(|done| ("done", number(done))));
                members.extend(total.map(|total| ("total", number(total))));
                members.extend(message.as_ref().map(|message| ("message", text(message))));
                ("progress", members)
            }
            Self::Done { step, ms } => ("ok", vec![("step", text(step)), ("ms", number(*ms))]),
            Self::Again { step, why } => ("again", vec![("step", text(step)), ("why", text(why))]),
            Self::Failed { step, error, stderr } => {
                let stderr: Value = stderr.iter().map(|line| text(line)).collect();
                ("failed", vec![("step", text(step)), ("error", text(error)), ("stderr", stderr)])
            }
            Self::Unknown { step, why } => ("unknown", vec![("step", text(step)), ("why", text(why))]),
            Self::Skipped(step) => ("skipped", vec![("step", text(step))]),
            Self::Undoing(why) => ("undoing", vec![("why", text(why))]),
            Self::UndoBegun { step, action } => {
                ("undo", vec![("step", text(step)), ("action", text(action))])
            }
            Self::Undone { step, ms } => ("undone", vec![("step", text(step)), ("ms", number(*ms))]),
            Self::UndoFailed { step, error } => {
                ("undo_failed", vec![("step", text(step)), ("error", text(error))])
            }
            Self::Left(what) => ("left", vec![("what", text(what))]),
            Self::Output { name, value } => {
                let mut members = vec![("name", text(name)), ("sensitive", value.is_none().into())];
                members.extend(value.clone().map(|value| ("value", value)));
                ("output", members)
            }
            Self::Warning(what) => ("warning", vec![("what", text(what))]),
            Self::Interrupted(signal) => ("interrupted", vec![("signal", text(signal))]),
            Self::End(status) => ("end", vec![("status", text(status))]),
        };
        let each: Vec<String> = std::iter::once(("event", text(word)))
            .chain(members)
            .map(|(name, value)| format!("{}:{}", text(name).to_json(), value.to_json()))
            .collect();
        format!("{{{}}}", each.join(","))
    }
}
