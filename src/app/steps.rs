//! Steps of providers: who does them, and what they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use quartermaster_actors::helper::Orphans;
use quartermaster_actors::host::SiteSteps;
use quartermaster_actors::journal::Found;
use quartermaster_actors::metrics::{MetricsError, Recorder};
use quartermaster_actors::provider::{ProviderHandle, ProviderParts, ProviderRunner};
use quartermaster_actors::steps::{Entry, Ledger, Providers, StepSpec, Template};
use quartermaster_actors::supervise::{Owned, RestartPolicy, Slot, Ward};

use serde_json::Value;

use super::providers;
use crate::config::{Config, StepConfig};
use crate::provider::TraceFile;

/// Questions that may wait for a runner at once.
const MAX_ASKS: usize = 1024;
/// Members of frames that hold values, or words of a provider that may repeat such.
const HELD: [&str; 5] = ["attrs", "outputs", "config", "message", "detail"];
const MASKED: &str = "***";
/// Cycles beside those in flight that may want something of a provider at the same time.
const SPARE: usize = 4096;

/// The providers of a site's steps.
pub struct StepProviders {
    /// For the cycles.
    pub port: Arc<Providers>,
    /// Those to be asked to end before this process does.
    pub handles: Vec<ProviderHandle>,
    /// Their owner's records.
    pub wards: Vec<Box<dyn Ward>>,
}

/// A value of a step that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("the key `{key}` is not usable: {what}")]
pub struct StepError {
    key: String,
    what: String,
}

/// The providers that steps use, and those of whom something is still to be taken back.
pub fn build(
    config: &Config,
    found: &Found,
    recorder: &Recorder,
    orphans: &Orphans,
    trace: Option<&TraceFile>,
) -> Result<StepProviders, MetricsError> {
    let mut used: BTreeSet<&str> = config.steps.all().map(|step| step.provider.as_str()).collect();
    let ledgers = found.hosts.iter().filter_map(|host| host.steps.as_ref());
    let ledgers = ledgers.chain(found.only_provided.iter().map(|(_, ledger)| ledger));
    used.extend(ledgers.flat_map(Ledger::entries).map(|entry: &Entry| entry.provider.as_str()));
    let mut wards: Vec<Box<dyn Ward>> = Vec::new();
    let mut handles = Vec::new();
    for provider in config.providers.iter().filter(|provider| used.contains(provider.name.as_str())) {
        let mut settings = providers::settings(config, provider);
        // It has room for every cycle there can be, so it is never what refuses.
        settings.queue = config.in_flight.get().saturating_add(SPARE);
        // One name for each; there are as many as the file has providers, once.
        let name: &'static str = format!("provider_{}", provider.name).leak();
        let slot: Slot<ProviderRunner> = Slot::new(name, MAX_ASKS);
        let sink = recorder.provider_sink(&settings.name)?;
        settings.run = uuid::Uuid::new_v4().to_string();
        let traced = trace.map(|trace| trace.sink(&settings.name, covered));
        let mut parts = ProviderParts::new(settings, sink, orphans.clone());
        if let Some(traced) = traced {
            parts = parts.traced(traced);
        }
        let parts = Arc::new(parts);
        handles.push(ProviderHandle::new(slot.clone(), Arc::clone(&parts)));
        let runner = Owned::new(slot, RestartPolicy::standard(), move |birth, _| {
            ProviderRunner::new(Arc::clone(&parts), Some(birth.notice))
        });
        wards.push(Box::new(runner));
    }
    let folder = config.yaml_file.parent().map(std::path::Path::to_owned).unwrap_or_default();
    Ok(StepProviders { port: Arc::new(Providers::new(handles.clone(), folder)), handles, wards })
}

/// A frame without the values that pass in it: they come from helpers' replies and outputs, whatever the schema says of them.
fn covered(frame: &str) -> String {
    match serde_json::from_str::<Value>(frame) {
        Ok(mut value) => {
            cover(&mut value, false);
            value.to_string()
        }
        Err(_) => format!("({} bytes that are no frame)", frame.len()),
    }
}

fn cover(value: &mut Value, inside: bool) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                cover(value, inside || HELD.contains(&name.as_str()));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cover(item, inside)),
        Value::String(_) | Value::Number(_) if inside => *value = MASKED.into(),
        _ => {}
    }
}

/// What the steps are.
///
/// # Errors
/// What `check` tells of as well: a text that cannot be understood.
pub fn site(config: &Config) -> Result<SiteSteps, StepError> {
    let all = |steps: &[StepConfig]| steps.iter().map(spec).collect::<Result<Arc<[StepSpec]>, _>>();
    Ok(SiteSteps { before: all(&config.steps.before)?, after: all(&config.steps.after)? })
}

fn spec(step: &StepConfig) -> Result<StepSpec, StepError> {
    let wrong = |part: &str, complaints: Vec<quartermaster_proto::provider::Complaint>| StepError {
        key: format!("{}.{part}", step.path),
        what: complaints.first().map(ToString::to_string).unwrap_or_default(),
    };
    let attrs = Template::read_members(&step.attrs).map_err(|found| wrong("attrs", found))?;
    let when = step.when.as_ref().map(Template::read).transpose().map_err(|found| wrong("when", found))?;
    Ok(StepSpec {
        name: step.name.clone(),
        provider: step.provider.clone(),
        action: step.action.clone(),
        attrs,
        when,
        timeout: step.timeout,
        tries: step.tries,
        ignore_failure: step.ignore_failure,
    })
}
