//! A value as it is written, with its references.

use std::collections::BTreeMap;

use hcl::expr::{
    BinaryOperator, Expression, ObjectKey, Operation, TemplateExpr, TraversalOperator, UnaryOperator,
};
use hcl::template::{Element, Strip};
use quartermaster_proto::provider::{Complaint, Members, Number, Path, Segment, Value};
use quartermaster_proto::text::escape_bounded;

/// The roots that a reference may have.
const ROOTS: [&str; 3] = ["server", "helper", "steps"];
/// Nesting of one expression.
const MAX_DEPTH: usize = 64;

/// A value whose parts may be known only later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// Known.
    Plain(Value),
    /// A list with parts that are not.
    List(Vec<Template>),
    /// An object with parts that are not.
    Object(BTreeMap<String, Template>),
    /// One expression alone: its value, of whatever type.
    Expression(Expr),
    /// Text with expressions in it: always a string.
    Text(Vec<Part>),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// As it stands.
    Literal(String),
    /// The value of an expression, as text.
    Expression(Expr),
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// A value.
    Value(Value),
    /// Something of the server, the helper's reply, or a step's outputs.
    Reference(Reference),
    /// A text.
    Text(Vec<Part>),
    /// A list.
    List(Vec<Expr>),
    /// An object.
    Object(Vec<(String, Expr)>),
    /// `!x`
    Not(Box<Expr>),
    /// `a == b`, and so on.
    Compare(Compare, Box<Expr>, Box<Expr>),
    /// `a && b`
    And(Box<Expr>, Box<Expr>),
    /// `a || b`
    Or(Box<Expr>, Box<Expr>),
    /// `a ? b : c`
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `try(a, b, …)`: the first that has a value.
    Try(Vec<Expr>),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A way to a value: `server.facts.os`, `steps.record.id`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// `server`, `helper` or `steps`.
    pub root: String,
    /// From there on.
    pub path: Vec<Access>,
}

/// One step of such a way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// By name.
    Key(String),
    /// By number, from 0.
    Index(usize),
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let segments = self.path.iter().map(|access| match access {
            Access::Key(name) => Segment::Key(name.clone()),
            Access::Index(index) => Segment::Index(*index),
        });
        let mut path = vec![Segment::Key(self.root.clone())];
        path.extend(segments);
        Path(path).fmt(f)
    }
}

/// Why a value with references cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

impl Template {
    /// Reads the texts in a value.
    ///
    /// # Errors
    /// Every text that cannot be understood, with its path.
    pub fn read(value: &Value) -> Result<Self, Vec<Complaint>> {
        let mut complaints = Vec::new();
        let template = read(&mut Path::default(), value, &mut complaints);
        if complaints.is_empty() { Ok(template) } else { Err(complaints) }
    }

    /// Reads the texts in attributes.
    ///
    /// # Errors
    /// Every text that cannot be understood, with its path.
    pub fn read_members(members: &Members) -> Result<Self, Vec<Complaint>> {
        Self::read(&Value::Object(members.clone()))
    }

    /// Every reference in it.
    pub fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    fn collect<'t>(&'t self, found: &mut Vec<&'t Reference>) {
        match self {
            Self::Plain(_) => {}
            Self::List(items) => items.iter().for_each(|item| item.collect(found)),
            Self::Object(members) => members.values().for_each(|item| item.collect(found)),
            Self::Expression(expr) => expr.collect(found),
            Self::Text(parts) => collect_parts(parts, found),
        }
    }
}

impl Expr {
    fn collect<'t>(&'t self, found: &mut Vec<&'t Reference>) {
        match self {
            Self::Value(_) => {}
            Self::Reference(reference) => found.push(reference),
            Self::Text(parts) => collect_parts(parts, found),
            Self::List(items) | Self::Try(items) => items.iter().for_each(|item| item.collect(found)),
            Self::Object(members) => members.iter().for_each(|(_, item)| item.collect(found)),
            Self::Not(inner) => inner.collect(found),
            Self::Compare(_, a, b) | Self::And(a, b) | Self::Or(a, b) => {
                a.collect(found);
                b.collect(found);
            }
            Self::Choose(a, b, c) => [a, b, c].into_iter().for_each(|part| part.collect(found)),
        }
    }
}

fn collect_parts<'t>(parts: &'t [Part], found: &mut Vec<&'t Reference>) {
    for part in parts {
        if let Part::Expression(expr) = part {
            expr.collect(found);
        }
    }
}

fn read(path: &mut Path, value: &Value, complaints: &mut Vec<Complaint>) -> Template {
    let mut inside = |segment: Segment, value: &Value| {
        path.0.push(segment);
        let template = read(path, value, complaints);
        path.0.pop();
        template
    };
    match value {
        Value::List(items) => {
            let each = items.iter().enumerate();
            let items: Vec<_> = each.map(|(index, item)| inside(Segment::Index(index), item)).collect();
            let plain = items.iter().all(|item| matches!(item, Template::Plain(_)));
            if plain { Template::Plain(value.clone()) } else { Template::List(items) }
        }
        Value::Object(members) => {
            let each = members.iter();
            let members: BTreeMap<_, _> =
                each.map(|(name, item)| (name.clone(), inside(Segment::Key(name.clone()), item))).collect();
            let plain = members.values().all(|item| matches!(item, Template::Plain(_)));
            if plain { Template::Plain(value.clone()) } else { Template::Object(members) }
        }
        Value::String(text) => text_template(text).unwrap_or_else(|TemplateError(message)| {
            complaints.push(Complaint { path: path.clone(), message });
            Template::Plain(Value::Null)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Template::Plain(value.clone()),
    }
}

/// A text without `${` and `%{` is what it says, backslashes and all.
fn text_template(text: &str) -> Result<Template, TemplateError> {
    if !text.contains("${") && !text.contains("%{") {
        return Ok(Template::Plain(text.into()));
    }
    let mut parts = parts(text, 0)?;
    match parts.as_mut_slice() {
        [Part::Expression(_)] => match parts.pop() {
            Some(Part::Expression(expr)) => Ok(Template::Expression(expr)),
            _ => Err(TemplateError("it is empty".to_owned())),
        },
        [Part::Literal(text)] => Ok(Template::Plain(text.as_str().into())),
        _ => Ok(Template::Text(parts)),
    }
}

fn parts(text: &str, depth: usize) -> Result<Vec<Part>, TemplateError> {
    let template: hcl::Template = text.parse().map_err(|error: hcl::Error| {
        // Only where it is, since the text may be secret.
        let place = match &error {
            hcl::Error::Parse(error) => {
                let place = error.location();
                format!(" at line {}, column {}", place.line(), place.column())
            }
            _ => String::new(),
        };
        TemplateError(format!("its `${{…}}` cannot be read{place}"))
    })?;
    let each = template.elements().iter().map(|element| match element {
        Element::Literal(text) => Ok(Part::Literal(text.clone())),
        Element::Interpolation(inner) if inner.strip == Strip::None => {
            Ok(Part::Expression(expr(&inner.expr, depth)?))
        }
        Element::Interpolation(_) => refuse("`~` in `${~ … ~}`"),
        Element::Directive(_) => refuse("a directive, `%{…}`,"),
    });
    each.collect()
}

fn refuse<T>(what: &str) -> Result<T, TemplateError> {
    Err(TemplateError(format!("{what} cannot be used here")))
}

fn expr(from: &Expression, depth: usize) -> Result<Expr, TemplateError> {
    if depth > MAX_DEPTH {
        return refuse("nesting as deep as this");
    }
    let inner = |from: &Expression| expr(from, depth + 1);
    let boxed = |from: &Expression| inner(from).map(Box::new);
    Ok(match from {
        Expression::Null => Expr::Value(Value::Null),
        Expression::Bool(flag) => Expr::Value((*flag).into()),
        Expression::Number(number) => {
            let number: Number = number
                .to_string()
                .parse()
                .map_err(|_| TemplateError("a number cannot be read".to_owned()))?;
            Expr::Value(number.into())
        }
        Expression::String(text) => Expr::Value(text.as_str().into()),
        Expression::Array(items) => Expr::List(items.iter().map(inner).collect::<Result<_, _>>()?),
        Expression::Object(members) => {
            let each = members.iter().map(|(key, item)| Ok((name_of(key)?, inner(item)?)));
            Expr::Object(each.collect::<Result<_, TemplateError>>()?)
        }
        Expression::TemplateExpr(text) => match text.as_ref() {
            TemplateExpr::QuotedString(text) => match parts(text, depth + 1)?.as_slice() {
                [Part::Literal(text)] => Expr::Value(text.as_str().into()),
                several => Expr::Text(several.to_vec()),
            },
            TemplateExpr::Heredoc(_) => return refuse("a heredoc"),
        },
        Expression::Parenthesis(inside) => inner(inside)?,
        Expression::Variable(name) => Expr::Reference(reference(name.as_str(), Vec::new())?),
        Expression::Traversal(traversal) => {
            let Expression::Variable(root) = &traversal.expr else {
                return refuse("a path into anything but `server`, `helper` and `steps`");
            };
            let path = traversal.operators.iter().map(access).collect::<Result<_, _>>()?;
            Expr::Reference(reference(root.as_str(), path)?)
        }
        Expression::Conditional(choice) => {
            Expr::Choose(boxed(&choice.cond_expr)?, boxed(&choice.true_expr)?, boxed(&choice.false_expr)?)
        }
        Expression::Operation(operation) => match operation.as_ref() {
            Operation::Unary(unary) if unary.operator == UnaryOperator::Not => Expr::Not(boxed(&unary.expr)?),
            Operation::Unary(_) => return refuse("arithmetic"),
            Operation::Binary(binary) => {
                let (a, b) = (boxed(&binary.lhs_expr)?, boxed(&binary.rhs_expr)?);
                match binary.operator {
                    BinaryOperator::Eq => Expr::Compare(Compare::Equal, a, b),
                    BinaryOperator::NotEq => Expr::Compare(Compare::Unequal, a, b),
                    BinaryOperator::Less => Expr::Compare(Compare::Less, a, b),
                    BinaryOperator::LessEq => Expr::Compare(Compare::LessOrEqual, a, b),
                    BinaryOperator::Greater => Expr::Compare(Compare::Greater, a, b),
                    BinaryOperator::GreaterEq => Expr::Compare(Compare::GreaterOrEqual, a, b),
                    BinaryOperator::And => Expr::And(a, b),
                    BinaryOperator::Or => Expr::Or(a, b),
                    _ => return refuse("arithmetic"),
                }
            }
        },
        Expression::FuncCall(call) if call.name.name.as_str() == "try" && !call.name.is_namespaced() => {
            Expr::Try(call.args.iter().map(inner).collect::<Result<_, _>>()?)
        }
        Expression::FuncCall(call) => {
            let name = escape_bounded(call.name.name.as_str(), 40);
            return refuse(&format!("the function `{name}`"));
        }
        _ => return refuse("a `for` expression"),
    })
}

fn name_of(key: &ObjectKey) -> Result<String, TemplateError> {
    match key {
        ObjectKey::Identifier(name) => Ok(name.to_string()),
        ObjectKey::Expression(Expression::String(name)) => Ok(name.clone()),
        _ => refuse("a computed name"),
    }
}

fn access(operator: &TraversalOperator) -> Result<Access, TemplateError> {
    match operator {
        TraversalOperator::GetAttr(name) => Ok(Access::Key(name.to_string())),
        TraversalOperator::Index(Expression::String(name)) => Ok(Access::Key(name.clone())),
        TraversalOperator::Index(Expression::Number(index)) => {
            let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
            index
                .map(Access::Index)
                .ok_or_else(|| TemplateError("an index must be a whole number".to_owned()))
        }
        TraversalOperator::LegacyIndex(index) => usize::try_from(*index)
            .map(Access::Index)
            .map_err(|_| TemplateError("an index is too large".to_owned())),
        TraversalOperator::Index(_) => refuse("a computed index"),
        TraversalOperator::AttrSplat | TraversalOperator::FullSplat => refuse("a splat, `*`,"),
    }
}

fn reference(root: &str, path: Vec<Access>) -> Result<Reference, TemplateError> {
    if ROOTS.contains(&root) {
        return Ok(Reference { root: root.to_owned(), path });
    }
    let root = escape_bounded(root, 40);
    Err(TemplateError(format!("there is no `{root}`; known: {}", ROOTS.join(", "))))
}
