//! The section `steps`: what providers do for a server before and after it is configured.

use std::time::Duration;

use quartermaster_proto::provider::{Members, Value, is_name};

use super::daemon::duration;
use super::fault::Faults;
use super::providers::ProviderConfig;
use super::raw::RawConfig;
use super::section::Section;
use super::values;
use super::yaml;

const KEYS: &[&str] = &["name", "provider", "action", "attrs", "when", "timeout", "tries", "on_failure"];
/// Steps in all: a cycle that does more is no cycle.
const MOST: usize = 64;
const MAX_TRIES: i64 = 100;
const MAX_TIMEOUT: Duration = Duration::from_hours(24);
const DEFAULT_TRIES: u32 = 1;

/// The section as the file has it.
#[derive(Default, Clone)]
pub struct RawSteps {
    before: Vec<RawStep>,
    after: Vec<RawStep>,
}

/// One step as the file has it.
#[derive(Clone)]
struct RawStep {
    /// Where it stands, for messages.
    path: String,
    name: Option<String>,
    provider: Option<String>,
    action: Option<String>,
    attrs: Option<yaml::Node>,
    when: Option<yaml::Node>,
    timeout: Option<String>,
    tries: Option<i64>,
    on_failure: Option<String>,
}

impl RawSteps {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            before: section.each("before", KEYS, RawStep::read),
            after: section.each("after", KEYS, RawStep::read),
        }
    }
}

impl RawStep {
    fn read(mut section: Section<'_>) -> Self {
        let raw = Self {
            path: section.name.clone(),
            name: section.text("name"),
            provider: section.text("provider"),
            action: section.text("action"),
            attrs: section.any("attrs", false),
            when: section.any("when", false),
            timeout: section.text("timeout"),
            tries: section.integer("tries"),
            on_failure: section.text("on_failure"),
        };
        section.finish();
        raw
    }
}

/// The steps of a cycle, checked as far as the file alone tells. Attributes and conditions are as written: their references are
/// read where the providers' schemas are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepsConfig {
    /// Done before `configure`, in this order.
    pub before: Vec<StepConfig>,
    /// Done after `configure` and before the server is told to restart, in this order.
    pub after: Vec<StepConfig>,
}

impl StepsConfig {
    /// All of them, in the order in which they are done.
    pub fn all(&self) -> impl Iterator<Item = &StepConfig> {
        self.before.iter().chain(&self.after)
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepConfig {
    /// Where it stands in the file, as a path of keys.
    pub path: String,
    /// Its name: `steps.<name>` in later ones.
    pub name: String,
    /// The local name of its provider.
    pub provider: String,
    /// The provider's action.
    pub action: String,
    /// The attributes, texts with their `${…}`.
    pub attrs: Members,
    /// The condition, as written; `None` is always.
    pub when: Option<Value>,
    /// The limit of one call; `None` is the action's or the provider's own.
    pub timeout: Option<Duration>,
    /// How often a call that did nothing is made at most; 1 or more.
    pub tries: u32,
    /// Its failure is noted and the cycle goes on.
    pub ignore_failure: bool,
}

/// Checks the section.
pub(super) fn check(raw: &RawConfig, providers: &[ProviderConfig], faults: &mut Faults) -> StepsConfig {
    let mut names: Vec<String> = Vec::new();
    let mut all = |steps: &[RawStep]| -> Vec<StepConfig> {
        steps.iter().filter_map(|step| one(step, providers, &mut names, faults)).collect()
    };
    let steps = StepsConfig { before: all(&raw.steps.before), after: all(&raw.steps.after) };
    if steps.all().count() > MOST {
        faults.error(
            "steps",
            format!("there are more than {MOST}"),
            "let one action of a provider do several things",
        );
    }
    steps
}

fn one(
    raw: &RawStep,
    providers: &[ProviderConfig],
    names: &mut Vec<String>,
    faults: &mut Faults,
) -> Option<StepConfig> {
    let key = |key: &str| format!("{}.{key}", raw.path);
    let mut needed = |name: &str, value: &Option<String>| {
        if value.is_none() {
            faults.error(&raw.path, format!("it has no {name}"), &format!("write `{name}: …`"));
        }
        value.clone()
    };
    let (name, provider, action) =
        (needed("name", &raw.name), needed("provider", &raw.provider), needed("action", &raw.action));
    if let Some(name) = &name {
        if !is_name(name) {
            faults.error(
                &key("name"),
                format!("{name:?} is no name"),
                "write a letter, then letters, digits, _ and -",
            );
        } else if names.contains(name) {
            faults.error(
                &key("name"),
                format!("there is a step {name:?} already"),
                "give every step a name of its own",
            );
        }
        names.push(name.clone());
    }
    if let Some(provider) = &provider
        && !providers.iter().any(|known| known.name == *provider)
    {
        let known: Vec<&str> = providers.iter().map(|known| known.name.as_str()).collect();
        let help = if known.is_empty() {
            "describe it under `providers`".to_owned()
        } else {
            format!("known: {}", known.join(", "))
        };
        // One with a fault of its own has been told of already.
        if faults.place(&format!("providers.{provider}")).is_none() {
            faults.error(&key("provider"), format!("there is no provider {provider:?}"), &help);
        }
    }
    let attrs = match &raw.attrs {
        None => Members::new(),
        Some(node) if matches!(node.value, yaml::Value::Map(_) | yaml::Value::Null) => values::members(node),
        Some(node) => {
            let what = format!("it must be a map but is {}", node.value.kind());
            faults.error(&key("attrs"), what, "write its keys on the following lines, indented with spaces");
            Members::new()
        }
    };
    let timeout = duration(faults, &key("timeout"), raw.timeout.as_ref());
    if timeout.is_some_and(|timeout| timeout.is_zero() || timeout > MAX_TIMEOUT) {
        faults.error(
            &key("timeout"),
            "it must be more than nothing and at most a day",
            "remove it for the provider's own limit",
        );
    }
    let tries = raw.tries.map_or(Some(DEFAULT_TRIES), |tries| {
        u32::try_from(tries).ok().filter(|_| (1..=MAX_TRIES).contains(&tries))
    });
    if tries.is_none() {
        faults.error(&key("tries"), format!("it must be between 1 and {MAX_TRIES}"), "the default is 1");
    }
    let ignore_failure = match raw.on_failure.as_deref() {
        None | Some("fail") => false,
        Some("ignore") => true,
        Some(other) => {
            faults.error(
                &key("on_failure"),
                format!("there is no such choice as {other:?}"),
                "write fail or ignore",
            );
            false
        }
    };
    Some(StepConfig {
        path: raw.path.clone(),
        name: name?,
        provider: provider?,
        action: action?,
        attrs,
        when: raw.when.as_ref().map(values::value).filter(|when| !when.is_null()),
        timeout,
        tries: tries.unwrap_or(DEFAULT_TRIES),
        ignore_failure,
    })
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
