//! Templates filled: one pass, byte for byte. What is inserted is never read as a template.

use zeroize::Zeroizing;

use super::{
    filter::FilterError,
    grammar::{Part, Placeholder, Template},
};
use crate::value::Value;

/// A piece of the result.
enum Piece<'a> {
    Text(&'a [u8]),
    Value(Value),
    Filtered(Zeroizing<Vec<u8>>),
}

impl Piece<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Value(value) => value.as_bytes(),
            Self::Filtered(bytes) => bytes,
        }
    }
}

impl Template {
    /// The template with every placeholder replaced by what `value` gives for it. The result is measured before it is made, so
    /// that no part of a secret stays behind in a buffer that had to grow.
    ///
    /// # Errors
    /// What `value` answers, or a filter that refuses a value, with its placeholder.
    pub fn fill<E>(
        &self,
        mut value: impl FnMut(&Placeholder) -> Result<Value, E>,
        refused: impl Fn(&Placeholder, FilterError) -> E,
    ) -> Result<Zeroizing<Vec<u8>>, E> {
        let mut pieces = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            pieces.push(match part {
                Part::Text(text) => Piece::Text(text),
                Part::Placeholder(placeholder) => {
                    let found = value(placeholder)?;
                    filtered(placeholder, found).map_err(|error| refused(placeholder, error))?
                }
            });
        }
        let length = pieces.iter().map(|piece| piece.bytes().len()).sum();
        let mut out = Zeroizing::new(Vec::with_capacity(length));
        for piece in &pieces {
            out.extend_from_slice(piece.bytes());
        }
        Ok(out)
    }
}

fn filtered(placeholder: &Placeholder, value: Value) -> Result<Piece<'static>, FilterError> {
    let mut done: Option<Zeroizing<Vec<u8>>> = None;
    for filter in &placeholder.filters {
        let next = match &done {
            None => filter.apply(value.as_bytes(), value.is_json())?,
            Some(before) => filter.apply(before, false)?,
        };
        done = Some(next);
    }
    Ok(done.map_or(Piece::Value(value), Piece::Filtered))
}
