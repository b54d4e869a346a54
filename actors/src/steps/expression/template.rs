//! A value as it is written, with its references.

use std::collections::BTreeMap;

use quartermaster_proto::provider::{Complaint, Members, Path, Segment, Value};
use quartermaster_proto::text::escape_bounded;

use crate::expression::{Access, Expression, Reference};

/// The roots that a reference may have.
const ROOTS: [&str; 3] = ["server", "helper", "steps"];
/// The most of a name that is repeated, in characters.
const SHOWN: usize = 40;

/// A value whose parts may be known only later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// Known.
    Plain(Value),
    /// A list with parts that are not.
    List(Vec<Template>),
    /// An object with parts that are not.
    Object(BTreeMap<String, Template>),
    /// A text with `${…}` in it.
    Expression(Expression),
}

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
        match self {
            Self::Plain(_) => Vec::new(),
            Self::List(items) => items.iter().flat_map(Self::references).collect(),
            Self::Object(members) => members.values().flat_map(Self::references).collect(),
            Self::Expression(expression) => expression.references(),
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
        Value::String(text) => self::text(text).unwrap_or_else(|message| {
            complaints.push(Complaint { path: path.clone(), message });
            Template::Plain(Value::Null)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Template::Plain(value.clone()),
    }
}

/// A text without `${` and `%{` is what it says, backslashes and all.
fn text(text: &str) -> Result<Template, String> {
    if !text.contains("${") && !text.contains("%{") {
        return Ok(Template::Plain(text.into()));
    }
    let expression = Expression::text(text, 1).map_err(|error| error.what)?;
    for reference in expression.references() {
        let root = reference.path.first().and_then(Access::name).unwrap_or_default();
        if !ROOTS.contains(&root) {
            let root = escape_bounded(root, SHOWN);
            return Err(format!("there is no `{root}`; known: {}", ROOTS.join(", ")));
        }
    }
    Ok(match expression.as_literal() {
        Some(value) => Template::Plain(value.clone()),
        None => Template::Expression(expression),
    })
}
