//! Values converted to a declared type, or every reason why that is not possible.

use crate::{
    provider::values::{Complaint, Members, Number, Path, Segment, Value},
    text::escape_bounded,
};

use super::expression::{Field, Type};

/// Most complaints about one value; a list of a million wrong items is told by its first hundred.
const MAX_COMPLAINTS: usize = 100;

/// Converts `value` to `ty` as it goes on the wire.
///
/// Numbers and bools become strings; strings become numbers or bools when they say one; lists, sets and tuples become each other
/// when their items convert; sets are sorted and lose what stands twice; objects become maps when all fields convert; fields that
/// may be left out are filled with `null`. `null` is a value of every type. Nothing else is converted.
///
/// # Errors
/// Every complaint with its path, up to a hundred. None repeats the value.
pub fn validate(ty: &Type, value: &Value) -> Result<Value, Vec<Complaint>> {
    validate_at(Path::default(), ty, value)
}

/// [`validate`], with paths that begin with `path`.
pub fn validate_at(path: Path, ty: &Type, value: &Value) -> Result<Value, Vec<Complaint>> {
    let mut converter = Converter { path, complaints: Vec::new() };
    let value = converter.convert(ty, value);
    if converter.complaints.is_empty() { Ok(value) } else { Err(converter.complaints) }
}

struct Converter {
    path: Path,
    complaints: Vec<Complaint>,
}

impl Converter {
    /// Complains about this place; `null` stands in for what could not be converted.
    fn wrong(&mut self, message: String) -> Value {
        if self.complaints.len() < MAX_COMPLAINTS {
            self.complaints.push(Complaint { path: self.path.clone(), message });
        }
        Value::Null
    }

    fn inside(&mut self, segment: Segment, ty: &Type, value: &Value) -> Value {
        if self.complaints.len() >= MAX_COMPLAINTS {
            return Value::Null;
        }
        self.path.0.push(segment);
        let value = self.convert(ty, value);
        self.path.0.pop();
        value
    }

    fn convert(&mut self, ty: &Type, value: &Value) -> Value {
        match (ty, value) {
            (_, Value::Null) => Value::Null,
            (Type::Any, value)
            | (Type::String, value @ Value::String(_))
            | (Type::Number, value @ Value::Number(_))
            | (Type::Bool, value @ Value::Bool(_)) => value.clone(),
            (Type::String, Value::Number(number)) => number.normal().into_owned().into(),
            (Type::String, Value::Bool(flag)) => flag.to_string().into(),
            (Type::Number, Value::String(text)) => match text.parse::<Number>() {
                Ok(number) => number.into(),
                Err(_) => self.wrong("number needed, and this string is none".to_owned()),
            },
            (Type::Bool, Value::String(text)) => match text.as_str() {
                "true" | "1" => true.into(),
                "false" | "0" => false.into(),
                _ => self.wrong("bool needed, and this string is neither true nor false".to_owned()),
            },
            (Type::List(item), Value::List(items)) => self.items(item, items).into(),
            (Type::Set(item), Value::List(items)) => set(self.items(item, items)),
            (Type::Tuple(types), Value::List(items)) => self.tuple(types, items),
            (Type::Map(item), Value::Object(members)) => members
                .iter()
                .map(|(name, value)| (name.clone(), self.inside(Segment::Key(name.clone()), item, value)))
                .collect(),
            (Type::Object(fields), Value::Object(members)) => self.object(fields, members),
            (ty, value) => self.wrong(format!("{} needed, {} found", short(ty), found(value))),
        }
    }

    fn items(&mut self, ty: &Type, items: &[Value]) -> Vec<Value> {
        let each = items.iter().enumerate();
        each.map(|(index, item)| self.inside(Segment::Index(index), ty, item)).collect()
    }

    fn tuple(&mut self, types: &[Type], items: &[Value]) -> Value {
        if types.len() != items.len() {
            return self.wrong(format!("tuple of {} needed, list of {} found", types.len(), items.len()));
        }
        let each = types.iter().zip(items).enumerate();
        each.map(|(index, (ty, item))| self.inside(Segment::Index(index), ty, item)).collect()
    }

    fn object(&mut self, fields: &std::collections::BTreeMap<String, Field>, members: &Members) -> Value {
        for name in members.keys().filter(|name| !fields.contains_key(*name)) {
            self.path.0.push(Segment::Key(name.clone()));
            let known: Vec<&str> = fields.keys().map(String::as_str).take(20).collect();
            self.wrong(format!("no such field; known: {}", escape_bounded(&known.join(", "), 120)));
            self.path.0.pop();
        }
        let each = fields.iter().map(|(name, field)| {
            let segment = Segment::Key(name.clone());
            let value = match members.get(name) {
                Some(value) => self.inside(segment, &field.ty, value),
                None if field.optional => Value::Null,
                None => {
                    self.path.0.push(segment);
                    let value = self.wrong(format!("{} needed, nothing found", short(&field.ty)));
                    self.path.0.pop();
                    value
                }
            };
            (name.clone(), value)
        });
        each.collect()
    }
}

/// Sorted by canonical text, each value once.
fn set(items: Vec<Value>) -> Value {
    let mut keyed: Vec<_> = items.into_iter().map(|item| (item.to_canonical(), item)).collect();
    keyed.sort_by(|left, right| left.0.cmp(&right.0));
    keyed.dedup_by(|later, first| later.0 == first.0);
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// A type in a message: its outermost word.
fn short(ty: &Type) -> &'static str {
    match ty {
        Type::String => "string",
        Type::Number => "number",
        Type::Bool => "bool",
        Type::Any => "value",
        Type::List(_) => "list",
        Type::Set(_) => "set",
        Type::Map(_) => "map",
        Type::Tuple(_) => "tuple",
        Type::Object(_) => "object",
    }
}

fn found(value: &Value) -> &'static str {
    let kind = value.kind();
    kind.split_once(' ').map_or(kind, |(_, noun)| noun)
}
