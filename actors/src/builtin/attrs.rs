//! Attributes that have been checked against the schema, taken apart.

use quartermaster_proto::provider::{ErrorCode, Members, ProviderError, Value};

/// A text; empty when it was left out.
pub fn text<'m>(members: &'m Members, name: &str) -> &'m str {
    given(members, name).unwrap_or_default()
}

/// A text, if it was given.
pub fn given<'m>(members: &'m Members, name: &str) -> Option<&'m str> {
    members.get(name).and_then(Value::as_str)
}

/// A list of texts, if it was given.
pub fn texts(members: &Members, name: &str) -> Option<Vec<String>> {
    let items = members.get(name)?.as_list()?;
    Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Members of these names and values.
pub fn members<const N: usize>(each: [(&str, Value); N]) -> Members {
    each.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Nothing was done, since what was asked for cannot be.
pub fn refused(message: impl Into<String>) -> ProviderError {
    ProviderError::new(ErrorCode::InvalidAttrs, message)
}
