//! One type expression.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::parser::{TypeError, parse};

/// The type of an attribute, of outputs, or of a part of either.
///
/// Printed canonically: no blanks, fields sorted by name.
///
/// ```
/// use quartermaster_proto::provider::Type;
/// let ty: Type = "object({ status = number, body: string,\n headers = optional(map(string)) })".parse().unwrap();
/// assert_eq!(ty.to_string(), "object({body=string,headers=optional(map(string)),status=number})");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `string`.
    String,
    /// `number`, whole or not, of any size.
    Number,
    /// `bool`.
    Bool,
    /// `any`: whatever JSON can say.
    Any,
    /// `list(T)`: in the order given.
    List(Box<Type>),
    /// `set(T)`: each value once, sorted.
    Set(Box<Type>),
    /// `map(T)`: any names, all values of one type.
    Map(Box<Type>),
    /// `tuple([T, …])`: so many values, each of its own type.
    Tuple(Vec<Type>),
    /// `object({name=T, …})`: these names and no others.
    Object(BTreeMap<String, Field>),
}

/// A field of an object type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its type.
    pub ty: Type,
    /// Whether it may be left out, `optional(T)`; it is then written as `null`.
    pub optional: bool,
}

impl FromStr for Type {
    type Err = TypeError;

    /// Reads a type expression, naming the column of what it does not understand.
    fn from_str(text: &str) -> Result<Self, TypeError> {
        parse(text)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => out.write_str("string"),
            Self::Number => out.write_str("number"),
            Self::Bool => out.write_str("bool"),
            Self::Any => out.write_str("any"),
            Self::List(item) => write!(out, "list({item})"),
            Self::Set(item) => write!(out, "set({item})"),
            Self::Map(item) => write!(out, "map({item})"),
            Self::Tuple(items) => {
                out.write_str("tuple([")?;
                for (position, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if position == 0 { "" } else { "," })?;
                }
                out.write_str("])")
            }
            Self::Object(fields) => {
                out.write_str("object({")?;
                for (position, (name, field)) in fields.iter().enumerate() {
                    let comma = if position == 0 { "" } else { "," };
                    let ty = &field.ty;
                    if field.optional {
                        write!(out, "{comma}{name}=optional({ty})")?;
                    } else {
                        write!(out, "{comma}{name}={ty}")?;
                    }
                }
                out.write_str("})")
            }
        }
    }
}
