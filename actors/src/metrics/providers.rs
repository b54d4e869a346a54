//! The series of providers: made when a provider is named in the configuration, so that their number is bounded by it and by what
//! the provider's schema declares.

use std::sync::Arc;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::store::{Maker, set};
use crate::provider::{CallEnded, Happening, Note, ProviderFact};

/// The families; one that no provider has a series in shows nothing.
#[derive(Debug)]
pub(super) struct Providers {
    calls: IntCounterVec,
    call_seconds: HistogramVec,
    wait_seconds: HistogramVec,
    open: IntGaugeVec,
    queued: IntGaugeVec,
    ready: IntGaugeVec,
    restarts: IntCounterVec,
    failures: IntCounterVec,
    late: IntCounterVec,
    bad_frames: IntCounterVec,
    bytes: IntCounterVec,
    unlogged: IntCounterVec,
}

const PROVIDER: &[&str] = &["provider"];

impl Providers {
    pub(super) fn new(make: &Maker<'_>) -> prometheus::Result<Self> {
        let counter = |name, help| make.counter_family(name, help, PROVIDER);
        let gauge = |name, help| make.gauge_family(name, help, PROVIDER);
        Ok(Self {
            calls: make.counter_family(
                "quartermaster_provider_calls_total",
                "Calls of providers that ended, by how",
                &["provider", "method", "action", "code"],
            )?,
            call_seconds: make.histogram_family(
                "quartermaster_provider_call_seconds",
                "Seconds from the sending of a call to its end",
                PROVIDER,
            )?,
            wait_seconds: make.histogram_family(
                "quartermaster_provider_wait_seconds",
                "Seconds a call waited until it was sent",
                PROVIDER,
            )?,
            open: gauge("quartermaster_provider_open_calls", "Calls that processes have in their hands now")?,
            queued: gauge("quartermaster_provider_queued_calls", "Calls that wait to be sent now")?,
            ready: gauge("quartermaster_provider_ready_processes", "Processes that are ready for calls now")?,
            restarts: make.counter_family(
                "quartermaster_provider_restarts_total",
                "Processes that were started again: crashed, or replaced because a call could not be called back",
                &["provider", "why"],
            )?,
            failures: counter(
                "quartermaster_provider_failures_total",
                "Times a provider was given up for a while because it crashed too often or cannot work",
            )?,
            late: counter(
                "quartermaster_provider_late_answers_total",
                "Answers that came after their call was given up",
            )?,
            bad_frames: counter(
                "quartermaster_provider_bad_frames_total",
                "Lines on standard output that were no frame or answered nothing",
            )?,
            bytes: make.counter_family(
                "quartermaster_provider_bytes_total",
                "Bytes that passed: read from processes, written to them",
                &["provider", "direction"],
            )?,
            unlogged: counter(
                "quartermaster_provider_stderr_dropped_total",
                "Lines on standard error that were not logged because there were too many",
            )?,
        })
    }

    /// The series of the provider of this name, all there from now on.
    pub(super) fn of(&self, name: &str) -> prometheus::Result<Arc<ProviderSeries>> {
        let provider = &[name];
        Ok(Arc::new(ProviderSeries {
            name: name.to_owned(),
            calls: self.calls.clone(),
            call_seconds: self.call_seconds.get_metric_with_label_values(provider)?,
            wait_seconds: self.wait_seconds.get_metric_with_label_values(provider)?,
            open: self.open.get_metric_with_label_values(provider)?,
            queued: self.queued.get_metric_with_label_values(provider)?,
            ready: self.ready.get_metric_with_label_values(provider)?,
            crashed: self.restarts.get_metric_with_label_values(&[name, "crashed"])?,
            replaced: self.restarts.get_metric_with_label_values(&[name, "replaced"])?,
            failures: self.failures.get_metric_with_label_values(provider)?,
            late: self.late.get_metric_with_label_values(provider)?,
            bad_frames: self.bad_frames.get_metric_with_label_values(provider)?,
            read: self.bytes.get_metric_with_label_values(&[name, "read"])?,
            written: self.bytes.get_metric_with_label_values(&[name, "written"])?,
            unlogged: self.unlogged.get_metric_with_label_values(provider)?,
        }))
    }
}

/// The series of one provider.
#[derive(Debug)]
pub(super) struct ProviderSeries {
    name: String,
    calls: IntCounterVec,
    call_seconds: Histogram,
    wait_seconds: Histogram,
    open: IntGauge,
    queued: IntGauge,
    ready: IntGauge,
    crashed: IntCounter,
    replaced: IntCounter,
    failures: IntCounter,
    late: IntCounter,
    bad_frames: IntCounter,
    read: IntCounter,
    written: IntCounter,
    unlogged: IntCounter,
}

impl ProviderSeries {
    /// Takes one fact into the numbers.
    pub(super) fn update(&self, fact: &ProviderFact) {
        match &fact.what {
            Happening::Called(call) => self.called(call),
            Happening::Moved(read, written) => {
                self.read.inc_by(*read);
                self.written.inc_by(*written);
            }
            Happening::Loaded(load) => {
                set(&self.open, load.open);
                set(&self.queued, load.queued);
                set(&self.ready, load.ready);
            }
            Happening::Said(_, said) => self.unlogged.inc_by(said.dropped),
            Happening::Noted(note) => match note {
                Note::Crashed(..) => self.crashed.inc(),
                Note::Replaced(..) => self.replaced.inc(),
                Note::Failed(..) => self.failures.inc(),
                Note::Late(_) => self.late.inc(),
                Note::BadFrame(_) => self.bad_frames.inc(),
                Note::Ready(_) | Note::Odd(..) | Note::Ended(_) => {}
            },
        }
    }

    fn called(&self, call: &CallEnded) {
        self.call_seconds.observe(call.took.as_secs_f64());
        self.wait_seconds.observe(call.waited.as_secs_f64());
        self.calls.with_label_values(&[self.name.as_str(), call.method, &call.action, call.code]).inc();
    }
}
