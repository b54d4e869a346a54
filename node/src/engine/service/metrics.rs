//! What can be counted of the engine. No label names a module, a file or a unit.

use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts, Registry, core::Collector};

use crate::engine::keeper::Outcome;
use crate::engine::plan::Action;
use crate::engine::program::Told;

/// What becomes of a file of a request.
const ACTIONS: [&str; 6] = ["written", "restored", "unchanged", "seeded", "kept", "refused"];
/// What becomes of a program that is to be told.
const RESULTS: [&str; 3] = ["done", "skipped", "failed"];
/// Upper ends of the times that a request takes, in seconds.
const BUCKETS: [f64; 9] = [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 2.0, 10.0];

/// The engine's numbers. Clones share them.
#[derive(Debug, Clone)]
pub struct EngineMetrics {
    files: IntCounterVec,
    programs: IntCounterVec,
    seconds: Histogram,
    modules: IntGauge,
    owed: IntGauge,
}

impl EngineMetrics {
    /// The numbers, all of them there from the start.
    ///
    /// # Errors
    /// Never: the names are good.
    pub fn new() -> Result<Self, prometheus::Error> {
        let family = |name: &str, help: &str, label: &str, values: &[&str]| {
            let family = IntCounterVec::new(Opts::new(name, help), &[label])?;
            for value in values {
                family.with_label_values(&[value]);
            }
            Ok::<_, prometheus::Error>(family)
        };
        let files = "Files of requests, by what was done to them";
        let programs = "Programs that were to be told of a change, by how it went";
        let seconds = "Time of one request for writing, on the disk and without the telling of programs";
        let seconds =
            HistogramOpts::new("quartermaster_engine_write_seconds", seconds).buckets(BUCKETS.to_vec());
        Ok(Self {
            files: family("quartermaster_engine_files_total", files, "action", &ACTIONS)?,
            programs: family("quartermaster_engine_programs_total", programs, "result", &RESULTS)?,
            seconds: Histogram::with_opts(seconds)?,
            modules: IntGauge::new(
                "quartermaster_engine_modules",
                "Modules that are declared or have files here",
            )?,
            owed: IntGauge::new(
                "quartermaster_engine_programs_owed",
                "Programs that have yet to be told of a change",
            )?,
        })
    }

    /// Enters the numbers where they are read.
    ///
    /// # Errors
    /// They are there already.
    pub fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let all: [Box<dyn Collector>; 5] = [
            Box::new(self.files.clone()),
            Box::new(self.programs.clone()),
            Box::new(self.seconds.clone()),
            Box::new(self.modules.clone()),
            Box::new(self.owed.clone()),
        ];
        all.into_iter().try_for_each(|one| registry.register(one))
    }

    pub(super) fn wrote(&self, outcomes: &[Outcome], seconds: f64) {
        for outcome in outcomes {
            let action = match outcome.done.as_ref().map(|done| done.action) {
                Ok(Action::Written) => "written",
                Ok(Action::Restored) => "restored",
                Ok(Action::Unchanged) => "unchanged",
                Ok(Action::Seeded) => "seeded",
                Ok(Action::Kept) => "kept",
                Err(_) => "refused",
            };
            self.files.with_label_values(&[action]).inc();
        }
        self.seconds.observe(seconds);
    }

    pub(super) fn told(&self, told: &Told) {
        let result = match told {
            Told::Done => "done",
            Told::Skipped(_) => "skipped",
            Told::Failed(_) => "failed",
        };
        self.programs.with_label_values(&[result]).inc();
    }

    pub(super) fn stands(&self, modules: usize, owed: usize) {
        self.modules.set(i64::try_from(modules).unwrap_or(i64::MAX));
        self.owed.set(i64::try_from(owed).unwrap_or(i64::MAX));
    }
}
