//! The grammar of type expressions.

use std::collections::BTreeMap;

use crate::text::escape_bounded;

use super::expression::{Field, Type};

/// Deepest nesting of a type.
pub const MAX_TYPE_DEPTH: usize = 64;
/// Longest name shown in an error, in characters.
const MAX_SHOWN: usize = 40;

/// Why a type expression is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at column {column}")]
pub struct TypeError {
    /// Where, in characters from 1; line breaks count as one character.
    pub column: usize,
    /// What was expected there, or is not known.
    pub message: String,
}

pub fn parse(text: &str) -> Result<Type, TypeError> {
    let mut parser = Parser { text, at: 0 };
    let ty = parser.ty(1)?;
    parser.space();
    if parser.rest().is_empty() { Ok(ty) } else { parser.fail("text after the type") }
}

/// Whether a character may stand inside a name, and whether it may start one.
pub fn is_name_part(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-')
}

pub fn is_name_start(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, TypeError> {
        self.fail_at(self.at, message)
    }

    fn fail_at<T>(&self, at: usize, message: impl Into<String>) -> Result<T, TypeError> {
        let column = self.text.get(..at).unwrap_or_default().chars().count() + 1;
        Err(TypeError { column, message: message.into() })
    }

    /// Skips blanks and line breaks; says whether a line ended.
    fn space(&mut self) -> bool {
        let rest = self.rest();
        let length =
            rest.find(|character| !matches!(character, ' ' | '\t' | '\r' | '\n')).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).is_some_and(|blanks| blanks.contains('\n'))
    }

    fn takes(&mut self, token: char) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len_utf8();
        }
        found
    }

    fn needs(&mut self, token: char) -> Result<(), TypeError> {
        if self.takes(token) { Ok(()) } else { self.fail(format!("`{token}` is missing")) }
    }

    fn name(&mut self) -> Option<&'a str> {
        self.space();
        let rest = self.rest();
        let end = rest.find(|character| !is_name_part(character)).unwrap_or(rest.len());
        let name = rest.get(..end).filter(|name| name.starts_with(is_name_start))?;
        self.at += end;
        Some(name)
    }

    fn ty(&mut self, depth: usize) -> Result<Type, TypeError> {
        if depth > MAX_TYPE_DEPTH {
            return self.fail(format!("a type nested deeper than {MAX_TYPE_DEPTH} levels"));
        }
        self.space();
        let start = self.at;
        let Some(word) = self.name() else { return self.fail("a type is missing") };
        match word {
            "string" => Ok(Type::String),
            "number" => Ok(Type::Number),
            "bool" => Ok(Type::Bool),
            "any" => Ok(Type::Any),
            "list" => self.of(depth).map(Type::List),
            "set" => self.of(depth).map(Type::Set),
            "map" => self.of(depth).map(Type::Map),
            "tuple" => self.tuple(depth),
            "object" => self.object(depth),
            "optional" => self.fail_at(start, "`optional` stands only for a field of an object"),
            word => self.fail_at(start, format!("unknown type `{}`", escape_bounded(word, MAX_SHOWN))),
        }
    }

    /// `(T)`.
    fn of(&mut self, depth: usize) -> Result<Box<Type>, TypeError> {
        self.needs('(')?;
        let ty = self.ty(depth + 1)?;
        self.needs(')')?;
        Ok(Box::new(ty))
    }

    fn tuple(&mut self, depth: usize) -> Result<Type, TypeError> {
        let mut items = Vec::new();
        self.needs('(')?;
        self.needs('[')?;
        while !self.takes(']') {
            items.push(self.ty(depth + 1)?);
            if !self.takes(',') {
                self.needs(']')?;
                break;
            }
        }
        self.needs(')')?;
        Ok(Type::Tuple(items))
    }

    fn object(&mut self, depth: usize) -> Result<Type, TypeError> {
        let mut fields = BTreeMap::new();
        self.needs('(')?;
        self.needs('{')?;
        while !self.takes('}') {
            let start = self.at;
            let Some(name) = self.name() else { return self.fail("a field's name is missing") };
            if !self.takes('=') && !self.takes(':') {
                return self.fail("`=` is missing");
            }
            let field = self.field(depth)?;
            if fields.insert(name.to_owned(), field).is_some() {
                let message = format!("field `{}` stands twice", escape_bounded(name, MAX_SHOWN));
                return self.fail_at(start, message);
            }
            // A line break separates too, and a comma may stand on the next line all the same.
            let line_ended = self.space();
            if !self.takes(',') && !line_ended {
                if self.takes('}') {
                    break;
                }
                return self.fail("`,` or `}` is missing");
            }
        }
        self.needs(')')?;
        Ok(Type::Object(fields))
    }

    fn field(&mut self, depth: usize) -> Result<Field, TypeError> {
        let start = self.at;
        if self.name() == Some("optional") {
            let ty = *self.of(depth)?;
            return Ok(Field { ty, optional: true });
        }
        self.at = start;
        Ok(Field { ty: self.ty(depth + 1)?, optional: false })
    }
}
