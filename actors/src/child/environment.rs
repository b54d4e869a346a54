//! What of our own environment a child gets.

use std::ffi::OsString;

/// The part of `variables` that a child may see: those whose name is in `allowed`, where a name that ends in `*` stands for
/// every name with that prefix. The daemon's own credentials often arrive by environment, so everything else stays behind.
pub fn allowed_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    allowed: &[impl AsRef<str>],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsString| {
        let name = name.as_encoded_bytes();
        allowed.iter().any(|rule| match rule.as_ref().strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix.as_bytes()),
            None => name == rule.as_ref().as_bytes(),
        })
    };
    variables.into_iter().filter(|(name, _)| passes(name)).collect()
}
