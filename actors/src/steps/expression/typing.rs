//! Whether a template can fit a type, before anything of it is known. What only its value can tell is let pass: a string may say a
//! number, an `any` may be anything.

use std::collections::BTreeMap;

use quartermaster_proto::provider::{Complaint, Field, Path, Segment, Type, Value, validate};

use super::template::{Access, Expr, Part, Reference, Template};

/// The types of what references stand for.
#[derive(Debug, Clone, Default)]
pub struct TypeScope {
    /// By root: `server`, `helper`.
    pub roots: BTreeMap<String, Type>,
    /// Of outputs by step, for those that can be referred to; `None` when the step gives none.
    pub steps: BTreeMap<String, Option<Type>>,
}

impl Template {
    /// What is surely wrong with it as a value of this type, with paths that begin with `path`.
    pub fn check(&self, path: &Path, ty: &Type, scope: &TypeScope) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        self.check_into(&mut path.clone(), ty, scope, &mut complaints);
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

    fn check_into(&self, path: &mut Path, ty: &Type, scope: &TypeScope, complaints: &mut Vec<Complaint>) {
        let mut inside = |segment: Segment, template: &Self, ty: &Type, complaints: &mut Vec<Complaint>| {
            path.0.push(segment);
            template.check_into(path, ty, scope, complaints);
            path.0.pop();
        };
        match (self, ty) {
            (Self::Plain(value), ty) => {
                let found = validate(ty, value).err().unwrap_or_default();
                complaints.extend(found.into_iter().map(|complaint| {
                    let mut whole = path.clone();
                    whole.0.extend(complaint.path.0);
                    Complaint { path: whole, message: complaint.message }
                }));
            }
            (Self::List(items), Type::List(item) | Type::Set(item)) => {
                for (index, template) in items.iter().enumerate() {
                    inside(Segment::Index(index), template, item, complaints);
                }
            }
            (Self::List(items), Type::Tuple(types)) if items.len() == types.len() => {
                for (index, (template, ty)) in items.iter().zip(types).enumerate() {
                    inside(Segment::Index(index), template, ty, complaints);
                }
            }
            (Self::List(items), Type::Any) => {
                for (index, template) in items.iter().enumerate() {
                    inside(Segment::Index(index), template, ty, complaints);
                }
            }
            (Self::Object(members), Type::Map(_) | Type::Any) => {
                let item = if let Type::Map(item) = ty { item } else { ty };
                for (name, template) in members {
                    inside(Segment::Key(name.clone()), template, item, complaints);
                }
            }
            (Self::Object(members), Type::Object(fields)) => {
                for (name, template) in members {
                    if let Some(field) = fields.get(name) {
                        inside(Segment::Key(name.clone()), template, &field.ty, complaints);
                    }
                }
                let known = members.keys().map(|name| (name.clone(), Type::Any));
                complaints.extend(misfit(&object(known.collect()), ty, path));
            }
            (template, ty) => match template.ty(scope) {
                Ok(found) => complaints.extend(misfit(&found, ty, path)),
                Err(message) => complaints.push(Complaint { path: path.clone(), message }),
            },
        }
    }

    fn ty(&self, scope: &TypeScope) -> Result<Type, String> {
        match self {
            Self::Plain(value) => Ok(of_value(value)),
            Self::List(items) => {
                Ok(Type::Tuple(items.iter().map(|item| item.ty(scope)).collect::<Result<_, _>>()?))
            }
            Self::Object(members) => {
                let each = members.iter().map(|(name, item)| Ok((name.clone(), item.ty(scope)?)));
                Ok(object(each.collect::<Result<_, String>>()?))
            }
            Self::Expression(expr) => expr.ty(scope),
            Self::Text(parts) => text(parts, scope),
        }
    }
}

impl Expr {
    fn ty(&self, scope: &TypeScope) -> Result<Type, String> {
        let condition = |expr: &Self| match expr.ty(scope)? {
            Type::Bool | Type::String | Type::Any => Ok(()),
            other => Err(format!("a condition must be true or false but is {}", name(&other))),
        };
        match self {
            Self::Value(value) => Ok(of_value(value)),
            Self::Reference(reference) => resolve(reference, scope),
            Self::Text(parts) => text(parts, scope),
            Self::List(items) => {
                Ok(Type::Tuple(items.iter().map(|item| item.ty(scope)).collect::<Result<_, _>>()?))
            }
            Self::Object(members) => {
                let each = members.iter().map(|(name, item)| Ok((name.clone(), item.ty(scope)?)));
                Ok(object(each.collect::<Result<_, String>>()?))
            }
            Self::Not(inner) => condition(inner).map(|()| Type::Bool),
            Self::And(a, b) | Self::Or(a, b) => condition(a).and_then(|()| condition(b)).map(|()| Type::Bool),
            Self::Compare(_, a, b) => {
                a.ty(scope)?;
                b.ty(scope)?;
                Ok(Type::Bool)
            }
            Self::Choose(test, yes, no) => {
                condition(test)?;
                Ok(either(yes.ty(scope)?, &no.ty(scope)?))
            }
            // What is surely not there is what `try` is for.
            Self::Try(items) => {
                let mut found = items.iter().filter_map(|item| item.ty(scope).ok());
                let first = found.next().ok_or("nothing in `try(…)` can be there")?;
                Ok(found.fold(first, |first, next| either(first, &next)))
            }
        }
    }
}

fn either(a: Type, b: &Type) -> Type {
    if a == *b { a } else { Type::Any }
}

fn text(parts: &[Part], scope: &TypeScope) -> Result<Type, String> {
    for part in parts {
        if let Part::Expression(expr) = part {
            match expr.ty(scope)? {
                Type::String | Type::Number | Type::Bool | Type::Any => {}
                other => return Err(format!("{} cannot be part of a text", name(&other))),
            }
        }
    }
    Ok(Type::String)
}

fn of_value(value: &Value) -> Type {
    match value {
        Value::Null => Type::Any,
        Value::Bool(_) => Type::Bool,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::List(items) => Type::Tuple(items.iter().map(of_value).collect()),
        Value::Object(members) => {
            object(members.iter().map(|(name, value)| (name.clone(), of_value(value))).collect())
        }
    }
}

fn object(fields: BTreeMap<String, Type>) -> Type {
    Type::Object(fields.into_iter().map(|(name, ty)| (name, Field { ty, optional: false })).collect())
}

/// The type at the end of a reference.
fn resolve(reference: &Reference, scope: &TypeScope) -> Result<Type, String> {
    let (mut at, path) = if reference.root == "steps" {
        let Some((Access::Key(step), path)) = reference.path.split_first() else {
            return Err("`steps` is followed by the name of a step".to_owned());
        };
        let Some(outputs) = scope.steps.get(step) else {
            let known: Vec<&str> = scope.steps.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
            return Err(format!("`{reference}`: no step of this name comes before; known: {known}"));
        };
        let Some(outputs) = outputs else { return Err(format!("`{reference}`: this step has no outputs")) };
        (outputs, path)
    } else {
        let root = scope.roots.get(&reference.root);
        (root.ok_or_else(|| format!("there is no `{}`", reference.root))?, reference.path.as_slice())
    };
    for access in path {
        at = match (at, access) {
            (Type::Any, _) => return Ok(Type::Any),
            (Type::Map(item), Access::Key(_)) | (Type::List(item), Access::Index(_)) => item,
            (Type::Tuple(types), Access::Index(index)) if *index < types.len() => {
                types.get(*index).unwrap_or(&Type::Any)
            }
            (Type::Object(fields), Access::Key(name)) => {
                let Some(field) = fields.get(name) else {
                    let known: Vec<&str> = fields.keys().map(String::as_str).collect();
                    return Err(format!("`{reference}` is not there; known: {}", known.join(", ")));
                };
                &field.ty
            }
            (other, _) => return Err(format!("`{reference}` leads into {}", name(other))),
        };
    }
    Ok(at.clone())
}

fn name(ty: &Type) -> &'static str {
    match ty {
        Type::String => "a string",
        Type::Number => "a number",
        Type::Bool => "a bool",
        Type::Any => "anything",
        Type::List(_) => "a list",
        Type::Set(_) => "a set",
        Type::Map(_) => "a map",
        Type::Tuple(_) => "a tuple",
        Type::Object(_) => "an object",
    }
}

fn misfit(from: &Type, to: &Type, path: &Path) -> Option<Complaint> {
    fits(from, to).err().map(|message| Complaint { path: path.clone(), message })
}

/// Whether a value of one type can be converted to the other.
///
/// # Errors
/// Why it surely cannot.
pub fn fits(from: &Type, to: &Type) -> Result<(), String> {
    use Type::{Any, Bool, List, Map, Number, Object, Set, String, Tuple};
    match (from, to) {
        (Any, _)
        | (_, Any)
        | (String, String | Number | Bool)
        | (Number, String | Number)
        | (Bool, String | Bool) => Ok(()),
        (List(a) | Set(a), List(b) | Set(b)) | (Map(a), Map(b)) => fits(a, b),
        (List(a) | Set(a), Tuple(types)) => types.iter().try_for_each(|b| fits(a, b)),
        (Tuple(types), List(b) | Set(b)) => types.iter().try_for_each(|a| fits(a, b)),
        (Tuple(a), Tuple(b)) if a.len() == b.len() => a.iter().zip(b).try_for_each(|(a, b)| fits(a, b)),
        (Tuple(a), Tuple(b)) => Err(format!("tuple of {} needed, tuple of {} found", b.len(), a.len())),
        (Map(a), Object(fields)) => fields.values().try_for_each(|field| fits(a, &field.ty)),
        (Object(fields), Map(b)) => fields.values().try_for_each(|field| fits(&field.ty, b)),
        (Object(a), Object(b)) => {
            if let Some(unknown) = a.keys().find(|name| !b.contains_key(*name)) {
                let known: Vec<&str> = b.keys().map(std::string::String::as_str).collect();
                return Err(format!("no such field `{unknown}`; known: {}", known.join(", ")));
            }
            b.iter().try_for_each(|(name, field)| match a.get(name) {
                Some(found) => fits(&found.ty, &field.ty),
                None if field.optional => Ok(()),
                None => Err(format!("field `{name}` needed, nothing found")),
            })
        }
        _ => Err(format!("{} needed, {} found", name(to), name(from))),
    }
}
