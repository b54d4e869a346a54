//! What an expression comes to.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use quartermaster_proto::provider::{Number, Type, Value, validate};

use super::partial::Partial;
use super::tree::{Access, Expression, ExpressionError, Kind, Operator, Reference};

/// What names stand for.
pub trait Scope {
    /// What the beginning of this way leads to: it takes as many of its names as it needs, and the rest leads into what was found.
    ///
    /// # Errors
    /// What is not there, by its name.
    fn find(&self, path: &[Access]) -> Result<Found, String>;
}

/// What a scope found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The value.
    pub value: Partial,
    /// How much of the way led there.
    pub taken: usize,
    /// It must not be shown.
    pub secret: bool,
}

/// What an expression came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// The value.
    pub value: Partial,
    /// Something in it must not be shown.
    pub secret: bool,
}

impl Expression {
    /// What it comes to where names stand for what `scope` says.
    ///
    /// # Errors
    /// What is not there or does not fit, with its line; no value is repeated.
    pub fn evaluate(&self, scope: &impl Scope) -> Result<Evaluated, ExpressionError> {
        let mut run = Run { scope, secret: false };
        let value = run.value(self)?;
        Ok(Evaluated { value, secret: run.secret })
    }
}

struct Run<'a, S> {
    scope: &'a S,
    secret: bool,
}

impl<S: Scope> Run<'_, S> {
    fn value(&mut self, expression: &Expression) -> Result<Partial, ExpressionError> {
        match &expression.kind {
            Kind::Literal(value) => Ok(Partial::Known(value.clone())),
            Kind::Reference(reference) => self.reference(reference),
            Kind::List(items) => {
                items.iter().map(|item| self.value(item)).collect::<Result<_, _>>().map(Partial::list)
            }
            Kind::Object(members) => self.object(members),
            Kind::Template(parts) => self.template(parts),
            Kind::Conditional(parts) => self.conditional(parts),
            Kind::Not(inner) => Ok(match self.flag(inner)? {
                Some(flag) => Partial::Known((!flag).into()),
                None => Partial::Unknown(Type::Bool),
            }),
            Kind::Try(items) => self.first(expression.line, items),
            Kind::Binary(operator, both) => self.binary(*operator, both),
        }
    }

    fn reference(&mut self, reference: &Reference) -> Result<Partial, ExpressionError> {
        let fail = |what: &str| ExpressionError::new(reference.line, format!("`{reference}`: {what}"));
        let found = self.scope.find(&reference.path).map_err(|what| fail(&what))?;
        self.secret |= found.secret;
        let rest = reference.path.get(found.taken..).unwrap_or_default();
        rest.iter().try_fold(found.value, Partial::part).map_err(|what| fail(&what))
    }

    fn object(&mut self, members: &[(Expression, Expression)]) -> Result<Partial, ExpressionError> {
        let mut object = BTreeMap::new();
        for (name, value) in members {
            let part = self.value(value)?;
            match self.text(name)? {
                Some(name_text) => {
                    if object.insert(name_text, part).is_some() {
                        return Err(ExpressionError::new(name.line, "a name stands twice in one object"));
                    }
                }
                // What it will be called is not known, so nothing can be said of any of its names.
                None => return Ok(Partial::Unknown(Type::Any)),
            }
        }
        Ok(Partial::object(object))
    }

    fn template(&mut self, parts: &[Expression]) -> Result<Partial, ExpressionError> {
        let mut all = Some(String::new());
        for part in parts {
            match (self.text(part)?, &mut all) {
                (Some(text), Some(all)) => all.push_str(&text),
                _ => all = None,
            }
        }
        Ok(all.map_or(Partial::Unknown(Type::String), |text| Partial::Known(text.into())))
    }

    /// The expression as text; none when it is not known yet.
    fn text(&mut self, expression: &Expression) -> Result<Option<String>, ExpressionError> {
        let wrong = |what: String| ExpressionError::new(expression.line, what);
        match self.value(expression)? {
            Partial::Known(Value::Null) => Err(wrong("null cannot stand in a text".to_owned())),
            Partial::Known(value) => match validate(&Type::String, &value) {
                Ok(text) => Ok(text.as_str().map(str::to_owned)),
                Err(_) => Err(wrong(format!("{} cannot stand in a text", value.kind()))),
            },
            other => match other.check(&Type::String) {
                Ok(_) => Ok(None),
                Err(_) => Err(wrong("only a string, a number or a bool can stand in a text".to_owned())),
            },
        }
    }

    fn flag(&mut self, expression: &Expression) -> Result<Option<bool>, ExpressionError> {
        let value = self.value(expression)?;
        match value.check(&Type::Bool) {
            Ok(Partial::Known(Value::Bool(flag))) => Ok(Some(flag)),
            Ok(Partial::Known(_)) | Err(_) => {
                Err(ExpressionError::new(expression.line, "true or false is needed here"))
            }
            Ok(_) => Ok(None),
        }
    }

    fn conditional(&mut self, parts: &[Expression; 3]) -> Result<Partial, ExpressionError> {
        let [condition, yes, no] = parts;
        match self.flag(condition)? {
            Some(true) => self.value(yes),
            Some(false) => self.value(no),
            None => {
                let (yes, no) = (self.value(yes)?.ty(), self.value(no)?.ty());
                Ok(Partial::Unknown(if yes == no { yes } else { Type::Any }))
            }
        }
    }

    /// The first that has a value; what is not known yet may turn out to have none.
    fn first(&mut self, line: usize, items: &[Expression]) -> Result<Partial, ExpressionError> {
        let mut unknown: Option<Type> = None;
        let mut last = ExpressionError::new(line, "`try` is given nothing");
        for item in items {
            let found = match self.value(item) {
                Ok(found) => found,
                Err(error) => {
                    last = error;
                    continue;
                }
            };
            if unknown.is_none() && found.known().is_some() {
                return Ok(found);
            }
            let (ty, is_known) = (found.ty(), found.known().is_some());
            unknown = Some(match unknown {
                Some(other) if other != ty => Type::Any,
                _ => ty,
            });
            if is_known {
                break;
            }
        }
        unknown.map(Partial::Unknown).ok_or(last)
    }

    fn binary(&mut self, operator: Operator, both: &[Expression; 2]) -> Result<Partial, ExpressionError> {
        let [left, right] = both;
        let unknown = Ok(Partial::Unknown(Type::Bool));
        let known = |flag: bool| Ok(Partial::Known(flag.into()));
        match operator {
            Operator::And | Operator::Or => {
                let decides = operator == Operator::Or;
                let left = self.flag(left)?;
                // What is decided is not looked at further, so that `a.b == null || a.b.c > 1` can be said.
                if left == Some(decides) {
                    return known(decides);
                }
                match (left, self.flag(right)?) {
                    (_, Some(right)) if right == decides => known(decides),
                    (Some(_), Some(right)) => known(right),
                    _ => unknown,
                }
            }
            Operator::Equal | Operator::NotEqual => match (self.value(left)?, self.value(right)?) {
                (Partial::Known(left), Partial::Known(right)) => {
                    known((left == right) == (operator == Operator::Equal))
                }
                _ => unknown,
            },
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                match (self.number(left)?, self.number(right)?) {
                    (Some(left), Some(right)) => {
                        let order = compare(&left, &right);
                        known(match operator {
                            Operator::Less => order.is_lt(),
                            Operator::LessOrEqual => order.is_le(),
                            Operator::Greater => order.is_gt(),
                            _ => order.is_ge(),
                        })
                    }
                    _ => unknown,
                }
            }
        }
    }

    fn number(&mut self, expression: &Expression) -> Result<Option<Number>, ExpressionError> {
        match self.value(expression)?.check(&Type::Number) {
            Ok(Partial::Known(Value::Number(number))) => Ok(Some(number)),
            Ok(Partial::Known(_)) | Err(_) => {
                Err(ExpressionError::new(expression.line, "a number is needed here"))
            }
            Ok(_) => Ok(None),
        }
    }
}

/// Which of two numbers is greater, whatever their size.
fn compare(left: &Number, right: &Number) -> Ordering {
    let (left, right) = (left.normal(), right.normal());
    let parts = |text: &str| {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        (negative, whole.to_owned(), fraction.to_owned())
    };
    let (left_negative, left_whole, left_fraction) = parts(&left);
    let (right_negative, right_whole, right_fraction) = parts(&right);
    let size = left_whole
        .len()
        .cmp(&right_whole.len())
        .then_with(|| left_whole.cmp(&right_whole))
        .then_with(|| left_fraction.cmp(&right_fraction));
    match (left_negative, right_negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => size,
        (true, true) => size.reverse(),
    }
}
