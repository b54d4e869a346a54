//! What can be counted. No label names a machine, a module or a value.

use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry, core::Collector,
};

use super::status::{STATES, Statuses};
use crate::{
    client::asking::Answer,
    core::{EngineAnswer, State},
};
use quartermaster_proto::mesh::report::Action;

/// Upper ends of the times that a filling takes, in seconds.
const FILL_BUCKETS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0, 10.0];

/// The client's numbers. Clones share them.
#[derive(Debug, Clone)]
pub struct NodeMetrics {
    modules: IntGaugeVec,
    restored: IntCounter,
    asks: IntCounterVec,
    fill: Histogram,
}

impl NodeMetrics {
    /// The numbers, all of them there from the start.
    ///
    /// # Errors
    /// Never: the names are good.
    pub fn new() -> Result<Self, prometheus::Error> {
        let modules = IntGaugeVec::new(
            Opts::new("quartermaster_node_modules", "Modules of this machine, by where they stand"),
            &["state"],
        )?;
        let restored = IntCounter::new(
            "quartermaster_node_restored_total",
            "Files that somebody had changed and that were put back",
        )?;
        let asks = IntCounterVec::new(
            Opts::new(
                "quartermaster_node_vault_asks_total",
                "Questions to the vault, by what became of them",
            ),
            &["outcome"],
        )?;
        let fill = Histogram::with_opts(
            HistogramOpts::new(
                "quartermaster_node_fill_seconds",
                "Time from the contents of a module's files to the engine's answer",
            )
            .buckets(FILL_BUCKETS.to_vec()),
        )?;
        for state in STATES {
            modules.with_label_values(&[state.as_str()]).set(0);
        }
        for outcome in ["value", "absent", "refused", "no-answer"] {
            asks.with_label_values(&[outcome]);
        }
        Ok(Self { modules, restored, asks, fill })
    }

    /// Enters the numbers where they are read.
    ///
    /// # Errors
    /// They are there already.
    pub fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let all: [Box<dyn Collector>; 4] = [
            Box::new(self.modules.clone()),
            Box::new(self.restored.clone()),
            Box::new(self.asks.clone()),
            Box::new(self.fill.clone()),
        ];
        all.into_iter().try_for_each(|one| registry.register(one))
    }

    /// Counts modules by where they stand, before the numbers are read.
    pub(super) fn count_modules(&self, statuses: &Statuses) {
        let counts = statuses.counts();
        for state in STATES {
            let count = counts.get(&state).copied().unwrap_or_default();
            self.modules.with_label_values(&[state.as_str()]).set(count);
        }
    }

    pub(super) fn asked(&self, answer: &Answer) {
        let outcome = match answer {
            Answer::Value(..) => "value",
            Answer::Absent => "absent",
            Answer::Refused(_) => "refused",
            Answer::Nothing => "no-answer",
        };
        self.asks.with_label_values(&[outcome]).inc();
    }

    pub(super) fn written(&self, answer: &EngineAnswer, seconds: f64) {
        if let EngineAnswer::Written(written) = answer {
            let restored = written.files.iter().filter(|file| file.action == Some(Action::Restored)).count();
            self.restored.inc_by(u64::try_from(restored).unwrap_or_default());
            self.fill.observe(seconds);
        }
    }

    /// How many files were put back, for tests and people.
    pub fn restored(&self) -> u64 {
        self.restored.get()
    }
}

impl State {
    /// The word, in metrics and in the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unplanned => "unplanned",
            Self::Fetching => "fetching",
            Self::Gathering => "gathering",
            Self::Writing => "writing",
            Self::Applied => "applied",
            Self::Failed => "failed",
        }
    }
}
