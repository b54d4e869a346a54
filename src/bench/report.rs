//! The result for people and for machines.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;

use super::figures::{Figures, Spread, spreads};
use super::latency::Latency;
use super::machine::{Machine, Versions};
use super::ratio::{Ratio, ratios};
use super::setting::Setting;

/// Everything that was measured at one point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    /// The machine.
    pub(super) machine: Machine,
    /// The programs.
    pub(super) versions: Versions,
    /// What it is of.
    pub(super) setting: Setting,
    /// Ours, run by run.
    pub(super) runs: Vec<Figures>,
    /// Over all runs.
    pub(super) summary: Vec<Summary>,
    /// The other provisioner, run by run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) against: Vec<Figures>,
    /// Both side by side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ratios: Vec<Ratio>,
}

/// One figure over all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Summary {
    figure: &'static str,
    #[serde(flatten)]
    spread: Spread,
}

impl Report {
    /// Sums up.
    pub(super) fn new(
        machine: Machine,
        versions: Versions,
        setting: Setting,
        runs: Vec<Figures>,
        against: Vec<Figures>,
    ) -> Self {
        let summary =
            spreads(&runs).into_iter().map(|(figure, spread, _)| Summary { figure, spread }).collect();
        let ratios = if against.is_empty() { Vec::new() } else { ratios(&runs, &against) };
        Self { machine, versions, setting, runs, summary, against, ratios }
    }

    /// Whether every server of every run was provisioned.
    pub(super) fn complete(&self) -> bool {
        self.runs.iter().chain(&self.against).all(Figures::complete)
    }

    /// The tables.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{}\n{}, {}\n{} servers over {} connections, {} workers, helper {}, {} network, {}{}\n",
            self.machine.line(),
            self.versions.quartermaster,
            self.versions.broker,
            self.setting.servers,
            self.setting.connections,
            self.setting.workers,
            self.setting.helper,
            self.setting.network,
            self.setting.announce,
            if self.setting.state { ", state on disk" } else { "" },
        );
        let _ = writeln!(text, "{}", self.figures());
        if !self.ratios.is_empty() {
            let other = self.versions.against.as_deref().unwrap_or("the other");
            let _ = writeln!(text, "against {other}\n{}", self.comparison());
        }
        let _ = write!(text, "{}", self.latencies());
        text
    }

    fn figures(&self) -> Table {
        let mut table = table(&["", "min", "median", "max"]);
        let counted = |count: fn(&Figures) -> u64| {
            #[expect(clippy::cast_precision_loss, reason = "servers of a fleet, far below 2^52")]
            let spread = Spread::of(self.runs.iter().map(|run| count(run) as f64));
            spread
        };
        add(&mut table, "provisioned", counted(|run| run.provisioned));
        add(&mut table, "duplicate configures", counted(|run| run.duplicate_configures));
        add(&mut table, "cycles that failed", counted(|run| run.failures));
        for summary in &self.summary {
            add(&mut table, summary.figure, summary.spread);
        }
        if let Some(limit) = self.setting.helper_limit() {
            let share = Spread::of(self.runs.iter().map(|run| run.per_minute * 100.0 / limit));
            add(&mut table, "of what so slow a helper allows, %", share);
        }
        add(&mut table, "most servers in the queue", counted(|run| run.most_waiting));
        let answers = |told: fn(&Figures) -> f64| Spread::of(self.runs.iter().map(told));
        add(&mut table, "/metrics answers, longest, ms", answers(|run| run.metrics_answer.max_ms));
        if self.runs.iter().any(|run| run.control_answer.is_some()) {
            let longest = answers(|run| run.control_answer.map_or(0.0, |told| told.max_ms));
            add(&mut table, "control answers, longest, ms", longest);
        }
        table
    }

    fn comparison(&self) -> Table {
        let mut table = table(&["median", "quartermaster", "the other", "times better"]);
        for ratio in &self.ratios {
            let times = ratio.times_better.map_or_else(|| "–".to_owned(), |times| format!("{times:.1}"));
            row(&mut table, ratio.figure, &[number(ratio.ours.median), number(ratio.theirs.median), times]);
        }
        table
    }

    /// Of the run in the middle by speed.
    fn latencies(&self) -> Table {
        let mut table = table(&["milliseconds", "count", "p50", "p95", "p99"]);
        let mut runs: Vec<&Figures> = self.runs.iter().collect();
        runs.sort_by(|a, b| a.per_minute.total_cmp(&b.per_minute));
        let Some(run) = runs.get(runs.len() / 2) else { return table };
        for (step, latency) in &run.steps {
            latency_row(&mut table, step, latency);
        }
        for (name, latency) in
            [("wait for a helper", &run.helper_wait), ("wait in the queue", &run.queue_wait)]
        {
            if let Some(latency) = latency {
                latency_row(&mut table, name, latency);
            }
        }
        table
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.iter().copied());
    table
}

fn row(table: &mut Table, name: &str, values: &[String]) {
    let right = values.iter().map(|value| Cell::new(value).set_alignment(CellAlignment::Right));
    table.add_row(std::iter::once(Cell::new(name)).chain(right));
}

fn add(table: &mut Table, name: &str, spread: Spread) {
    row(table, name, &[number(spread.min), number(spread.median), number(spread.max)]);
}

fn latency_row(table: &mut Table, name: &str, latency: &Latency) {
    let millis = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.1}"));
    let values =
        [latency.count.to_string(), millis(latency.p50_ms), millis(latency.p95_ms), millis(latency.p99_ms)];
    row(table, name, &values);
}

/// Whole from a hundred on, else with two digits that count.
pub(super) fn number(value: f64) -> String {
    if value >= 100.0 || value.fract().abs() < 1e-9 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_exact_as_they_are_worth() {
        for (value, expected) in
            [(31_415.9, "31416"), (100.0, "100"), (1.2345, "1.23"), (0.0, "0"), (7.0, "7")]
        {
            assert_eq!(number(value), expected);
        }
    }
}
