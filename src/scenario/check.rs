//! What a scenario comes to with its variables and its providers' schemas: every reference, type and required attribute checked, the
//! order found. Nothing is started. Pure.

use std::collections::BTreeMap;
use std::path::Path as FilePath;
use std::sync::Arc;

use quartermaster_actors::expression::{Expression, Partial, Scope as _};
use quartermaster_proto::provider::{
    ActionSchema, Attrs as Declaration, Complaint, Declared as _, Members, Path, Schema, Value,
};

use super::document::{Action, Attrs, Output, Scenario};
use super::fault::Faults;
use super::graph::Graph;
use super::world::{Known, World};

/// Why a provider's configuration refers to variables alone.
const CONFIG_RULE: &str = "a provider is configured before anything is done, so only variables are known";

/// A scenario that can be carried out.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// The steps, as the file has them.
    pub steps: Vec<Step>,
    /// What comes before what, by their numbers.
    pub graph: Graph,
    /// An order that the graph allows.
    pub order: Vec<usize>,
    /// The configuration of each provider, checked; may be secret.
    pub configs: BTreeMap<String, Members>,
    /// Which parts of the configurations must not be shown, by provider.
    pub secret_config: BTreeMap<String, Vec<String>>,
    /// Variables and what else was known.
    pub world: World,
    /// What the providers declare.
    pub schemas: BTreeMap<String, Arc<Schema>>,
    /// What is told at the end.
    pub outputs: Vec<Output>,
    /// What the outputs come to as far as it is known.
    pub planned_outputs: Vec<(String, Known)>,
}

/// A step.
#[derive(Debug, Clone)]
pub struct Step {
    /// What it is called: `record_create.www`.
    pub id: String,
    /// The action as the file has it.
    pub action: Action,
    /// The provider that does it.
    pub provider: String,
    /// What the provider says of it.
    pub schema: ActionSchema,
    /// The action that takes it back, if the file says so, and what the provider says of that.
    pub teardown: Option<(String, ActionSchema)>,
    /// Its attributes as far as they are known, converted and completed.
    pub attrs: BTreeMap<String, Known>,
}

/// Attributes worked out and checked: what could not be is in the faults.
pub struct Attributes<'a> {
    /// What the provider declares.
    pub declared: &'a Declaration,
    /// The line of what they belong to.
    pub line: usize,
    /// The directory that paths begin at.
    pub folder: &'a FilePath,
}

impl Attributes<'_> {
    /// Works out `given` in `world` and checks it.
    pub fn check(&self, given: &Attrs, world: &World, faults: &mut Faults) -> BTreeMap<String, Known> {
        let mut found = BTreeMap::new();
        let mut known = Members::new();
        // What is only known in part is checked here, all else by the declaration itself.
        let mut rest = self.declared.clone();
        for (name, expression) in given {
            let Some(evaluated) = evaluate(expression, world, faults) else {
                rest.remove(name);
                continue;
            };
            let declared = self.declared.get(name);
            let secret = evaluated.secret || declared.is_some_and(|attr| attr.sensitive);
            if let Some(why) = declared.and_then(|attr| attr.deprecated.as_ref()) {
                faults.warning(expression.line, format!("`{name}` is deprecated: {why}"));
            }
            match (evaluated.value, declared) {
                (Partial::Known(value), declared) => {
                    let is_path = declared.is_some_and(|attr| attr.is_path);
                    known.insert(name.clone(), if is_path { self.path(value) } else { value });
                    found.insert(name.clone(), secret);
                }
                (partial, Some(declared)) => {
                    rest.remove(name);
                    match partial.check(&declared.ty) {
                        Ok(_) => {
                            found.insert(name.clone(), secret);
                        }
                        Err(complaints) => complain(expression.line, name, &complaints, faults),
                    }
                }
                // Unknown attributes are told below.
                (_, None) => {
                    known.insert(name.clone(), Value::Null);
                }
            }
        }
        let checked = match rest.check(&known) {
            Ok(checked) => checked,
            Err(complaints) => {
                for complaint in complaints {
                    let line = match complaint.path.0.first() {
                        Some(quartermaster_proto::provider::Segment::Key(name)) => {
                            given.get(name).map(|expression| expression.line)
                        }
                        _ => None,
                    };
                    faults.error(line.unwrap_or(self.line), complaint.to_string());
                }
                Members::new()
            }
        };
        let secret = |name: &String| {
            found
                .get(name)
                .copied()
                .unwrap_or_else(|| self.declared.get(name).is_some_and(|attr| attr.sensitive))
        };
        let mut all: BTreeMap<String, Known> = checked
            .into_iter()
            .map(|(name, value)| {
                let secret = secret(&name);
                (name, Known { value: Partial::Known(value), secret })
            })
            .collect();
        for (name, expression) in given {
            if let Some(declared) = self.declared.get(name).filter(|_| !rest.contains_key(name))
                && let Ok(evaluated) = expression.evaluate(world)
                && let Ok(value) = evaluated.value.check(&declared.ty)
            {
                all.insert(name.clone(), Known { value, secret: secret(name) });
            }
        }
        all
    }

    /// A relative path begins at the file's directory.
    fn path(&self, value: Value) -> Value {
        match value.as_str() {
            Some(path) => self.folder.join(path).to_string_lossy().into_owned().into(),
            None => value,
        }
    }
}

fn complain(line: usize, name: &str, complaints: &[Complaint], faults: &mut Faults) {
    for complaint in complaints {
        let mut path = Path::of(name);
        path.0.extend(complaint.path.0.clone());
        faults.error(line, Complaint { path, message: complaint.message.clone() }.to_string());
    }
}

fn evaluate(
    expression: &Expression,
    world: &World,
    faults: &mut Faults,
) -> Option<quartermaster_actors::expression::Evaluated> {
    // Also where a condition leaves it out, what is referred to has to be there.
    for reference in expression.references() {
        if let Err(what) = world.find(&reference.path) {
            faults.error(reference.line, format!("`{reference}`: {what}"));
        }
    }
    match expression.evaluate(world) {
        Ok(evaluated) => Some(evaluated),
        Err(error) => {
            faults.expression(error);
            None
        }
    }
}

/// The configurations of providers by name, and the parts of each that must not be shown.
pub type Configs = (BTreeMap<String, Members>, BTreeMap<String, Vec<String>>);

/// Works out the configurations of those providers whose schema is there.
pub fn configs(
    scenario: &Scenario,
    variables: &BTreeMap<String, Known>,
    schemas: &BTreeMap<String, Arc<Schema>>,
    folder: &FilePath,
    faults: &mut Faults,
) -> Configs {
    let world = World { variables: variables.clone(), only_variables: Some(CONFIG_RULE), ..World::default() };
    let (mut configs, mut secret_config) = (BTreeMap::new(), BTreeMap::new());
    for (name, provider) in &scenario.providers {
        let Some(schema) = schemas.get(name) else { continue };
        let attributes = Attributes { declared: &schema.config, line: provider.config_line, folder };
        let config = attributes.check(&provider.config, &world, faults);
        let secret = config.iter().filter(|(_, known)| known.secret).map(|(name, _)| name.clone());
        secret_config.insert(name.clone(), secret.collect());
        let known = config.into_iter().filter_map(|(name, known)| Some((name, known.value.known()?.clone())));
        configs.insert(name.clone(), known.collect());
    }
    (configs, secret_config)
}

/// Checks everything.
pub fn check(
    scenario: &Scenario,
    variables: BTreeMap<String, Known>,
    schemas: &BTreeMap<String, Arc<Schema>>,
    folder: &FilePath,
    faults: &mut Faults,
) -> Option<Checked> {
    let (configs, secret_config) = configs(scenario, &variables, schemas, folder, faults);
    let mut world = World { variables, ..World::default() };
    let mut steps: Vec<Step> = Vec::new();
    for action in &scenario.actions {
        if let Some((provider, schema)) = route(action, scenario, schemas, faults) {
            let teardown = teardown(action, &provider, schemas, faults);
            let id = action.id();
            steps.push(Step {
                id,
                action: action.clone(),
                provider,
                schema,
                teardown,
                attrs: BTreeMap::new(),
            });
        }
    }
    if steps.len() < scenario.actions.len() {
        // What is left out here was told; references to it need not be told too.
        return None;
    }
    for step in &steps {
        let outputs = step.schema.outputs.as_ref().map(|declared| Known {
            value: Partial::Unknown(declared.ty.clone()),
            secret: declared.sensitive,
        });
        world.outputs.insert(step.id.clone(), outputs);
    }
    let graph = edges(&steps, faults);
    let order = graph.order().unwrap_or_else(|circle| {
        let title = |node: &usize| steps.get(*node).map(|step| format!("`{}`", step.id)).unwrap_or_default();
        let names: Vec<String> = circle.iter().chain(circle.first()).map(title).collect();
        let line = circle.first().and_then(|node| steps.get(*node)).map_or(1, |step| step.action.line);
        faults.error(line, format!("these actions wait for each other: {}", names.join(" before ")));
        Vec::new()
    });
    for step in &mut steps {
        let attributes = Attributes { declared: &step.schema.attrs, line: step.action.line, folder };
        step.attrs = attributes.check(&step.action.attrs, &world, faults);
        if let (Some(teardown), Some((_, schema))) = (&step.action.teardown, &step.teardown) {
            let own = world.outputs.get(&step.id).cloned().flatten();
            let world = World { own, ..world.clone() };
            Attributes { declared: &schema.attrs, line: teardown.line, folder }.check(
                &teardown.attrs,
                &world,
                faults,
            );
        }
    }
    let planned_outputs = scenario.outputs.iter().filter_map(|output| {
        let evaluated = evaluate(&output.value, &world, faults)?;
        let secret = evaluated.secret || output.sensitive;
        Some((output.name.clone(), Known { value: evaluated.value, secret }))
    });
    let planned_outputs: Vec<(String, Known)> = planned_outputs.collect();
    faults.is_right().then(|| Checked {
        name: scenario.name.clone(),
        steps,
        graph,
        order,
        configs,
        secret_config,
        world,
        schemas: schemas.clone(),
        outputs: scenario.outputs.clone(),
        planned_outputs,
    })
}

/// The provider that does this action, and what it says of it.
fn route(
    action: &Action,
    scenario: &Scenario,
    schemas: &BTreeMap<String, Arc<Schema>>,
    faults: &mut Faults,
) -> Option<(String, ActionSchema)> {
    let offers = |name: &str| schemas.get(name).and_then(|schema| schema.actions.get(&action.kind)).cloned();
    if let Some((line, name)) = &action.provider {
        if !scenario.providers.contains_key(name) {
            faults.error(*line, format!("the provider `{name}` is not in `required_providers`"));
            return None;
        }
        let offered = offers(name);
        if offered.is_none() && schemas.contains_key(name) {
            faults.error(action.line, format!("the provider `{name}` has no action `{}`", action.kind));
        }
        return offered.map(|schema| (name.clone(), schema));
    }
    let able: Vec<&String> = scenario.providers.keys().filter(|name| offers(name).is_some()).collect();
    match able.as_slice() {
        [one] => offers(one).map(|schema| ((*one).clone(), schema)),
        [] => {
            // A provider whose schema is not there was told of already.
            if scenario.providers.keys().all(|name| schemas.contains_key(name)) {
                let known: Vec<&str> =
                    schemas.values().flat_map(|schema| schema.actions.keys()).map(String::as_str).collect();
                let what =
                    format!("no provider has an action `{}`; known: {}", action.kind, known.join(", "));
                faults.error(action.line, what);
            }
            None
        }
        several => {
            let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
            let what = format!(
                "several providers have an action `{}` ({}): choose one with `provider`",
                action.kind,
                names.join(", ")
            );
            faults.error(action.line, what);
            None
        }
    }
}

fn teardown(
    action: &Action,
    provider: &str,
    schemas: &BTreeMap<String, Arc<Schema>>,
    faults: &mut Faults,
) -> Option<(String, ActionSchema)> {
    let teardown = action.teardown.as_ref()?;
    let name = teardown.action.as_ref().unwrap_or(&action.kind);
    let schema = schemas.get(provider).and_then(|schema| schema.actions.get(name));
    if schema.is_none() {
        faults.error(teardown.line, format!("the provider `{provider}` has no action `{name}`"));
    }
    schema.map(|schema| (name.clone(), schema.clone()))
}

/// What refers to what comes after it; a teardown's references too, since what it needs has to be known when its action is done.
fn edges(steps: &[Step], faults: &mut Faults) -> Graph {
    let numbers: BTreeMap<&str, usize> =
        steps.iter().enumerate().map(|(number, step)| (step.id.as_str(), number)).collect();
    let mut graph = Graph::new(steps.len());
    for (number, step) in steps.iter().enumerate() {
        let teardown = step.action.teardown.iter().flat_map(|teardown| teardown.attrs.values());
        let written = step.action.attrs.values().chain(teardown).flat_map(Expression::references);
        for reference in written.chain(&step.action.depends_on) {
            let ["action", kind, name, ..] = reference.names()[..] else { continue };
            match numbers.get(format!("{kind}.{name}").as_str()) {
                Some(first) if *first == number => {
                    faults.error(reference.line, format!("`{}` refers to itself", step.id));
                }
                Some(first) => graph.edge(*first, number),
                None if step.action.depends_on.contains(reference) => {
                    faults.error(reference.line, format!("there is no action `{kind}.{name}`"));
                }
                // Told where it is worked out.
                None => {}
            }
        }
    }
    graph
}
