//! A summary without quantiles, as the peer exports it; the library has none.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType, Summary as SummaryValue};

/// Sum and count of one series; both only grow.
#[derive(Debug, Default)]
pub(super) struct SummaryCell {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl SummaryCell {
    /// Adds one observation.
    pub(super) fn observe(&self, took: Duration) {
        self.nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> SummaryValue {
        let mut value = SummaryValue::default();
        value.set_sample_count(self.count.load(Ordering::Relaxed));
        value.set_sample_sum(Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64());
        value
    }
}

/// One family of such summaries; every series exists from the start.
#[derive(Debug)]
pub(super) struct SummaryFamily {
    desc: Desc,
    cells: Vec<(Vec<LabelPair>, Arc<SummaryCell>)>,
}

impl SummaryFamily {
    /// A family with a constant `site` label and one series for each set of further labels.
    pub(super) fn new(
        name: &str,
        help: &str,
        site: &str,
        series: &[Vec<(&str, String)>],
    ) -> prometheus::Result<Self> {
        let names = series.first().map(|labels| labels.iter().map(|(name, _)| (*name).to_owned()).collect());
        let site_label = HashMap::from([("site".to_owned(), site.to_owned())]);
        let desc = Desc::new(name.to_owned(), help.to_owned(), names.unwrap_or_default(), site_label)?;
        let cells = series
            .iter()
            .map(|labels| {
                let labels = labels.iter().map(|(name, value)| pair(name, value));
                let mut labels: Vec<_> = labels.chain([pair("site", site)]).collect();
                labels.sort_by(|a, b| a.name().cmp(b.name()));
                (labels, Arc::default())
            })
            .collect();
        Ok(Self { desc, cells })
    }

    /// The series, in the order they were given.
    pub(super) fn cells(&self) -> Vec<Arc<SummaryCell>> {
        self.cells.iter().map(|(_, cell)| Arc::clone(cell)).collect()
    }
}

fn pair(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

impl Collector for SummaryFamily {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let metrics = self.cells.iter().map(|(labels, cell)| {
            let mut metric = Metric::from_label(labels.clone());
            metric.set_summary(cell.value());
            metric
        });
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(MetricType::SUMMARY);
        family.set_metric(metrics.collect());
        vec![family]
    }
}
