//! The site's helper and who runs it: a process for each run, or a provider.

use std::path::Path;
use std::sync::Arc;

use quartermaster_actors::control::ControlHandle;
use quartermaster_actors::helper::{HelperHandle, HelperParts, HelperRunner, Orphans};
use quartermaster_actors::metrics::{MetricsError, Recorder};
use quartermaster_actors::provider::{ProviderHandle, ProviderParts, ProviderRunner};
use quartermaster_actors::supervise::{Owned, RestartPolicy, Slot, Ward};

use super::{AppError, settings};
use crate::config::{Config, HelperProtocol};
use crate::helper_test::redact;
use crate::provider::TraceFile;

/// Questions that may wait for the runner at once.
const MAX_ASKS: usize = 1024;

/// The helper's handle, and those who see to it.
pub(super) struct Helping {
    pub helper: HelperHandle,
    pub slot: Slot<HelperRunner>,
    pub wards: Vec<Box<dyn Ward>>,
    /// Those to be asked to end before this process does.
    pub providers: Vec<ProviderHandle>,
    /// What helpers and providers leave behind is ended here.
    pub orphans: Orphans,
    /// Where lines to and from providers are written down, if anywhere.
    pub trace: Option<TraceFile>,
}

/// Makes the runner's handle and its owner's record; with a provider, that one's as well.
pub(super) fn build(
    config: &Config,
    control: &ControlHandle,
    recorder: &Recorder,
    trace: Option<&Path>,
) -> Result<Helping, AppError> {
    let trace = trace.map(TraceFile::create).transpose()?;
    let orphans = Orphans::adopt().unwrap_or_else(|error| {
        tracing::warn!("processes that helpers leave behind cannot be adopted: {error}");
        Orphans::unadopted()
    });
    let settings = settings::helper(config);
    let mut parts = HelperParts::new(settings, control.subscribe(), recorder.sink(), orphans.clone());
    let mut wards: Vec<Box<dyn Ward>> = Vec::new();
    let mut providers = Vec::new();
    if config.helper.protocol == HelperProtocol::Provider {
        let (provider, runner) = provider(config, recorder, orphans.clone(), trace.as_ref())?;
        parts = parts.provided(provider.clone());
        providers.push(provider);
        wards.push(Box::new(runner));
    }
    let parts = Arc::new(parts);
    let slot = Slot::new("helper", MAX_ASKS);
    let helper = HelperHandle::new(slot.clone(), Arc::clone(&parts));
    let runner = Owned::new(slot.clone(), RestartPolicy::standard().at_once(), move |birth, _| {
        HelperRunner::new(Arc::clone(&parts), Some(birth.notice))
    });
    wards.push(Box::new(runner));
    Ok(Helping { helper, slot, wards, providers, orphans, trace })
}

fn provider(
    config: &Config,
    recorder: &Recorder,
    orphans: Orphans,
    trace: Option<&TraceFile>,
) -> Result<(ProviderHandle, Owned<ProviderRunner>), MetricsError> {
    let mut settings = settings::helper_provider(config);
    let sink = recorder.provider_sink(&settings.name)?;
    settings.run = uuid::Uuid::new_v4().to_string();
    let traced = trace.map(|trace| trace.sink(&settings.name, covered));
    let mut parts = ProviderParts::new(settings, sink, orphans);
    if let Some(sink) = traced {
        parts = parts.traced(sink);
    }
    let parts = Arc::new(parts);
    let slot = Slot::new("provider", MAX_ASKS);
    let handle = ProviderHandle::new(slot.clone(), Arc::clone(&parts));
    let runner = Owned::new(slot, RestartPolicy::standard(), move |birth, _| {
        ProviderRunner::new(Arc::clone(&parts), Some(birth.notice))
    });
    Ok((handle, runner))
}

/// A frame without what is secret about every server: tokens, keys, passwords. Its schema need not say so.
fn covered(frame: &str) -> String {
    match serde_json::from_str(frame) {
        Ok(mut value) => {
            redact(&mut value);
            value.to_string()
        }
        // No frame, and not understood: it may hold anything.
        Err(_) => format!("({} bytes that are no frame)", frame.len()),
    }
}
