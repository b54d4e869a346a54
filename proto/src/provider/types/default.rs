//! Defaults, which providers write as JSON or as a string that holds JSON.

use crate::{
    json::Limits,
    provider::values::{Complaint, Path, Value, parse},
};

use super::{convert::validate_at, expression::Type};

/// Reads a declared default for `ty`; `null` is no default.
///
/// A string that is itself JSON of the type is taken for that JSON. For strings that holds only when the text begins with a quote,
/// and for `any` when it begins with a quote, a brace or a bracket: `"30"` as the default of a string is the text 30.
///
/// # Errors
/// Why the default is no value of the type, with paths that begin with `path`.
pub fn read_default(path: Path, ty: &Type, default: &Value) -> Result<Option<Value>, Vec<Complaint>> {
    let value = match inner(ty, default) {
        Some(inner) => inner,
        None => validate_at(path, ty, default)?,
    };
    Ok(Some(value).filter(|value| !value.is_null()))
}

/// The value that a string default holds as JSON text, if it may be meant so and converts.
fn inner(ty: &Type, default: &Value) -> Option<Value> {
    let text = default.as_str()?;
    let may_be = match ty {
        Type::String => text.starts_with('"'),
        Type::Any => text.starts_with(['"', '{', '[']),
        _ => true,
    };
    let inner = may_be.then(|| parse(text, &Limits::PROVIDER).ok())??;
    validate_at(Path::default(), ty, &inner.value).ok()
}
