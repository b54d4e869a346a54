//! One expression, reduced to what is understood.

use std::fmt;

use quartermaster_proto::provider::{Value, is_name};

/// An expression and the line it begins on.
#[derive(Clone, PartialEq, Eq)]
pub struct Expression {
    /// Its line, counted from 1.
    pub line: usize,
    pub(super) kind: Kind,
}

/// Literals may be secret.
impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expression").field("line", &self.line).finish_non_exhaustive()
    }
}

/// What is understood.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Literal(Value),
    /// Pieces of one text.
    Template(Vec<Expression>),
    List(Vec<Expression>),
    Object(Vec<(Expression, Expression)>),
    Reference(Reference),
    Conditional(Box<[Expression; 3]>),
    Not(Box<Expression>),
    /// The first that has a value.
    Try(Vec<Expression>),
    Binary(Operator, Box<[Expression; 2]>),
}

/// What compares or joins two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

/// A name and the way from there: `action.record_create.www.records[0]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Its line, counted from 1.
    pub line: usize,
    /// Names and numbers; the first is a name.
    pub path: Vec<Access>,
}

/// One step of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// `.name`, or `["name"]`.
    Name(String),
    /// `[0]`.
    Index(usize),
}

impl Access {
    /// The name, if it is one.
    pub fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }
}

impl Reference {
    /// The names it begins with, as many as there are before the first number.
    pub fn names(&self) -> Vec<&str> {
        self.path.iter().map_while(Access::name).collect()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, access) in self.path.iter().enumerate() {
            match access {
                Access::Name(name) if position == 0 => f.write_str(name)?,
                Access::Name(name) if is_name(name) => write!(f, ".{name}")?,
                Access::Name(name) => write!(f, "[{name:?}]")?,
                Access::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Why an expression is not understood, or comes to nothing. No text of a value is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ExpressionError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, or what is not supported, by its name.
    pub what: String,
}

impl ExpressionError {
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl Expression {
    /// A value that is known.
    pub const fn literal(line: usize, value: Value) -> Self {
        Self { line, kind: Kind::Literal(value) }
    }

    /// The value, if it refers to nothing and computes nothing.
    pub fn as_literal(&self) -> Option<&Value> {
        if let Kind::Literal(value) = &self.kind { Some(value) } else { None }
    }

    /// The reference, if it is one and nothing else.
    pub fn as_reference(&self) -> Option<&Reference> {
        if let Kind::Reference(reference) = &self.kind { Some(reference) } else { None }
    }

    /// The expressions in a list, if it is one.
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Kind::List(items) = &self.kind { Some(items) } else { None }
    }

    /// Every reference in it, in the order written.
    pub fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match &self.kind {
            Kind::Literal(_) => {}
            Kind::Reference(reference) => found.push(reference),
            Kind::Template(parts) | Kind::List(parts) | Kind::Try(parts) => {
                for part in parts {
                    part.collect(found);
                }
            }
            Kind::Object(members) => members.iter().for_each(|(name, value)| {
                name.collect(found);
                value.collect(found);
            }),
            Kind::Conditional(parts) => parts.iter().for_each(|part| part.collect(found)),
            Kind::Not(one) => one.collect(found),
            Kind::Binary(_, both) => both.iter().for_each(|one| one.collect(found)),
        }
    }
}
