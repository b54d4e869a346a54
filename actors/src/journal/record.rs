//! What is told of an attempt once it is over: the shapes that the journal keeps and that everybody publishes as they are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One attempt of one host, from its first call to its ending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptRecord {
    /// Counts from 1; starts again after a success. Attempts that failed or were lost count, those that were interrupted,
    /// deferred or met somebody else do not.
    pub attempt: u32,
    /// The number of the cycle, unique in this instance.
    pub cycle: u64,
    /// When it began, Unix milliseconds.
    pub began_ms: i64,
    /// How long it took, milliseconds.
    pub took_ms: u64,
    /// `provisioned`, `updating`, `shut_down`, `already_serving`, `deferred`, `busy`, `interrupted`, `failed`, or `lost` when
    /// the instance, or the part of it that led the attempt, ended under it; `running` while it is under way.
    pub ending: String,
    /// The fixed cause of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The whole reason; bounded, without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its steps, in their order.
    #[serde(default)]
    pub steps: Vec<StepRecord>,
    /// The helper run, if it came to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper: Option<HelperRecord>,
}

/// One step of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepRecord {
    /// The step's name, as in logs and causes.
    pub step: String,
    /// How often it was tried.
    pub tries: u32,
    /// When it began, Unix milliseconds.
    pub began_ms: i64,
    /// How long it took, milliseconds; of a step under way: so far.
    pub took_ms: u64,
    /// What the last try that failed ended with, also when a later one succeeded; of an attempt that was lost: that no reply
    /// to the step is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One helper run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HelperRecord {
    /// Its exit status; none when it ended in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How it ended, in words: `exited with status 1`, `killed by signal 9`, `timed out`.
    pub ending: String,
    /// How long it took, milliseconds. A run that gave no decision counts from the asking.
    pub took_ms: u64,
    /// Its last lines on standard error, oldest first; escaped and bounded.
    #[serde(default)]
    pub stderr: Vec<String>,
}
