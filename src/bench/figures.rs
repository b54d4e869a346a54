//! What a run gives, and what several give together.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::latency::Latency;
use crate::stage::Usage;

/// What one process used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Consumption {
    /// Processor time, seconds.
    pub(super) cpu_s: f64,
    /// The most memory at once, MiB.
    pub(super) peak_rss_mib: f64,
}

impl Consumption {
    /// Between two looks; memory is the most until the later one.
    pub(super) fn between(before: Usage, after: Usage) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "memory in KiB, far below 2^52")]
        let peak_rss_mib = after.peak_kib.unwrap_or(0) as f64 / 1024.0;
        Self { cpu_s: after.cpu.saturating_sub(before.cpu).as_secs_f64(), peak_rss_mib }
    }
}

/// How long something took that was asked again and again, milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Answers {
    /// How often it was asked.
    pub(super) count: usize,
    /// Half took at most this.
    pub(super) p50_ms: f64,
    /// The longest.
    pub(super) max_ms: f64,
    /// How often nothing came within the limit.
    pub(super) failed: usize,
}

impl Answers {
    /// From what each took; none is a failure.
    pub(super) fn of(taken: &[Option<Duration>]) -> Self {
        let mut millis: Vec<f64> = taken.iter().flatten().map(|took| took.as_secs_f64() * 1000.0).collect();
        millis.sort_by(f64::total_cmp);
        Self {
            count: taken.len(),
            p50_ms: millis.get(millis.len() / 2).copied().unwrap_or(0.0),
            max_ms: millis.last().copied().unwrap_or(0.0),
            failed: taken.len() - millis.len(),
        }
    }
}

/// One run of one provisioner.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Figures {
    /// Servers of the fleet.
    pub(super) servers: u64,
    /// Servers that came back as ordinary servers.
    pub(super) provisioned: u64,
    /// `configure` calls to servers that had been configured before.
    pub(super) duplicate_configures: u64,
    /// Cycles that failed; each is tried again later.
    pub(super) failures: u64,
    /// From the first announcement (with discovery: from the first request) to the last `configure`, seconds.
    pub(super) elapsed_s: f64,
    /// Servers a minute over these seconds.
    pub(super) per_minute: f64,
    /// The provisioner, without its helpers.
    pub(super) provisioner: Consumption,
    /// Processor time of the helpers, seconds.
    pub(super) helpers_cpu_s: f64,
    /// The broker.
    pub(super) broker: Consumption,
    /// The fleet.
    pub(super) fleet: Consumption,
    /// Latencies of each step.
    pub(super) steps: BTreeMap<String, Latency>,
    /// Wait for a free helper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) helper_wait: Option<Latency>,
    /// Wait for the begin of the cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue_wait: Option<Latency>,
    /// The most hosts in the queue that were seen.
    pub(super) most_waiting: u64,
    /// Meanwhile: `GET /metrics`.
    pub(super) metrics_answer: Answers,
    /// Meanwhile: a question over control; none where that cannot be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) control_answer: Option<Answers>,
    /// How long the lone server waited that came after all others, until it was configured, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lone_s: Option<f64>,
}

impl Figures {
    /// Whether every server was provisioned.
    pub(super) const fn complete(&self) -> bool {
        self.provisioned == self.servers
    }

    /// The figures that are compared, with their names; of each, whether more is better.
    pub(super) fn compared(&self) -> Vec<(&'static str, f64, Better)> {
        use Better::{Less, More};
        let mut all = vec![
            ("servers a minute", self.per_minute, More),
            ("elapsed, s", self.elapsed_s, Less),
            ("provisioner's processor time, s", self.provisioner.cpu_s, Less),
            ("helpers' processor time, s", self.helpers_cpu_s, Less),
            ("broker's processor time, s", self.broker.cpu_s, Less),
            ("fleet's processor time, s", self.fleet.cpu_s, Less),
            ("provisioner's peak memory, MiB", self.provisioner.peak_rss_mib, Less),
            ("broker's peak memory, MiB", self.broker.peak_rss_mib, Less),
            ("fleet's peak memory, MiB", self.fleet.peak_rss_mib, Less),
        ];
        all.extend(self.lone_s.map(|lone| ("the lone server's wait, s", lone, Less)));
        all
    }
}

/// In which direction a figure is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
}

/// The least, the middle and the most of a figure over several runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Spread {
    /// The least.
    pub(super) min: f64,
    /// The middle one.
    pub(super) median: f64,
    /// The most.
    pub(super) max: f64,
}

impl Spread {
    /// Of these values; all zero when there is none.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |position: usize| values.get(position).copied().unwrap_or(0.0);
        let (last, middle) = (values.len().saturating_sub(1), values.len() / 2);
        let median = if values.len().is_multiple_of(2) && middle > 0 {
            f64::midpoint(at(middle - 1), at(middle))
        } else {
            at(middle)
        };
        Self { min: at(0), median, max: at(last) }
    }
}

/// Each compared figure over several runs, in the order of [`Figures::compared`].
pub(super) fn spreads(runs: &[Figures]) -> Vec<(&'static str, Spread, Better)> {
    let Some(first) = runs.first() else { return Vec::new() };
    let figure = |(name, _, better): (&'static str, f64, Better)| {
        let values = runs.iter().filter_map(|run| {
            run.compared().into_iter().find(|(other, _, _)| *other == name).map(|(_, value, _)| value)
        });
        (name, Spread::of(values), better)
    };
    first.compared().into_iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_ones() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Spread { min: 1.0, median: 2.5, max: 4.0 });
        assert_eq!(Spread::of([5.0, 1.0, 3.0]), Spread { min: 1.0, median: 3.0, max: 5.0 });
        assert_eq!(Spread::of([7.0]), Spread { min: 7.0, median: 7.0, max: 7.0 });
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn what_did_not_answer_is_counted_and_not_timed() {
        let told = Answers::of(&[Some(Duration::from_millis(3)), None, Some(Duration::from_millis(1))]);
        assert_eq!((told.count, told.failed), (3, 1));
        assert!((told.max_ms - 3.0).abs() < 1e-9, "{told:?}");
    }
}
