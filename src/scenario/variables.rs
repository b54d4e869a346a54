//! Where variables get their values: `--var`, then `--var-file`, then the environment, then their default.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hcl::edit::structure::{Body, Structure};
use quartermaster_actors::expression::{Expression, Lines, Partial};
use quartermaster_proto::provider::{Type, Value, validate};

use super::document::{Scenario, Variable};
use super::fault::Faults;
use super::world::{Known, World};

/// What the names of variables in the environment begin with. Such variables are not handed on to providers.
pub const PREFIX: &str = "QM_VAR_";

/// Values as they were given, the first source first.
#[derive(Clone, Default)]
pub struct Given {
    /// `NAME=VALUE`, as on the command line.
    pub arguments: Vec<String>,
    /// Files, each with its text.
    pub files: Vec<(PathBuf, String)>,
    /// The environment, prefix and all.
    pub environment: BTreeMap<String, String>,
    /// Values that were written down by an earlier run.
    pub recorded: BTreeMap<String, Value>,
}

/// Values may be secret.
impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Given").field("arguments", &self.arguments.len()).finish_non_exhaustive()
    }
}

/// Why a value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// It is no `NAME=VALUE`.
    #[error("--var needs NAME=VALUE")]
    Shape,
    /// No variable has this name.
    #[error("{from}: there is no variable `{name}`")]
    Unknown {
        /// Where it was given.
        from: String,
        /// The name.
        name: String,
    },
    /// The file cannot be understood.
    #[error("{}:{line}: {what}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The value is not of the variable's type.
    #[error("{from}: the variable `{name}` is of type {ty}: {why}")]
    Type {
        /// Where it was given.
        from: String,
        /// The variable.
        name: String,
        /// Its type.
        ty: String,
        /// What does not fit; no value is repeated.
        why: String,
    },
}

/// The values of all variables.
///
/// # Errors
/// What was given and cannot be used. That something was not given, or that a default does not fit, is in the faults.
pub fn values(
    scenario: &Scenario,
    given: &Given,
    faults: &mut Faults,
) -> Result<BTreeMap<String, Known>, Vec<VariableError>> {
    let mut errors = Vec::new();
    let mut found: BTreeMap<String, (String, Value)> = BTreeMap::new();
    for (name, value) in &given.recorded {
        found.insert(name.clone(), ("the record".to_owned(), value.clone()));
    }
    for (name, variable) in &scenario.variables {
        let from = format!("{PREFIX}{name}");
        if let Some(text) = given.environment.get(&from) {
            found.insert(name.clone(), (from, from_text(variable, text)));
        }
    }
    for (file, text) in &given.files {
        match from_file(file, text) {
            Ok(values) => {
                for (name, value) in values {
                    let from = file.display().to_string();
                    if scenario.variables.contains_key(&name) {
                        found.insert(name, (from, value));
                    } else {
                        errors.push(VariableError::Unknown { from, name });
                    }
                }
            }
            Err(error) => errors.push(error),
        }
    }
    for argument in &given.arguments {
        let Some((name, text)) = argument.split_once('=') else {
            errors.push(VariableError::Shape);
            continue;
        };
        match scenario.variables.get(name) {
            Some(variable) => {
                found.insert(name.to_owned(), ("--var".to_owned(), from_text(variable, text)));
            }
            None => errors.push(VariableError::Unknown { from: "--var".to_owned(), name: name.to_owned() }),
        }
    }
    let mut values = BTreeMap::new();
    for (name, variable) in &scenario.variables {
        let value = match found.remove(name) {
            Some((from, value)) => match validate(&variable.ty, &value) {
                Ok(value) => Some(value),
                Err(complaints) => {
                    let why = complaints.first().map(ToString::to_string).unwrap_or_default();
                    let (name, ty) = (name.clone(), variable.ty.to_string());
                    errors.push(VariableError::Type { from, name, ty, why });
                    None
                }
            },
            None => default(name, variable, faults),
        };
        // One that could not be had was told of; what refers to it is checked all the same.
        let value = value.map_or_else(|| Partial::Unknown(variable.ty.clone()), Partial::Known);
        values.insert(name.clone(), Known { value, secret: variable.sensitive });
    }
    if errors.is_empty() { Ok(values) } else { Err(errors) }
}

fn default(name: &str, variable: &Variable, faults: &mut Faults) -> Option<Value> {
    let Some(default) = &variable.default else {
        let how =
            if variable.sensitive { "in a file by --var-file, or as" } else { "by --var, --var-file, or as" };
        faults.error(
            variable.line,
            format!("the variable `{name}` has no value and no default: give it {how} {PREFIX}{name}"),
        );
        return None;
    };
    let world = World { only_variables: Some("a default is worked out first"), ..World::default() };
    let value = match default.evaluate(&world) {
        Ok(evaluated) => evaluated.value.known().cloned(),
        Err(error) => {
            faults.expression(error);
            None
        }
    }?;
    match validate(&variable.ty, &value) {
        Ok(value) => Some(value),
        Err(complaints) => {
            for complaint in complaints {
                faults.error(default.line, format!("the default of `{name}`: {complaint}"));
            }
            None
        }
    }
}

/// A text is taken as it stands where that is of the type, and else for an expression: `true`, `3`, `["a", "b"]`.
fn from_text(variable: &Variable, text: &str) -> Value {
    let expression = || {
        let hcl: hcl::edit::expr::Expression = text.parse().ok()?;
        Expression::read(&hcl, &Lines::new(text))
            .ok()?
            .evaluate(&World::default())
            .ok()?
            .value
            .known()
            .cloned()
    };
    match &variable.ty {
        Type::String | Type::Number | Type::Bool => text.into(),
        Type::Any if !text.trim_start().starts_with(['[', '{', '"']) => text.into(),
        _ => expression().unwrap_or_else(|| text.into()),
    }
}

/// A file of `name = value` lines, or one JSON object if its name says so.
fn from_file(file: &Path, text: &str) -> Result<Vec<(String, Value)>, VariableError> {
    let fail = |line, what: String| VariableError::File { file: file.to_owned(), line, what };
    if file.extension().is_some_and(|extension| extension == "json") {
        let limits = quartermaster_proto::provider::Limits {
            max_bytes: 16 * 1024 * 1024,
            max_depth: 64,
            max_items: 1_000_000,
        };
        return match Value::from_json(text, &limits) {
            Ok(Value::Object(members)) => Ok(members.into_iter().collect()),
            Ok(other) => Err(fail(1, format!("one JSON object is needed, and this is {}", other.kind()))),
            Err(error) => Err(fail(1, format!("no JSON: {error}"))),
        };
    }
    let lines = Lines::new(text);
    let body: Body = text.parse().map_err(|error: hcl::edit::parser::Error| {
        fail(error.location().line(), error.message().to_owned())
    })?;
    let mut values = Vec::new();
    for structure in &body {
        match structure {
            Structure::Attribute(attribute) => {
                let line = lines.of(attribute);
                let value = Expression::read(&attribute.value, &lines)
                    .and_then(|expression| expression.evaluate(&World::default()))
                    .map_err(|error| fail(error.line, error.what))?;
                let value = value.value.known().cloned().ok_or_else(|| fail(line, "no value".to_owned()))?;
                values.push((attribute.key.value().as_str().to_owned(), value));
            }
            Structure::Block(block) => {
                let what =
                    format!("the block `{}` is not supported in a file of variables", block.ident.value());
                return Err(fail(lines.of(block), what));
            }
        }
    }
    Ok(values)
}
