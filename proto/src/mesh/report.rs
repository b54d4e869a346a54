//! What became of a module: the same bytes on its subject and in the bucket.

use serde::{Deserialize, Serialize};

use super::{fault::Fault, stamp};
use crate::{
    json::{self, Limits, to_secret_bytes},
    text::escape_bounded,
    time::WallClock,
};

/// Longest reason, in bytes.
pub const MAX_REASON: usize = 1_024;

/// One report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The machine.
    pub node: String,
    /// The module.
    pub module: String,
    /// Which life of the client says it.
    pub run: String,
    /// The mirror's revision of the assignment.
    pub revision: u64,
    /// When.
    #[serde(with = "stamp")]
    pub at: WallClock,
    /// What.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What is reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Outcome {
    /// Everything is as the plan says.
    Applied {
        /// Each file.
        files: Vec<FileReport>,
        /// Each program that was told.
        #[serde(default)]
        programs: Vec<ProgramReport>,
    },
    /// Something is missing.
    Waiting {
        /// All of it.
        waiting: Vec<Waiting>,
    },
    /// It cannot be.
    Failed {
        /// Why, for people; at most [`MAX_REASON`] bytes.
        reason: String,
        /// When it is tried again, if time alone helps.
        #[serde(
            default,
            rename = "retry-at",
            with = "stamp::optional",
            skip_serializing_if = "Option::is_none"
        )]
        retry_at: Option<WallClock>,
    },
    /// The module is no longer assigned here.
    Removed,
}

impl Outcome {
    /// The word of the state.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Applied { .. } => "applied",
            Self::Waiting { .. } => "waiting",
            Self::Failed { .. } => "failed",
            Self::Removed => "removed",
        }
    }

    /// A failure with this reason, control characters replaced, cut.
    pub fn failed(reason: &str, retry_at: Option<WallClock>) -> Self {
        // Every escape is ASCII and every other character at most four bytes.
        let mut reason = escape_bounded(reason, MAX_REASON);
        while reason.len() > MAX_REASON {
            reason.pop();
        }
        Self::Failed { reason, retry_at }
    }
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The disk now holds new content, or a new mode or owner.
    Written,
    /// The content is what was last written, but the disk held something else or nothing.
    Restored,
    /// Nothing.
    Unchanged,
    /// A seed was absent and is now there.
    Seeded,
    /// A seed exists and was not looked into.
    Kept,
    /// The file, or our part of it, is gone.
    Removed,
}

impl Action {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Restored => "restored",
            Self::Unchanged => "unchanged",
            Self::Seeded => "seeded",
            Self::Kept => "kept",
            Self::Removed => "removed",
        }
    }

    /// True when the file is another than before, so that its program has to be told.
    pub const fn is_change(self) -> bool {
        matches!(self, Self::Written | Self::Restored | Self::Seeded)
    }
}

/// One file of an applied module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    /// Where.
    pub path: String,
    /// What was done.
    pub action: Action,
    /// Of the content that was filled: `sha256:…`, or `hmac-sha256:…` under the machine's own key for sensitive files.
    pub digest: String,
}

/// One program that was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// Which, and how.
    #[serde(flatten)]
    pub program: Program,
    /// How it went.
    pub result: ProgramResult,
    /// Why not, where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A program and how it is told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// This unit was restarted.
    Restart(String),
    /// This unit was reloaded.
    Reload(String),
    /// This was run.
    Command(Vec<String>),
}

/// How telling a program went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramResult {
    /// Well.
    Done,
    /// There is nothing to tell it by.
    Skipped,
    /// Badly; it is tried again.
    Failed,
}

/// One thing that is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Waiting {
    /// A kind of placeholder, or `templates`, `registry`, `engine`.
    pub kind: String,
    /// Which; may be empty.
    pub name: String,
    /// Why.
    pub why: Why,
    /// Since when.
    #[serde(with = "stamp")]
    pub since: WallClock,
}

/// Why something is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Its owner does not have it: the vault, the plan, what a provider serves, the store of archives.
    Absent,
    /// Nobody answers.
    NoAnswer,
    /// The bucket is not there.
    NoBucket,
    /// The bucket has no such entry.
    NoEntry,
    /// What there is has not been read whole yet.
    NotLoaded,
}

impl Why {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::NoAnswer => "no-answer",
            Self::NoBucket => "no-bucket",
            Self::NoEntry => "no-entry",
            Self::NotLoaded => "not-loaded",
        }
    }
}

impl Report {
    /// The report's bytes.
    pub fn encode(&self) -> Vec<u8> {
        to_secret_bytes(self).to_vec()
    }

    /// Reads a report.
    ///
    /// # Errors
    /// No JSON of this shape.
    pub fn read(body: &[u8]) -> Result<Self, Fault> {
        json::object(body, &Limits::FRAME).map_err(|error| Fault::json("", &error))
    }

    /// True when `other` says the same at another time.
    pub fn says_the_same(&self, other: &Self) -> bool {
        Self { at: self.at, ..other.clone() } == *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: WallClock = WallClock::from_seconds(1_795_975_200);

    fn check(outcome: Outcome, tail: &str) {
        let report = Report {
            node: "web1".to_owned(),
            module: "forge".to_owned(),
            run: "01JD".to_owned(),
            revision: 81,
            at: AT,
            outcome,
        };
        let text = format!(
            r#"{{"node":"web1","module":"forge","run":"01JD","revision":81,"at":"2026-11-29T18:00:00Z",{tail}}}"#
        );
        assert_eq!(String::from_utf8(report.encode()).unwrap(), text);
        assert_eq!(Report::read(text.as_bytes()).as_ref(), Ok(&report));
        let later = Report { at: WallClock::from_seconds(1_795_975_260), ..report.clone() };
        assert!(report.says_the_same(&later));
        assert!(!report.says_the_same(&Report { revision: 82, ..report.clone() }));
    }

    #[test]
    fn reports_are_written_as_the_page_shows() {
        let file = |path: &str, action, digest: &str| FileReport {
            path: path.to_owned(),
            action,
            digest: digest.to_owned(),
        };
        let program = |program, result, reason| ProgramReport { program, result, reason };
        check(
            Outcome::Applied {
                files: vec![
                    file("/etc/forge/app.ini", Action::Written, "hmac-sha256:5e"),
                    file("/var/lib/forge/motd", Action::Kept, "sha256:11"),
                ],
                programs: vec![
                    program(Program::Restart("forge.service".to_owned()), ProgramResult::Done, None),
                    program(
                        Program::Command(vec!["/usr/bin/x".to_owned()]),
                        ProgramResult::Failed,
                        Some("exit code 3".to_owned()),
                    ),
                ],
            },
            r#""state":"applied","files":[{"path":"/etc/forge/app.ini","action":"written","digest":"hmac-sha256:5e"},{"path":"/var/lib/forge/motd","action":"kept","digest":"sha256:11"}],"programs":[{"restart":"forge.service","result":"done"},{"command":["/usr/bin/x"],"result":"failed","reason":"exit code 3"}]"#,
        );
        let waiting = |kind: &str, name: &str, why| Waiting {
            kind: kind.to_owned(),
            name: name.to_owned(),
            why,
            since: AT,
        };
        check(
            Outcome::Waiting {
                waiting: vec![
                    waiting("secret", "admin-password", Why::Absent),
                    waiting("engine", "", Why::NoAnswer),
                ],
            },
            r#""state":"waiting","waiting":[{"kind":"secret","name":"admin-password","why":"absent","since":"2026-11-29T18:00:00Z"},{"kind":"engine","name":"","why":"no-answer","since":"2026-11-29T18:00:00Z"}]"#,
        );
        check(
            Outcome::failed("secret admin-password: the vault refused: not in the plan", Some(AT)),
            r#""state":"failed","reason":"secret admin-password: the vault refused: not in the plan","retry-at":"2026-11-29T18:00:00Z""#,
        );
        check(Outcome::failed("x", None), r#""state":"failed","reason":"x""#);
        check(Outcome::Removed, r#""state":"removed""#);
    }

    #[test]
    fn a_reason_is_short_and_moves_no_cursor() {
        for reason in ["a\nb\u{1b}[2J".to_owned(), "\u{1f600}".repeat(2_000), "\u{1b}".repeat(2_000)] {
            let Outcome::Failed { reason, .. } = Outcome::failed(&reason, None) else { panic!("it failed") };
            assert!(reason.len() <= MAX_REASON && !reason.contains(char::is_control), "{reason:?}");
        }
    }
}
