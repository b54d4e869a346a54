//! What the demo ends with.

use std::time::Duration;

use comfy_table::{Table, presets};
use serde::Serialize;

/// The outcome in figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Summary {
    /// Servers of the fleet.
    pub(super) servers: u64,
    /// Servers that came back as ordinary servers.
    pub(super) provisioned: u64,
    /// Servers that did not.
    pub(super) failed: u64,
    /// Servers whose return the provisioner saw.
    pub(super) confirmed: u64,
    /// `configure` calls to servers that had been configured before.
    pub(super) configured_twice: u64,
    /// Failed cycles; each is tried again later.
    pub(super) failures: u64,
    /// Helper runs.
    pub(super) helper_runs: u64,
    /// Seconds from the first announcement until the last server was configured; the restarts come after that.
    pub(super) seconds: f64,
    /// Provisioned servers a minute, over these seconds.
    pub(super) per_minute: u64,
    /// Median milliseconds a server was worked on.
    pub(super) median_cycle_ms: Option<u64>,
    /// Seconds of processor time the provisioner used, helpers not included.
    pub(super) cpu_seconds: Option<f64>,
    /// The most memory the provisioner held at once, MiB.
    pub(super) peak_memory_mib: Option<u64>,
}

impl Summary {
    /// Computes the rate from the other figures.
    pub(super) fn rated(mut self, took: Duration) -> Self {
        self.seconds = took.as_secs_f64();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate for people, of small positive numbers"
        )]
        let rate = (self.provisioned as f64 * 60.0 / self.seconds.max(0.001)) as u64;
        self.per_minute = rate;
        self
    }

    /// The table for people.
    pub(super) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        let median =
            self.median_cycle_ms.map_or_else(|| "unknown".to_owned(), |millis| format!("{millis} ms"));
        let unknown = || "unknown".to_owned();
        let cpu = self.cpu_seconds.map_or_else(unknown, |seconds| format!("{seconds:.1} s"));
        let memory = self.peak_memory_mib.map_or_else(unknown, |mib| format!("{mib} MiB"));
        let rows: [(&str, String); 11] = [
            ("provisioned", format!("{} of {}", self.provisioned, self.servers)),
            ("failed", self.failed.to_string()),
            ("confirmed", self.confirmed.to_string()),
            ("configured twice", self.configured_twice.to_string()),
            ("cycles that failed", self.failures.to_string()),
            ("helper runs", self.helper_runs.to_string()),
            ("time", format!("{:.1} s", self.seconds)),
            ("servers a minute", self.per_minute.to_string()),
            ("median cycle", median),
            ("provisioner's processor time", cpu),
            ("provisioner's peak memory", memory),
        ];
        for (name, value) in rows {
            table.add_row([name.to_owned(), value]);
        }
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
        table.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_provisioned() {
        let summary = Summary { servers: 200, provisioned: 100, ..Summary::default() };
        assert_eq!(summary.rated(Duration::from_secs(30)).per_minute, 200);
    }

    #[test]
    fn the_table_names_every_figure() {
        let table = Summary { servers: 3, provisioned: 2, failed: 1, ..Summary::default() }.table();
        assert!(table.contains("2 of 3"), "{table}");
        for figure in ["median cycle", "processor time", "peak memory"] {
            assert!(table.contains(figure), "{figure} is missing in {table}");
        }
    }
}
