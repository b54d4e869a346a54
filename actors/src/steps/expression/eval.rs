//! The value of a template, once what it refers to is known.

use std::cell::RefCell;
use std::collections::BTreeMap;

use quartermaster_proto::provider::{Members, Value};

use super::template::Template;
use crate::expression::{self, Access, ExpressionError, Found, Partial};

/// What references stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// By root: `server`, `helper`.
    pub roots: Members,
    /// Outputs by step; `null` for a step that gave none.
    pub steps: BTreeMap<String, Value>,
}

/// A value and what of it came from elsewhere and is nobody's to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// The value.
    pub value: Value,
    /// What came from the helper's reply or from outputs.
    pub secret: Vec<Value>,
}

/// Why a value is not known. Nothing of any value is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvalError(String);

impl From<ExpressionError> for EvalError {
    fn from(error: ExpressionError) -> Self {
        Self(error.what)
    }
}

impl Template {
    /// Its value in this scope.
    ///
    /// # Errors
    /// What is not there, or has the wrong type.
    pub fn evaluate(&self, scope: &Scope) -> Result<Evaluated, EvalError> {
        let known = Known { scope, secret: RefCell::default() };
        let value = self.value(&known)?;
        Ok(Evaluated { value, secret: known.secret.into_inner() })
    }

    /// Whether it holds: a condition.
    ///
    /// # Errors
    /// As [`Self::evaluate`], and when it is neither true nor false.
    pub fn holds(&self, scope: &Scope) -> Result<bool, EvalError> {
        match self.evaluate(scope)?.value {
            Value::Bool(flag) => Ok(flag),
            Value::String(text) if text.as_str() == "true" => Ok(true),
            Value::String(text) if text.as_str() == "false" => Ok(false),
            other => Err(EvalError(format!("true or false is needed, and this is {}", other.kind()))),
        }
    }

    fn value(&self, known: &Known<'_>) -> Result<Value, EvalError> {
        match self {
            Self::Plain(value) => Ok(value.clone()),
            Self::List(items) => items.iter().map(|item| item.value(known)).collect(),
            Self::Object(members) => {
                let each = members.iter().map(|(name, item)| Ok((name.clone(), item.value(known)?)));
                Ok(Value::Object(each.collect::<Result<_, EvalError>>()?))
            }
            Self::Expression(expression) => match expression.evaluate(known)?.value {
                Partial::Known(value) => Ok(value),
                // Everything a scope of values finds is known.
                _ => Err(EvalError("it is not known yet".to_owned())),
            },
        }
    }
}

struct Known<'s> {
    scope: &'s Scope,
    secret: RefCell<Vec<Value>>,
}

impl expression::Scope for Known<'_> {
    /// Goes the whole way, since what is secret of it lies at its end.
    fn find(&self, path: &[Access]) -> Result<Found, String> {
        let value = self.at(path).ok_or("it is not there")?;
        let secret = path.first().and_then(Access::name) != Some("server");
        if secret {
            self.secret.borrow_mut().push(value.clone());
        }
        Ok(Found { value: Partial::Known(value), taken: path.len(), secret })
    }
}

impl Known<'_> {
    fn at(&self, path: &[Access]) -> Option<Value> {
        let (root, path) = path.split_first()?;
        let (mut at, path, is_step) = match (root.name()?, path.split_first()) {
            ("steps", Some((step, path))) => (self.scope.steps.get(step.name()?)?, path, true),
            ("steps", None) => return None,
            (root, _) => (self.scope.roots.get(root)?, path, false),
        };
        for access in path {
            at = match (at, access) {
                // A step that was left out, or whose failure is ignored, gave nothing.
                (Value::Null, _) if is_step => return Some(Value::Null),
                (Value::Object(members), Access::Name(name)) => members.get(name),
                (Value::List(items), Access::Index(index)) => items.get(*index),
                _ => None,
            }?;
        }
        Some(at.clone())
    }
}
