//! What the names in a file of steps stand for: variables, and the outputs of actions as far as they are known.

use std::collections::BTreeMap;

use quartermaster_actors::expression::{Access, Found, Partial, Scope};

/// A value and whether it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The value, or its type.
    pub value: Partial,
    /// It must not be shown.
    pub secret: bool,
}

/// Everything that has a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct World {
    /// Variables, by name.
    pub variables: BTreeMap<String, Known>,
    /// Outputs of actions, by what they are called (`record_create.www`); none for those that give nothing.
    pub outputs: BTreeMap<String, Option<Known>>,
    /// The outputs of the action that a teardown belongs to.
    pub own: Option<Known>,
    /// Only variables may be referred to, for the reason given.
    pub only_variables: Option<&'static str>,
}

impl Scope for World {
    fn find(&self, path: &[Access]) -> Result<Found, String> {
        let names: Vec<&str> = path.iter().map_while(Access::name).collect();
        let found = |known: &Known, taken| Found { value: known.value.clone(), taken, secret: known.secret };
        match names.as_slice() {
            ["var"] => Err("name a variable: var.NAME".to_owned()),
            ["var", name, ..] => match self.variables.get(*name) {
                Some(known) => Ok(found(known, 2)),
                None => Err(missing("variable", name, self.variables.keys())),
            },
            [root @ ("action" | "self"), ..] if self.only_variables.is_some() => {
                Err(format!("`{root}` cannot be used here: {}", self.only_variables.unwrap_or_default()))
            }
            ["action", kind, name, ..] => {
                let id = format!("{kind}.{name}");
                match self.outputs.get(&id) {
                    Some(Some(known)) => Ok(found(known, 3)),
                    Some(None) => Err(format!("the action `{id}` gives no outputs")),
                    None => Err(missing("action", &id, self.outputs.keys())),
                }
            }
            ["action", ..] => Err("name an action: action.TYPE.NAME".to_owned()),
            ["self", ..] => match &self.own {
                Some(own) => Ok(found(own, 1)),
                None => Err("`self` is the action that a `teardown` belongs to".to_owned()),
            },
            ["component", ..] => Err("components are not supported".to_owned()),
            [other, ..] => Err(format!("there is no `{other}`: a reference begins with var or action")),
            [] => Err("a reference begins with a name".to_owned()),
        }
    }
}

fn missing<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&String> = known.collect();
    let near = known
        .iter()
        .max_by(|left, right| strsim::jaro_winkler(left, name).total_cmp(&strsim::jaro_winkler(right, name)));
    match near.filter(|near| strsim::jaro_winkler(near, name) > 0.8) {
        Some(near) => format!("there is no {what} `{name}`; did you mean `{near}`?"),
        None => format!("there is no {what} `{name}`"),
    }
}
