//! What can be counted of the vault. No label names an account or a secret.

use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts, Registry, core::Collector};

/// What becomes of a request.
const OUTCOMES: [&str; 6] = ["sealed", "absent", "refused", "stored", "dropped", "none"];
/// Upper ends of the times that an answer takes, in seconds.
const BUCKETS: [f64; 9] = [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 2.0, 5.0];

/// The vault's numbers. Clones share them.
#[derive(Debug, Clone)]
pub struct VaultMetrics {
    requests: IntCounterVec,
    seconds: Histogram,
    values: IntGauge,
    unsaid: IntGauge,
    reachable: IntGauge,
}

impl VaultMetrics {
    /// The numbers, all of them there from the start.
    ///
    /// # Errors
    /// Never: the names are good.
    pub fn new() -> Result<Self, prometheus::Error> {
        let requests = IntCounterVec::new(
            Opts::new("quartermaster_vault_requests_total", "Requests of accounts, by what became of them"),
            &["outcome"],
        )?;
        for outcome in OUTCOMES {
            requests.with_label_values(&[outcome]);
        }
        let help = "Time from a request to its answer, the wait for the assignments included";
        let seconds =
            HistogramOpts::new("quartermaster_vault_request_seconds", help).buckets(BUCKETS.to_vec());
        let reachable = IntGauge::new(
            "quartermaster_vault_values_reachable",
            "1 while values can be had, 0 while the key-value store that keeps them gives no answer",
        )?;
        reachable.set(1);
        Ok(Self {
            requests,
            seconds: Histogram::with_opts(seconds)?,
            values: IntGauge::new("quartermaster_vault_values", "Names that have a value")?,
            unsaid: IntGauge::new(
                "quartermaster_vault_changes_unsaid",
                "Changes that the broker has not kept yet",
            )?,
            reachable,
        })
    }

    /// Enters the numbers where they are read.
    ///
    /// # Errors
    /// They are there already.
    pub fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let all: [Box<dyn Collector>; 5] = [
            Box::new(self.requests.clone()),
            Box::new(self.seconds.clone()),
            Box::new(self.values.clone()),
            Box::new(self.unsaid.clone()),
            Box::new(self.reachable.clone()),
        ];
        all.into_iter().try_for_each(|one| registry.register(one))
    }

    pub(super) fn answered(&self, outcome: &str, seconds: f64) {
        self.requests.with_label_values(&[outcome]).inc();
        self.seconds.observe(seconds);
    }

    pub(super) fn holds(&self, values: usize, unsaid: u64) {
        self.values.set(i64::try_from(values).unwrap_or(i64::MAX));
        self.unsaid.set(i64::try_from(unsaid).unwrap_or(i64::MAX));
    }

    pub(super) fn is_reachable(&self, reachable: bool) {
        self.reachable.set(i64::from(reachable));
    }
}
