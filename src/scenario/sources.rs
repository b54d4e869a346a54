//! From the entries of `required_providers` to what a runner is told. The settings are those of the section `providers` of the
//! configuration file, and are read by the same code.

use std::collections::BTreeMap;
use std::path::Path;

use quartermaster_actors::provider::ProviderSettings;
use quartermaster_proto::provider::{Members, Value};

use super::document::{Provider, Scenario};
use super::fault::Faults;
use super::world::World;
use crate::app;
use crate::config::provider_of;

/// A provider's settings, and how its schema is asked for.
#[derive(Debug, Clone)]
pub struct Source {
    /// The settings; the configuration is not in yet.
    pub settings: ProviderSettings,
    /// By `describe`, for a program without a `schema` subcommand.
    pub by_describe: bool,
}

/// The settings of every provider.
pub fn sources(scenario: &Scenario, folder: &Path, faults: &mut Faults) -> BTreeMap<String, Source> {
    let each = scenario.providers.iter();
    each.filter_map(|(name, provider)| Some((name.clone(), source(name, provider, folder, faults)?)))
        .collect()
}

fn source(name: &str, provider: &Provider, folder: &Path, faults: &mut Faults) -> Option<Source> {
    let world =
        World { only_variables: Some("the settings of a provider are written out"), ..World::default() };
    let mut settings = Members::new();
    for (key, expression) in &provider.settings {
        match expression.evaluate(&world) {
            Ok(evaluated) => {
                settings.insert(key.clone(), evaluated.value.with_nulls());
            }
            Err(error) => faults.expression(error),
        }
    }
    if let Some(line) = provider.settings.get("config").map(|config| config.line) {
        faults.error(line, format!("`config` is not supported here: write a block `provider \"{name}\"`"));
        return None;
    }
    // On the command line a provider inherits the environment, as from a shell (provider.md D11).
    let mut env = settings.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
    env.entry("mode".to_owned()).or_insert_with(|| "inherit".into());
    settings.insert("env".to_owned(), Value::Object(env));
    match provider_of(name, &Value::Object(settings).to_json(), folder) {
        Ok(config) => Some(Source {
            settings: app::provider_settings(&config, None, None),
            by_describe: config.compat.probe_by_describe,
        }),
        Err(wrong) => {
            for what in wrong {
                faults.error(provider.line, what);
            }
            None
        }
    }
}
