//! Whether a template can be what a schema asks for, before anything is known of what it refers to.

use std::collections::BTreeMap;

use quartermaster_proto::provider::{Complaint, Path, Segment, Type, Value};

use super::template::Template;
use crate::expression::{self, Access, Found, Partial};

/// The types of what references stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeScope {
    /// By root: `server`, `helper`.
    pub roots: BTreeMap<String, Type>,
    /// Of outputs by step, for those that can be referred to; `None` when the step gives none.
    pub steps: BTreeMap<String, Option<Type>>,
}

impl expression::Scope for TypeScope {
    fn find(&self, path: &[Access]) -> Result<Found, String> {
        let (ty, taken) = match path.first().and_then(Access::name).unwrap_or_default() {
            "steps" => (self.step(path.get(1).and_then(Access::name))?, 2),
            root => (self.roots.get(root).ok_or("it is not there")?, 1),
        };
        Ok(Found { value: Partial::Unknown(ty.clone()), taken, secret: false })
    }
}

impl TypeScope {
    fn step(&self, name: Option<&str>) -> Result<&Type, String> {
        let name = name.ok_or("`steps` is followed by the name of a step")?;
        match self.steps.get(name) {
            Some(Some(outputs)) => Ok(outputs),
            Some(None) => Err("this step has no outputs".to_owned()),
            None => {
                let known: Vec<&str> = self.steps.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
                Err(format!("no step of this name comes before; known: {known}"))
            }
        }
    }
}

impl Template {
    /// What is surely wrong with it as a value of this type, with paths that begin with `path`.
    pub fn check(&self, path: &Path, ty: &Type, scope: &TypeScope) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        match self.partial(path, scope, &mut complaints) {
            Some(partial) if complaints.is_empty() => {
                let found = partial.check(ty).err().unwrap_or_default();
                complaints.extend(found.into_iter().map(|complaint| below(path, complaint)));
            }
            _ => {}
        }
        complaints
    }

    /// What is surely wrong with it as a condition.
    pub fn check_condition(&self, path: &Path, scope: &TypeScope) -> Vec<Complaint> {
        match self {
            Self::Plain(Value::String(text)) if !matches!(text.as_str(), "true" | "false") => {
                let message = "true, false or an expression in `${…}` needed".to_owned();
                vec![Complaint { path: path.clone(), message }]
            }
            _ => self.check(path, &Type::Bool, scope),
        }
    }

    /// As much of its value as is known; none when something in it leads nowhere, which is told with its path.
    fn partial(&self, path: &Path, scope: &TypeScope, complaints: &mut Vec<Complaint>) -> Option<Partial> {
        let inside = |segment: Segment| {
            let mut path = path.clone();
            path.0.push(segment);
            path
        };
        match self {
            Self::Plain(value) => Some(Partial::Known(value.clone())),
            Self::List(items) => {
                let each = items.iter().enumerate();
                let each =
                    each.map(|(at, item)| item.partial(&inside(Segment::Index(at)), scope, complaints));
                let parts: Vec<Option<Partial>> = each.collect();
                parts.into_iter().collect::<Option<_>>().map(Partial::list)
            }
            Self::Object(members) => {
                let each = members.iter().map(|(name, item)| {
                    let part = item.partial(&inside(Segment::Key(name.clone())), scope, complaints);
                    (name.clone(), part)
                });
                let parts: Vec<(String, Option<Partial>)> = each.collect();
                let parts = parts.into_iter().map(|(name, part)| Some((name, part?)));
                parts.collect::<Option<_>>().map(Partial::object)
            }
            Self::Expression(expression) => match expression.evaluate(scope) {
                Ok(evaluated) => Some(evaluated.value),
                Err(error) => {
                    complaints.push(Complaint { path: path.clone(), message: error.what });
                    None
                }
            },
        }
    }
}

fn below(path: &Path, complaint: Complaint) -> Complaint {
    let mut whole = path.clone();
    whole.0.extend(complaint.path.0);
    Complaint { path: whole, message: complaint.message }
}
