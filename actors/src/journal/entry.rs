//! What is written down: entries as they happen, and what the roster remembers of a host between its cycles.

use quartermaster_proto::choria::identity::Identity;
use serde::{Deserialize, Serialize};

use super::record::{AttemptRecord, HelperRecord, StepRecord};

/// One entry of the journal. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A cycle began.
    Began {
        /// The host.
        host: Identity,
        /// The cycle.
        began: Began,
    },
    /// A step that changes the host is about to be taken.
    Intended {
        /// The cycle.
        cycle: u64,
        /// The step and what happened before it.
        intent: Intent,
        /// For `configure`: what is sent, sealed, so that a lost reply can be made good with the same decision.
        material: Option<Vec<u8>>,
    },
    /// The host agreed to a step that changes it.
    Done {
        /// The cycle.
        cycle: u64,
        /// The step.
        step: String,
    },
    /// A cycle ended.
    Ended {
        /// The host.
        host: Identity,
        /// All of it.
        attempt: AttemptRecord,
        /// What the roster remembers of the host from now on; none when that is nothing.
        standing: Option<Standing>,
    },
    /// A cycle was lost with the part of the instance that led it.
    Lost {
        /// The cycle.
        cycle: u64,
        /// The host.
        host: Identity,
        /// What the roster remembers of the host from now on; none when that is nothing.
        standing: Option<Standing>,
    },
    /// What the roster remembers of a host has changed without a cycle.
    Stands {
        /// The host.
        host: Identity,
        /// What it remembers now.
        standing: Option<Standing>,
    },
    /// A provider is about to do something for a host, or has done it.
    Step {
        /// The host.
        host: Identity,
        /// The record, what is secret in it sealed.
        text: String,
    },
    /// What providers did for a host is over: it is provisioned, or all was taken back.
    StepsOver {
        /// The host.
        host: Identity,
    },
    /// A host was forgotten, as an operator asked.
    Forgotten {
        /// The host.
        host: Identity,
    },
    /// An operator's pause came into force, or ended.
    Paused(Option<StoredPause>),
}

/// The beginning of a cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The cycle.
    pub cycle: u64,
    /// Which attempt it is.
    pub attempt: u32,
    /// When.
    pub at_ms: i64,
    /// What the roster remembered of the host before.
    pub standing: Standing,
}

/// A step that is about to change the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The step's name.
    pub step: String,
    /// When.
    pub at_ms: i64,
    /// The steps so far, this one last.
    pub steps: Vec<StepRecord>,
    /// The helper run of this cycle.
    pub helper: Option<HelperRecord>,
}

/// What the roster remembers of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// What it does between cycles.
    pub stand: Stand,
    /// Failed attempts in a row.
    pub failures: u32,
    /// Attempts since the last success that ended with the instance, or with a part of it. Older files do not say.
    #[serde(default)]
    pub lost: u32,
    /// When the first of them was.
    pub failing_since_ms: Option<i64>,
    /// The last of them.
    pub failure: Option<StoredFailure>,
    /// When it was noticed first.
    pub first_seen_ms: i64,
    /// When it was noticed last.
    pub last_seen_ms: i64,
    /// Digest and timestamp of its newest startup event.
    pub newest_event: Option<(u64, i64)>,
    /// What its next cycle has to make good.
    pub unfinished: Option<Unfinished>,
}

/// What a host does between cycles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Stand {
    /// Nothing: it waits, or is only known.
    Idle,
    /// Held back after a good ending.
    Held {
        /// The ending's name.
        ending: String,
        /// Since when.
        since_ms: i64,
        /// When its cycle began.
        began_ms: i64,
        /// Whether it was seen as an ordinary server since.
        confirmed: bool,
    },
    /// Waiting for its next attempt.
    Cooling {
        /// Since when.
        since_ms: i64,
        /// Until when.
        until_ms: i64,
        /// When the cycle that failed began.
        began_ms: i64,
    },
    /// Left alone.
    GaveUp {
        /// Since when.
        since_ms: i64,
    },
}

/// What the next cycle of a host has to make good instead of beginning anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfinished {
    /// `configure` may have been sent, its reply is not known.
    Configure,
    /// It is configured, and was not told to restart.
    Restart,
    /// It is configured, and may have been told to restart.
    Restarted,
}

/// Why the last attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFailure {
    /// The fixed cause.
    pub cause: String,
    /// The whole reason.
    pub error: String,
    /// When.
    pub at_ms: i64,
    /// The helper run of that attempt.
    pub helper: Option<HelperRecord>,
}

/// An operator's pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPause {
    /// Who asked for it.
    pub who: String,
    /// Why.
    pub why: String,
    /// Since when, Unix seconds.
    pub since: i64,
}
