//! What is said and counted of providers' steps.

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use quartermaster_proto::text::escape_bounded;
use tracing::{error, info, warn};

use super::labels::{STEP_RESULTS, position};
use crate::steps::{Ledger, Record};

/// Something of a step of a provider. No text of it is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFact {
    /// The identity.
    pub host: String,
    /// The step; empty when it is about all of them.
    pub step: String,
    /// What it is.
    pub what: StepNews,
}

/// What can be told of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepNews {
    /// A provider did it.
    Done {
        /// The provider's local name.
        provider: String,
        /// Its action.
        action: String,
        /// How long it took, milliseconds.
        took_ms: u64,
        /// It cannot be taken back.
        no_undo: bool,
    },
    /// It failed.
    Failed {
        /// The provider's local name.
        provider: String,
        /// Why.
        error: String,
        /// Something may have been done, and nothing is known that clears it.
        unclear: bool,
    },
    /// It was left out.
    Skipped {
        /// Why; none when its condition did not hold.
        why: Option<String>,
    },
    /// Everything is taken back from now on.
    TakingBack {
        /// Why.
        why: String,
    },
    /// It was taken back.
    Undone,
    /// It was not taken back, for now.
    UndoFailed {
        /// Why.
        error: String,
    },
    /// It is left as it is.
    Left {
        /// What.
        what: String,
        /// Only an operator can tell what became of it.
        asks_operator: bool,
    },
    /// It is left as it is for good: its host was forgotten, or is another instance's.
    GivenUp {
        /// What.
        what: String,
    },
    /// An operator has decided about what nobody else could tell.
    Decided,
}

impl StepFact {
    /// What is worth telling of a record.
    pub fn of(host: &str, record: &Record, ledger: &Ledger) -> Option<Self> {
        let provider = || {
            let entry = record.step().and_then(|step| ledger.entry(step));
            entry.map_or_else(Default::default, |entry| (entry.provider.clone(), entry.action.clone()))
        };
        let what = match record {
            Record::Ok { ms, undo, .. } => {
                let (provider, action) = provider();
                let no_undo = undo.as_ref().is_some_and(Vec::is_empty);
                StepNews::Done { provider, action, took_ms: *ms, no_undo }
            }
            Record::Failed { error, clean, undo, .. } => {
                let unclear = !clean && undo.as_ref().is_none_or(Vec::is_empty);
                StepNews::Failed { provider: provider().0, error: error.clone(), unclear }
            }
            Record::Skipped { why, .. } => StepNews::Skipped { why: why.clone() },
            Record::TakingBack { why } => StepNews::TakingBack { why: why.clone() },
            Record::Undone { .. } => StepNews::Undone,
            Record::UndoFailed { error, .. } => StepNews::UndoFailed { error: error.clone() },
            Record::Decided => StepNews::Decided,
            Record::Began { .. } | Record::Sent { .. } | Record::UndoSent { .. } => return None,
        };
        let step = record.step().unwrap_or_default().to_owned();
        Some(Self { host: host.to_owned(), step, what })
    }

    /// Something is left as it is.
    pub fn left(host: &str, what: String, asks_operator: bool) -> Self {
        Self { host: host.to_owned(), step: String::new(), what: StepNews::Left { what, asks_operator } }
    }

    /// Something is left as it is for good.
    pub fn given_up(host: &str, what: String) -> Self {
        Self { host: host.to_owned(), step: String::new(), what: StepNews::GivenUp { what } }
    }

    /// An operator has decided.
    pub fn decided(host: &str) -> Self {
        Self { host: host.to_owned(), step: String::new(), what: StepNews::Decided }
    }

    /// Writes it to the log.
    pub(super) fn log(&self) {
        let (host, step) = (escape_bounded(&self.host, 100), self.step.as_str());
        match &self.what {
            StepNews::Done { provider, action, took_ms, no_undo: false } => {
                info!(component = host, host, step, provider, action, took_ms, "Step {step} done");
            }
            StepNews::Done { provider, action, took_ms, no_undo: true } => {
                info!(
                    component = host,
                    host, step, provider, action, took_ms, "Step {step} done; its provider names no undo"
                );
            }
            StepNews::Failed { provider, error, unclear: false } => {
                warn!(component = host, host, step, provider, "Step {step} failed: {error}");
            }
            StepNews::Failed { provider, error, unclear: true } => {
                warn!(
                    component = host,
                    host,
                    step,
                    provider,
                    "Step {step} failed, and something of it may have been done: {error}"
                );
            }
            StepNews::Skipped { why: None } => info!(component = host, host, step, "Step {step} left out"),
            StepNews::Skipped { why: Some(why) } => {
                warn!(component = host, host, step, "Step {step} left out: {why}");
            }
            StepNews::TakingBack { why } => {
                warn!(component = host, host, "Taking back what was done for {host}: {why}");
            }
            StepNews::Undone => info!(component = host, host, step, "Step {step} taken back"),
            StepNews::UndoFailed { error } => {
                warn!(component = host, host, step, "Step {step} not taken back yet: {error}");
            }
            StepNews::Left { what, asks_operator: false } => {
                error!(component = host, host, "Not taken back for {host}, to be tried again: {what}");
            }
            StepNews::Left { what, asks_operator: true } => {
                error!(component = host, host, "Not taken back for {host}, retry or forget decides: {what}");
            }
            StepNews::GivenUp { what } => {
                warn!(component = host, host, "Left as it is, {host} is no longer ours: {what}");
            }
            StepNews::Decided => {
                warn!(component = host, host, "An operator decided about the steps of {host}");
            }
        }
    }
}

/// One family with the labels `site` and `result`.
#[derive(Debug)]
pub(super) struct Steps {
    results: Vec<IntCounter>,
}

impl Steps {
    pub(super) fn new(registry: &Registry, site: &str) -> prometheus::Result<Self> {
        let help = "Steps of providers by what became of them, and of what was to be taken back";
        let opts = Opts::new("quartermaster_steps_total", help).const_label("site", site);
        let family = IntCounterVec::new(opts, &["result"])?;
        let each = STEP_RESULTS.iter().map(|result| family.get_metric_with_label_values(&[result]));
        let results = each.collect::<Result<_, _>>()?;
        registry.register(Box::new(family))?;
        Ok(Self { results })
    }

    pub(super) fn update(&self, fact: &StepFact) {
        let result = match &fact.what {
            StepNews::Done { .. } => "done",
            StepNews::Failed { .. } => "failed",
            StepNews::Skipped { .. } => "skipped",
            StepNews::Undone => "undone",
            StepNews::UndoFailed { .. } => "undo_failed",
            StepNews::Left { asks_operator: false, .. } => "left",
            StepNews::Left { asks_operator: true, .. } => "unknown",
            StepNews::GivenUp { .. } => "given_up",
            StepNews::TakingBack { .. } | StepNews::Decided => return,
        };
        if let Some(counter) = self.results.get(position(&STEP_RESULTS, result)) {
            counter.inc();
        }
    }
}
