//! `--sweep`: the same measurement over growing fleets, and how cost, memory and answers grow with them.

use serde::Serialize;

use super::chart::{Line, Panel};
use super::figures::{Figures, Spread};
use super::report::Report;

/// The reports of all sizes, the smallest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Sweep {
    /// One for each size.
    pub(super) sweep: Vec<Report>,
}

/// Reads a list of sizes: each at least one, put in order, none twice.
pub(super) fn sizes(text: &str) -> Result<Vec<usize>, String> {
    let number = |word: &str| match word.trim().parse::<usize>() {
        Ok(size) if size > 0 => Ok(size),
        _ => Err(format!("`{word}` is no number of servers: expected numbers such as 1000,5000,10000")),
    };
    let mut sizes = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

impl Sweep {
    /// What is drawn.
    pub(super) fn panels(&self) -> Vec<Panel> {
        let line = |name: &'static str, figure: fn(&Figures) -> f64| {
            let point = |report: &Report| {
                #[expect(clippy::cast_precision_loss, reason = "servers of a fleet, far below 2^52")]
                let servers = report.setting.servers as f64;
                (servers, Spread::of(report.runs.iter().map(figure)).median)
            };
            Line { name, points: self.sweep.iter().map(point).collect() }
        };
        let panel = |title, lines| Panel { title, lines };
        vec![
            panel("Servers a minute", vec![line("quartermaster", |run| run.per_minute)]),
            panel(
                "Processor time for one server, ms",
                vec![
                    line("provisioner", |run| each(run, run.provisioner.cpu_s)),
                    line("helper", |run| each(run, run.helpers_cpu_s)),
                    line("broker", |run| each(run, run.broker.cpu_s)),
                ],
            ),
            panel(
                "Peak memory, MiB",
                vec![
                    line("provisioner", |run| run.provisioner.peak_rss_mib),
                    line("broker", |run| run.broker.peak_rss_mib),
                ],
            ),
            panel(
                "Answers meanwhile, ms",
                vec![
                    line("/metrics, median", |run| run.metrics_answer.p50_ms),
                    line("/metrics, longest", |run| run.metrics_answer.max_ms),
                    line("control, longest", |run| run.control_answer.map_or(0.0, |told| told.max_ms)),
                ],
            ),
        ]
    }
}

/// Of these seconds, the milliseconds of one server.
fn each(run: &Figures, seconds: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "servers of a fleet, far below 2^52")]
    let servers = run.servers.max(1) as f64;
    seconds * 1000.0 / servers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_order_and_none_twice() {
        assert_eq!(sizes("5000, 1000,5000"), Ok(vec![1000, 5000]));
        for bad in ["", "0", "1000,x", "-5"] {
            assert!(sizes(bad).is_err(), "{bad}");
        }
    }
}
