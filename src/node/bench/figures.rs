//! What was measured, and how it is shown.

use std::time::Duration;

use serde_json::json;

/// What one program used in the idle time.
#[derive(Debug, Clone)]
pub(super) struct Share {
    pub(super) name: &'static str,
    pub(super) cpu: Duration,
    pub(super) rss_kib: u64,
    pub(super) peak_kib: u64,
}

/// Everything that was measured.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) modules: u32,
    pub(super) files: u32,
    /// Start of a client that knows nothing, to every module applied.
    pub(super) first_start: Duration,
    /// Start of a client whose files are there already.
    pub(super) start: Duration,
    /// From a change of a config value to its file, in the order in which they were made.
    pub(super) changes: Vec<Duration>,
    pub(super) idle: Duration,
    pub(super) shares: Vec<Share>,
    /// Over the broker in the idle time, both ways.
    pub(super) bytes: u64,
    /// Of the vault, in a second.
    pub(super) answers: f64,
}

impl Figures {
    /// The time below which so many of a hundred changes lie.
    fn quantile(&self, percent: usize) -> Duration {
        let mut sorted = self.changes.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(at).copied().unwrap_or_default()
    }

    fn percent(&self, cpu: Duration) -> f64 {
        if self.idle.is_zero() { 0.0 } else { 100.0 * cpu.as_secs_f64() / self.idle.as_secs_f64() }
    }

    pub(super) fn for_people(&self) -> String {
        let Self { modules, files, changes, .. } = self;
        let (median, late) = (millis(self.quantile(50)), millis(self.quantile(99)));
        let mut lines = vec![
            format!("{modules} modules of {files} files"),
            format!("first start to all applied      {:>9.2} s", self.first_start.as_secs_f64()),
            format!("start to all applied            {:>9.2} s", self.start.as_secs_f64()),
            format!("config value to file, median    {median:>9.1} ms ({} changes)", changes.len()),
            format!("config value to file, 99 %      {late:>9.1} ms"),
            format!("config value to file, longest   {:>9.1} ms", millis(self.quantile(100))),
        ];
        for share in &self.shares {
            lines.push(format!(
                "idle {}: {:>23.2} % of a core, {} MiB (peak {} MiB)",
                share.name,
                self.percent(share.cpu),
                share.rss_kib.div_ceil(1024),
                share.peak_kib.div_ceil(1024)
            ));
        }
        lines.push(format!(
            "idle bus                        {:>9} bytes in {} s",
            self.bytes,
            self.idle.as_secs()
        ));
        lines.push(format!("vault                           {:>9.0} answers a second", self.answers));
        lines.join("\n") + "\n"
    }

    pub(super) fn as_json(&self) -> String {
        let shares: serde_json::Map<String, serde_json::Value> = self
            .shares
            .iter()
            .map(|share| {
                let value = json!({
                    "cpu_percent": self.percent(share.cpu),
                    "rss_kib": share.rss_kib,
                    "peak_kib": share.peak_kib,
                });
                (share.name.to_owned(), value)
            })
            .collect();
        let value = json!({
            "modules": self.modules,
            "files": self.files,
            "first_start_seconds": self.first_start.as_secs_f64(),
            "start_seconds": self.start.as_secs_f64(),
            "changes": self.changes.len(),
            "change_ms": self.changes.iter().copied().map(millis).collect::<Vec<f64>>(),
            "change_median_ms": millis(self.quantile(50)),
            "change_p99_ms": millis(self.quantile(99)),
            "change_max_ms": millis(self.quantile(100)),
            "idle_seconds": self.idle.as_secs(),
            "idle": shares,
            "idle_bus_bytes": self.bytes,
            "vault_answers_per_second": self.answers,
        });
        format!("{}\n", serde_json::to_string_pretty(&value).unwrap_or_default())
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let changes = (1..=200).rev().map(Duration::from_millis).collect();
        let figures = Figures { changes, idle: Duration::from_mins(1), ..Figures::default() };
        assert_eq!(figures.quantile(50), Duration::from_millis(100));
        assert_eq!(figures.quantile(99), Duration::from_millis(198));
        assert_eq!(figures.quantile(100), Duration::from_millis(200));
        assert!((figures.percent(Duration::from_millis(600)) - 1.0).abs() < 1e-9);
        assert_eq!(Figures::default().quantile(99), Duration::ZERO);
        assert!(figures.for_people().contains("198.0 ms"));
        assert!(figures.as_json().contains("\"change_p99_ms\": 198.0"));
    }
}
