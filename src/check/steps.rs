//! Steps against what their providers declare: every action, attribute, reference and condition. Only the programs' `schema`
//! subcommands run for it, or a process that is asked to describe itself where the configuration says so; nothing is configured.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quartermaster_actors::provider::CallError;
use quartermaster_actors::steps::{Template, TypeScope};
use quartermaster_proto::provider::{
    ActionSchema, AttrSchema, Complaint, Declared as _, Path, Schema, Type, Value, validate,
};

use crate::app::providers;
use crate::config::{Config, FaultKind, Faults, ProviderConfig, Severity, StepConfig};
use crate::provider::{Asked, ask, cache};

/// Checks all steps; answers what their providers declare.
pub fn examine(config: &Config, faults: &mut Faults) -> BTreeMap<String, Arc<Schema>> {
    let used: BTreeSet<&str> = config.steps.all().map(|step| step.provider.as_str()).collect();
    let used: Vec<&ProviderConfig> =
        config.providers.iter().filter(|provider| used.contains(provider.name.as_str())).collect();
    let mut schemas = BTreeMap::new();
    for (provider, probed) in used.iter().copied().zip(probed(config, &used)) {
        let key = format!("providers.{}.source", provider.name);
        match probed {
            Ok(asked) => {
                for warning in &asked.warnings {
                    faults.about(Severity::Warning, FaultKind::Files, &key, warning.to_string(), "");
                }
                provider_config(provider, &asked.schema, faults);
                schemas.insert(provider.name.clone(), asked.schema);
            }
            // What is wrong with the program itself has been told of.
            Err(_) if !provider.program.is_file() => {}
            Err(error) => {
                let help = if provider.compat.probe_by_describe {
                    "`quartermaster provider check` tells what is wrong with the program"
                } else {
                    "run the program with the argument `schema` and look what it prints; for a program without it there is \
                     `compat.schema_probe: describe`"
                };
                faults.missing(&key, explained(&error), help);
            }
        }
    }
    let mut scope = TypeScope { roots: roots(config), steps: BTreeMap::new() };
    for step in config.steps.all() {
        let outputs = one(step, schemas.get(&step.provider), &scope, faults);
        scope.steps.insert(step.name.clone(), outputs);
    }
    schemas
}

fn explained(error: &CallError) -> String {
    match error.stderr.last() {
        Some(line) => format!("{}; its last words: {line}", error.message()),
        None => error.message().to_owned(),
    }
}

/// The schemas of these providers, asked for side by side, or remembered.
fn probed(config: &Config, used: &[&ProviderConfig]) -> Vec<Result<Asked, CallError>> {
    if used.is_empty() {
        return Vec::new();
    }
    let settings: Vec<_> = used
        .iter()
        .map(|provider| (providers::settings(config, provider), provider.compat.probe_by_describe))
        .collect();
    // A thread of its own, since whoever asks may be inside a runtime already.
    let asked = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let cache = cache();
        let each =
            settings.iter().map(|(settings, by_describe)| ask(settings, *by_describe, cache.as_deref()));
        Some(runtime.block_on(futures::future::join_all(each)))
    });
    asked.join().ok().flatten().unwrap_or_default()
}

fn provider_config(provider: &ProviderConfig, schema: &Schema, faults: &mut Faults) {
    let complaints = schema.config.check(&provider.config).err().unwrap_or_default();
    for Complaint { path, message } in complaints {
        let help = "`quartermaster provider schema` shows what the provider takes";
        let key = format!("providers.{}.config.{path}", provider.name);
        let key =
            if faults.place(&key).is_some() { key } else { format!("providers.{}.source", provider.name) };
        faults.error(&key, format!("config.{path}: {message}"), help);
    }
}

/// What steps may refer to, with the features of this site.
fn roots(config: &Config) -> BTreeMap<String, Type> {
    let mut server = BTreeMap::from([
        ("identity", Type::String),
        ("version", Type::String),
        ("facts", Type::Any),
        ("inventory", Type::Any),
    ]);
    if config.features.pki {
        server.insert("csr", Type::Any);
    }
    if config.features.ed25519 {
        server.insert("ed25519_pubkey", Type::Any);
    }
    if config.features.jwt || config.features.ed25519 {
        server.insert("jwt", Type::Any);
    }
    let texts = || Type::Map(Box::new(Type::String));
    let helper = BTreeMap::from([
        ("defer", Type::Bool),
        ("shutdown", Type::Bool),
        ("msg", Type::String),
        ("key", Type::String),
        ("certificate", Type::String),
        ("ca", Type::String),
        ("ssldir", Type::String),
        ("upgrade", Type::String),
        ("configuration", texts()),
        ("action_policies", texts()),
        ("opa_policies", texts()),
    ]);
    [("server".to_owned(), object(server)), ("helper".to_owned(), object(helper))].into()
}

fn object(fields: BTreeMap<&str, Type>) -> Type {
    use quartermaster_proto::provider::Field;
    let each = fields.into_iter().map(|(name, ty)| (name.to_owned(), Field { ty, optional: false }));
    Type::Object(each.collect())
}

/// Checks one step; answers the type of its outputs for those that come after it.
fn one(
    step: &StepConfig,
    schema: Option<&Arc<Schema>>,
    scope: &TypeScope,
    faults: &mut Faults,
) -> Option<Type> {
    let templates = Template::read_members(&step.attrs)
        .map_err(|complaints| told(step, "attrs", complaints, faults))
        .ok();
    if let Some(when) = &step.when {
        match Template::read(when) {
            Ok(when) => told(step, "when", when.check_condition(&Path::default(), scope), faults),
            Err(complaints) => told(step, "when", complaints, faults),
        }
    }
    let Some(schema) = schema else {
        // Nothing is known of its types, but references must still lead somewhere.
        let found = templates.map(|templates| templates.check(&Path::default(), &Type::Any, scope));
        told(step, "attrs", found.unwrap_or_default(), faults);
        return Some(Type::Any);
    };
    let Some(action) = schema.actions.get(&step.action) else {
        let known: Vec<&str> = schema.actions.keys().map(String::as_str).collect();
        let what = format!("provider {:?} has no action {:?}", step.provider, step.action);
        faults.error(&format!("{}.action", step.path), what, &format!("known: {}", known.join(", ")));
        return Some(Type::Any);
    };
    if let Some(templates) = templates {
        attributes(step, action, &templates, scope, faults);
    }
    action.outputs.as_ref().map(|outputs| outputs.ty.clone())
}

fn attributes(
    step: &StepConfig,
    action: &ActionSchema,
    templates: &Template,
    scope: &TypeScope,
    faults: &mut Faults,
) {
    let given = members(templates);
    for name in given.keys().filter(|name| !action.attrs.contains_key(*name)) {
        let known: Vec<&str> = action.attrs.keys().map(String::as_str).collect();
        let what = format!("action {:?} has no such attribute", step.action);
        faults.error(&format!("{}.attrs.{name}", step.path), what, &format!("known: {}", known.join(", ")));
    }
    for (name, attr) in &action.attrs {
        let Some(template) = given.get(name) else {
            if attr.required && attr.default.is_none() {
                let what = format!("action {:?} needs the attribute `{name}`, {}", step.action, attr.ty);
                faults.error(&step.path, what, &format!("write `{name}: …` under attrs"));
            }
            continue;
        };
        told(step, "attrs", template.check(&Path::of(name), &attr.ty, scope), faults);
        choice(step, name, attr, template, faults);
        if let Some(why) = &attr.deprecated {
            faults.warning(
                &format!("{}.attrs.{name}", step.path),
                format!("it should no longer be used: {why}"),
                "",
            );
        }
    }
}

fn choice(step: &StepConfig, name: &str, attr: &AttrSchema, template: &Template, faults: &mut Faults) {
    if let Template::Plain(value) = template
        && !attr.choices.is_empty()
        && let Ok(value) = validate(&attr.ty, value)
        && !value.is_null()
        && !attr.choices.contains(&value)
    {
        let allowed: Vec<String> = attr.choices.iter().take(20).map(Value::to_json).collect();
        let help = format!("allowed: {}", allowed.join(", "));
        faults.error(&format!("{}.attrs.{name}", step.path), "it is none of the values allowed", &help);
    }
}

/// The attributes one by one.
fn members(templates: &Template) -> BTreeMap<String, Template> {
    match templates {
        Template::Object(members) => members.clone(),
        Template::Plain(Value::Object(members)) => {
            members.iter().map(|(name, value)| (name.clone(), Template::Plain(value.clone()))).collect()
        }
        _ => BTreeMap::new(),
    }
}

fn told(step: &StepConfig, part: &str, complaints: Vec<Complaint>, faults: &mut Faults) {
    for Complaint { path, message } in complaints {
        let path = path.to_string();
        let key = if path.is_empty() {
            format!("{}.{part}", step.path)
        } else {
            format!("{}.{part}.{path}", step.path)
        };
        // Of a part of a value the place of the whole is better than none.
        let at = if faults.place(&key).is_some() { key.clone() } else { format!("{}.{part}", step.path) };
        let what = if at == key { message } else { format!("{path}: {message}") };
        faults.error(&at, what, "docs/steps.md tells what may be written here");
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
