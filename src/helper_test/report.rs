//! Everything one run showed, for people and for machines.

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::Duration;

use quartermaster_actors::helper::{Ending, Execution, HelperSettings};
use quartermaster_proto::choria::identity::Identity;
use serde::Serialize;
use serde_json::Value;

use super::outcome::{Decision, Outcome};
use super::redact::redact;

/// Where the input came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Made up.
    Sample,
    /// Read from this file.
    Recorded(PathBuf),
}

/// How the process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// We stopped it at the deadline.
    TimedOut,
    /// We stopped it because it wrote too much.
    TooMuchOutput,
    /// It is a provider and answered.
    Answered,
    /// It is a provider, and gave no answer or an error.
    NotAnswered,
    /// It never ran, or its end could not be seen.
    Unknown,
}

/// One run, whole.
#[derive(Debug, Serialize)]
pub struct Report {
    command: Vec<String>,
    identity: String,
    input_from: String,
    /// As decoded; as text when it is no JSON.
    input: Value,
    took_ms: u64,
    ended: Ended,
    stdout_bytes: usize,
    /// As decoded; none when it is no JSON, unless secrets are to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<Value>,
    stderr: Vec<String>,
    #[serde(flatten)]
    outcome: Outcome,
}

impl Report {
    /// A report on a run that took `took` and said `stderr`.
    pub fn new(
        settings: &HelperSettings,
        identity: &Identity,
        source: Source,
        input: &[u8],
        took: Duration,
        stderr: Vec<String>,
    ) -> Self {
        let command = std::iter::once(&settings.program).chain(&settings.arguments).cloned().collect();
        let input_from = match source {
            Source::Sample => "sample".to_owned(),
            Source::Recorded(file) => file.display().to_string(),
        };
        Self {
            command,
            identity: identity.to_string(),
            input_from,
            input: decoded(input),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            ended: Ended::Unknown,
            stdout_bytes: 0,
            stdout: None,
            stderr,
            outcome: Outcome {
                decision: Decision::Fail,
                requests: Vec::new(),
                server_token: None,
                errors: Vec::new(),
                warnings: Vec::new(),
            },
        }
    }

    /// Adds how the process ended and what it wrote.
    pub fn ended(&mut self, execution: &Execution) {
        self.ended = match (execution.ending, execution.status) {
            (Ending::TimedOut, _) => Ended::TimedOut,
            (Ending::Overflowed, _) => Ended::TooMuchOutput,
            (Ending::Ended, Some(status)) => status
                .code()
                .map(Ended::Status)
                .or(status.signal().map(Ended::Signal))
                .unwrap_or(Ended::Unknown),
            (Ending::Ended, None) => Ended::Unknown,
        };
        self.stdout_bytes = execution.stdout.len();
        if !execution.stdout.is_empty() {
            self.stdout = Some(decoded(&execution.stdout));
        }
    }

    /// Adds what a provider gave; empty for nothing.
    pub fn answered(&mut self, outputs: &[u8]) {
        self.ended = if outputs.is_empty() { Ended::NotAnswered } else { Ended::Answered };
        self.stdout_bytes = outputs.len();
        if !outputs.is_empty() {
            self.stdout = Some(decoded(outputs));
        }
    }

    /// The run gave no reply.
    pub fn fail(&mut self, why: String) {
        self.outcome.errors.push(why);
    }

    /// The run gave a reply, and this would come of it.
    pub fn decided(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// Takes the secrets out of everything. What is no JSON may hold them anywhere, so it goes whole.
    pub fn redact(&mut self) {
        redact(&mut self.input);
        if matches!(self.stdout, Some(Value::String(_))) {
            self.stdout = None;
        }
        if let Some(stdout) = &mut self.stdout {
            redact(stdout);
        }
        for request in &mut self.outcome.requests {
            redact(&mut request.arguments);
        }
    }

    /// One JSON object and a newline.
    pub fn json(&self) -> String {
        format!("{}\n", serde_json::to_string_pretty(self).unwrap_or_default())
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let command: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
        line(&mut text, &format!("helper    {}", command.join(" ")));
        line(&mut text, &format!("server    {} ({})", self.identity, self.input_from));
        line(
            &mut text,
            &format!("ran       {} ms, {}, {} bytes of output", self.took_ms, self.end(), self.stdout_bytes),
        );

        heading(&mut text, "what it got");
        value(&mut text, &self.input);
        if !self.stderr.is_empty() {
            heading(&mut text, "what it said on standard error");
            for said in &self.stderr {
                line(&mut text, &format!("  {said}"));
            }
        }
        heading(&mut text, "what it answered");
        match &self.stdout {
            Some(stdout) => value(&mut text, stdout),
            None if self.stdout_bytes > 0 => {
                line(&mut text, "  (not JSON; --show-secrets shows it)");
            }
            None => line(&mut text, "  (nothing)"),
        }
        if !self.outcome.requests.is_empty() {
            heading(&mut text, "what would be sent");
            for request in &self.outcome.requests {
                line(&mut text, &format!("  {}", request.to));
                value(&mut text, &request.arguments);
            }
        }
        if let Some(token) = &self.outcome.server_token {
            heading(&mut text, "what the server's token would say");
            value(&mut text, token);
        }
        line(&mut text, "");
        for warning in &self.outcome.warnings {
            line(&mut text, &format!("warning: {}", printable(warning)));
        }
        for error in &self.outcome.errors {
            line(&mut text, &format!("error: {}", printable(error)));
        }
        line(&mut text, self.verdict());
        text
    }

    fn end(&self) -> String {
        match self.ended {
            Ended::Status(status) => format!("exit status {status}"),
            Ended::Signal(signal) => format!("killed by signal {signal}"),
            Ended::TimedOut => "stopped at the deadline".to_owned(),
            Ended::TooMuchOutput => "stopped for writing too much".to_owned(),
            Ended::Answered => "answered".to_owned(),
            Ended::NotAnswered => "no answer".to_owned(),
            Ended::Unknown => "no end seen".to_owned(),
        }
    }

    const fn verdict(&self) -> &'static str {
        match self.outcome.decision {
            Decision::Configure => "good: the server would be configured and restarted",
            Decision::Defer => "good: the server would be left for later",
            Decision::Shutdown => "good: the server would be stopped",
            Decision::Upgrade => "good: the server would be upgraded, and come again",
            Decision::Fail => "not good: the server would fail and be tried again later",
        }
    }
}

/// A word as it may stand in the configuration.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", printable(word).replace('\'', "'\\''"))
}

fn decoded(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned().into())
}

fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "{line}");
}

fn heading(text: &mut String, heading: &str) {
    let _ = writeln!(text, "\n{heading}");
}

/// Indented JSON, which has no control characters but its line ends.
fn value(text: &mut String, value: &Value) {
    for row in serde_json::to_string_pretty(value).unwrap_or_default().lines() {
        let _ = writeln!(text, "    {row}");
    }
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
