//! Latencies from the provisioner's own histograms: what came in between two looks.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::stage::Sample;

/// Latencies of one step, milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Latency {
    /// How many.
    pub(super) count: u64,
    /// The mean.
    pub(super) mean_ms: f64,
    /// Half took at most this long; none where there are no buckets.
    pub(super) p50_ms: Option<f64>,
    /// 95 in a hundred.
    pub(super) p95_ms: Option<f64>,
    /// 99 in a hundred.
    pub(super) p99_ms: Option<f64>,
}

/// Sum, count and buckets of one series: upper bound in seconds, how many at most that.
#[derive(Debug, Clone, Default, PartialEq)]
struct Histogram {
    sum: f64,
    count: f64,
    buckets: Vec<(f64, f64)>,
}

/// The steps that take part, by name: those of our histograms, or of the summaries that both provisioners have.
pub(super) fn steps(before: &[Sample], after: &[Sample]) -> BTreeMap<String, Latency> {
    let ours = told(before, after, "quartermaster_step_seconds", "step");
    if !ours.is_empty() {
        return ours;
    }
    let mut theirs = told(before, after, "choria_provisioner_rpc_time", "rpc");
    theirs = theirs
        .into_iter()
        .map(|(name, latency)| (name.rsplit('#').next().unwrap_or(&name).to_owned(), latency))
        .collect();
    theirs.extend(
        one(before, after, "choria_provisioner_helper_time").map(|latency| ("helper".to_owned(), latency)),
    );
    theirs
}

/// One series without a label that matters.
pub(super) fn one(before: &[Sample], after: &[Sample], name: &str) -> Option<Latency> {
    told(before, after, name, "").into_values().next()
}

fn told(before: &[Sample], after: &[Sample], name: &str, label: &str) -> BTreeMap<String, Latency> {
    let (before, after) = (gather(before, name, label), gather(after, name, label));
    let nothing = Histogram::default();
    let since = after.into_iter().map(|(key, after)| {
        let latency = after.since(before.get(&key).unwrap_or(&nothing)).latency();
        (key, latency)
    });
    since.filter(|(_, latency)| latency.count > 0).collect()
}

fn gather(samples: &[Sample], name: &str, label: &str) -> BTreeMap<String, Histogram> {
    let mut found: BTreeMap<String, Histogram> = BTreeMap::new();
    for sample in samples {
        let Some(kind) = sample.name.strip_prefix(name) else { continue };
        let key = if label.is_empty() { Some("") } else { sample.label(label) };
        let Some(key) = key else { continue };
        match kind {
            "_sum" => found.entry(key.to_owned()).or_default().sum += sample.value,
            "_count" => found.entry(key.to_owned()).or_default().count += sample.value,
            "_bucket" => {
                let bound =
                    sample.label("le").map_or(f64::INFINITY, |le| le.parse().unwrap_or(f64::INFINITY));
                found.entry(key.to_owned()).or_default().buckets.push((bound, sample.value));
            }
            _ => {}
        }
    }
    found
}

impl Histogram {
    fn since(&self, before: &Self) -> Self {
        let earlier = |bound: f64| {
            let same = |(known, _): &&(f64, f64)| known.total_cmp(&bound).is_eq();
            before.buckets.iter().find(same).map_or(0.0, |(_, count)| *count)
        };
        Self {
            sum: self.sum - before.sum,
            count: self.count - before.count,
            buckets: self.buckets.iter().map(|(bound, count)| (*bound, count - earlier(*bound))).collect(),
        }
    }

    fn latency(&self) -> Latency {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a counter, whole and not negative"
        )]
        let count = self.count.max(0.0) as u64;
        let quantile = |share| self.quantile(share).map(|seconds| seconds * 1000.0);
        Latency {
            count,
            mean_ms: self.sum * 1000.0 / self.count.max(1.0),
            p50_ms: quantile(0.5),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
        }
    }

    /// Within a bucket the values are taken to be spread evenly, as Prometheus does it.
    fn quantile(&self, share: f64) -> Option<f64> {
        let rank = share * self.count;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, count) in &self.buckets {
            if *count >= rank {
                let within = (count - below).max(f64::MIN_POSITIVE);
                let upper = if bound.is_finite() { *bound } else { lower };
                return Some(lower + (upper - lower) * ((rank - below) / within).clamp(0.0, 1.0));
            }
            (lower, below) = (if bound.is_finite() { *bound } else { lower }, *count);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::parse_samples;

    const BEFORE: &str = "s_bucket{step=\"jwt\",le=\"0.01\"} 10\ns_bucket{step=\"jwt\",le=\"0.1\"} 10\ns_bucket{step=\"jwt\",le=\"+Inf\"} 10\ns_sum{step=\"jwt\"} 0.05\ns_count{step=\"jwt\"} 10\n";
    const AFTER: &str = "s_bucket{step=\"jwt\",le=\"0.01\"} 60\ns_bucket{step=\"jwt\",le=\"0.1\"} 110\ns_bucket{step=\"jwt\",le=\"+Inf\"} 110\ns_sum{step=\"jwt\"} 2.05\ns_count{step=\"jwt\"} 110\n";

    #[test]
    fn quantiles_are_of_what_came_in_between() {
        let found = told(&parse_samples(BEFORE), &parse_samples(AFTER), "s", "step");
        let jwt = found.get("jwt").copied().unwrap_or_default();
        assert_eq!(jwt.count, 100);
        assert!((jwt.mean_ms - 20.0).abs() < 1e-6, "{jwt:?}");
        assert!(jwt.p50_ms.is_some_and(|ms| (ms - 10.0).abs() < 1e-6), "{jwt:?}");
        assert!(jwt.p95_ms.is_some_and(|ms| (ms - 91.0).abs() < 1e-6), "{jwt:?}");
    }

    #[test]
    fn summaries_without_buckets_have_a_mean_alone() {
        let text = "choria_provisioner_rpc_time_sum{rpc=\"a#jwt\"} 1\nchoria_provisioner_rpc_time_count{rpc=\"a#jwt\"} 4\n";
        let found = steps(&[], &parse_samples(text));
        let jwt = found.get("jwt").copied().unwrap_or_default();
        assert_eq!((jwt.count, jwt.p50_ms), (4, None));
        assert!((jwt.mean_ms - 250.0).abs() < 1e-6, "{jwt:?}");
    }
}
