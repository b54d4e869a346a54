//! The series of the journal.

use prometheus::{Histogram, HistogramOpts, IntCounter, IntGauge, Opts, Registry};

use super::Fact;

/// Upper bounds of the buckets, in seconds: a disk takes between a fraction of a millisecond and far too long.
const SECONDS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0];

/// Four families with the label `site`.
#[derive(Debug)]
pub(super) struct Keeping {
    durable: IntGauge,
    commit_seconds: Histogram,
    writes: IntCounter,
    errors: IntCounter,
}

impl Keeping {
    pub(super) fn new(registry: &Registry, site: &str) -> prometheus::Result<Self> {
        let opts = |name: &str, help: &str| Opts::new(name, help).const_label("site", site);
        let help = "1 while what must survive a restart is on a disk, 0 while it is in memory only";
        let durable = IntGauge::with_opts(opts("quartermaster_journal_durable", help))?;
        let help = "Seconds one commit of the journal took";
        let commit = HistogramOpts::from(opts("quartermaster_journal_commit_seconds", help));
        let commit_seconds = Histogram::with_opts(commit.buckets(SECONDS.to_vec()))?;
        let help = "Writes of the journal that are on the disk";
        let writes = IntCounter::with_opts(opts("quartermaster_journal_writes_total", help))?;
        let help = "Commits of the journal, and attempts to begin a new file, that failed";
        let errors = IntCounter::with_opts(opts("quartermaster_journal_errors_total", help))?;
        registry.register(Box::new(durable.clone()))?;
        registry.register(Box::new(commit_seconds.clone()))?;
        registry.register(Box::new(writes.clone()))?;
        registry.register(Box::new(errors.clone()))?;
        Ok(Self { durable, commit_seconds, writes, errors })
    }

    /// Takes one fact about the journal into the numbers.
    pub(super) fn update(&self, fact: &Fact) {
        match fact {
            Fact::JournalCommitted { entries, took } => {
                self.commit_seconds.observe(took.as_secs_f64());
                self.writes.inc_by(u64::try_from(*entries).unwrap_or(0));
            }
            Fact::JournalFailed { .. } => {
                self.errors.inc();
                self.durable.set(0);
            }
            Fact::JournalDurable { durable } => self.durable.set(i64::from(*durable)),
            _ => {}
        }
    }
}
