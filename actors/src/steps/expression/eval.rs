//! The value of a template, once what it refers to is known.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use quartermaster_proto::provider::{Members, Value};

use super::template::{Access, Compare, Expr, Part, Reference, Template};

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

/// Why a value is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// There is nothing at the end of a reference.
    #[error("`{0}` is not there")]
    Missing(String),
    /// A value has the wrong type.
    #[error("{what} must be {wanted} but is {found}")]
    Kind {
        /// Which.
        what: String,
        /// What it should be.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
}

impl Template {
    /// Its value in this scope.
    ///
    /// # Errors
    /// What is not there, or has the wrong type. Nothing of any value is repeated.
    pub fn evaluate(&self, scope: &Scope) -> Result<Evaluated, EvalError> {
        let mut evaluation = Evaluation { scope, secret: Vec::new() };
        let value = evaluation.template(self)?;
        Ok(Evaluated { value, secret: evaluation.secret })
    }

    /// Whether it holds: a condition.
    ///
    /// # Errors
    /// As [`Self::evaluate`], and when it is neither true nor false.
    pub fn holds(&self, scope: &Scope) -> Result<bool, EvalError> {
        let mut evaluation = Evaluation { scope, secret: Vec::new() };
        let value = evaluation.template(self)?;
        flag(&value, "the condition")
    }
}

struct Evaluation<'s> {
    scope: &'s Scope,
    secret: Vec<Value>,
}

impl Evaluation<'_> {
    fn template(&mut self, template: &Template) -> Result<Value, EvalError> {
        match template {
            Template::Plain(value) => Ok(value.clone()),
            Template::List(items) => items.iter().map(|item| self.template(item)).collect(),
            Template::Object(members) => {
                let each = members.iter().map(|(name, item)| Ok((name.clone(), self.template(item)?)));
                Ok(Value::Object(each.collect::<Result<_, EvalError>>()?))
            }
            Template::Expression(expr) => self.expr(expr),
            Template::Text(parts) => self.text(parts),
        }
    }

    fn text(&mut self, parts: &[Part]) -> Result<Value, EvalError> {
        let mut text = zeroize::Zeroizing::new(String::new());
        for part in parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Expression(expr) => match self.expr(expr)? {
                    Value::String(value) => text.push_str(&value),
                    Value::Number(number) => text.push_str(&number.normal()),
                    Value::Bool(flag) => text.push_str(if flag { "true" } else { "false" }),
                    other => return Err(kind("a part of a text", "a string, number or bool", &other)),
                },
            }
        }
        Ok(Value::String(text))
    }

    fn expr(&mut self, expr: &Expr) -> Result<Value, EvalError> {
        match expr {
            Expr::Value(value) => Ok(value.clone()),
            Expr::Reference(reference) => self.reference(reference),
            Expr::Text(parts) => self.text(parts),
            Expr::List(items) => items.iter().map(|item| self.expr(item)).collect(),
            Expr::Object(members) => {
                let each = members.iter().map(|(name, item)| Ok((name.clone(), self.expr(item)?)));
                Ok(Value::Object(each.collect::<Result<_, EvalError>>()?))
            }
            Expr::Not(inner) => Ok((!self.flag(inner)?).into()),
            Expr::And(a, b) => Ok((self.flag(a)? && self.flag(b)?).into()),
            Expr::Or(a, b) => Ok((self.flag(a)? || self.flag(b)?).into()),
            Expr::Choose(condition, yes, no) => {
                if self.flag(condition)? {
                    self.expr(yes)
                } else {
                    self.expr(no)
                }
            }
            Expr::Compare(how, a, b) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                compare(*how, &a, &b).map(Value::from)
            }
            Expr::Try(items) => {
                let mut last = EvalError::Missing("try()".to_owned());
                for item in items {
                    match self.expr(item) {
                        Ok(value) => return Ok(value),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    fn flag(&mut self, expr: &Expr) -> Result<bool, EvalError> {
        let value = self.expr(expr)?;
        flag(&value, "a condition")
    }

    fn reference(&mut self, reference: &Reference) -> Result<Value, EvalError> {
        let missing = || EvalError::Missing(reference.to_string());
        let (mut at, path) = if reference.root == "steps" {
            let Some((Access::Key(step), path)) = reference.path.split_first() else { return Err(missing()) };
            (self.scope.steps.get(step).ok_or_else(missing)?, path)
        } else {
            (self.scope.roots.get(&reference.root).ok_or_else(missing)?, reference.path.as_slice())
        };
        for access in path {
            at = match (at, access) {
                // A step that was left out, or whose failure is ignored, gave nothing.
                (Value::Null, _) if reference.root == "steps" => return Ok(Value::Null),
                (Value::Object(members), Access::Key(name)) => members.get(name),
                (Value::List(items), Access::Index(index)) => items.get(*index),
                _ => None,
            }
            .ok_or_else(missing)?;
        }
        if reference.root != "server" {
            self.secret.push(at.clone());
        }
        Ok(at.clone())
    }
}

fn kind(what: &str, wanted: &'static str, found: &Value) -> EvalError {
    EvalError::Kind { what: what.to_owned(), wanted, found: found.kind() }
}

fn flag(value: &Value, what: &str) -> Result<bool, EvalError> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) if text.as_str() == "true" => Ok(true),
        Value::String(text) if text.as_str() == "false" => Ok(false),
        other => Err(kind(what, "true or false", other)),
    }
}

fn compare(how: Compare, a: &Value, b: &Value) -> Result<bool, EvalError> {
    let order = match how {
        Compare::Equal => return Ok(a.to_canonical() == b.to_canonical()),
        Compare::Unequal => return Ok(a.to_canonical() != b.to_canonical()),
        _ => order(a, b)?,
    };
    Ok(match how {
        Compare::Less => order == Ordering::Less,
        Compare::LessOrEqual => order != Ordering::Greater,
        Compare::Greater => order == Ordering::Greater,
        Compare::GreaterOrEqual | Compare::Equal | Compare::Unequal => order != Ordering::Less,
    })
}

/// Which of two numbers is the larger: exactly for whole ones of ordinary size, else as floating point has it.
fn order(a: &Value, b: &Value) -> Result<Ordering, EvalError> {
    let number = |value: &Value| {
        value.as_number().cloned().ok_or_else(|| kind("what is compared by size", "a number", value))
    };
    let (a, b) = (number(a)?, number(b)?);
    if let (Ok(a), Ok(b)) = (a.normal().parse::<i128>(), b.normal().parse::<i128>()) {
        return Ok(a.cmp(&b));
    }
    let float = |number: &str| number.parse::<f64>().unwrap_or(f64::NAN);
    Ok(float(&a.normal()).total_cmp(&float(&b.normal())))
}
