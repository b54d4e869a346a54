//! The formats, and one way into all of them.

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use super::{ManagedError, block, ini, json, toml, yaml};

/// Paths of the keys that are ours, containers that we made included. A block needs none.
pub type Keys = BTreeSet<Vec<String>>;

/// How a managed file is written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Lines between two marker lines that name the module.
    Block {
        /// What begins a comment, `#` for instance.
        comment: String,
        /// What ends one, where a comment has an end.
        end: Option<String>,
        /// A new block goes to the start of the file instead of its end.
        at_start: bool,
    },
    /// Each section and key of the fragment.
    Ini,
    /// Each leaf key; arrays and inline tables are leaves.
    Toml,
    /// Each leaf by its path; arrays are leaves.
    Json,
    /// The top-level keys of one block mapping, as whole ranges of lines.
    Yaml,
}

/// A file with our part in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The whole file.
    pub content: Zeroizing<Vec<u8>>,
    /// What is ours in it.
    pub ours: Keys,
}

/// Puts `fragment` into `target`, or makes a file of it where there is none; keys of `before` that the fragment no longer
/// has go.
///
/// # Errors
/// [`ManagedError`] when either text cannot be read as the format; nothing is to be written then.
pub fn merge(
    format: &Format,
    module: &str,
    target: Option<&[u8]>,
    fragment: &[u8],
    before: &Keys,
) -> Result<Merged, ManagedError> {
    let target = target.unwrap_or_default();
    let (content, ours) = match format {
        Format::Block { comment, end, at_start } => {
            let markers = block::Markers::new(comment, end.as_deref(), module);
            (block::merge(&markers, target, fragment, *at_start)?, Keys::new())
        }
        Format::Ini => ini::merge(target, fragment, before)?,
        Format::Toml => toml::merge(target, fragment, before)?,
        Format::Json => json::merge(target, fragment, before)?,
        Format::Yaml => yaml::merge(target, fragment, before)?,
    };
    Ok(Merged { content: Zeroizing::new(content), ours })
}

/// Takes our part out of `target`.
///
/// # Errors
/// [`ManagedError`] when the target cannot be read as the format.
pub fn withdraw(
    format: &Format,
    module: &str,
    target: &[u8],
    ours: &Keys,
) -> Result<Zeroizing<Vec<u8>>, ManagedError> {
    let content = match format {
        Format::Block { comment, end, .. } => {
            block::withdraw(&block::Markers::new(comment, end.as_deref(), module), target)?
        }
        Format::Ini => ini::withdraw(target, ours)?,
        Format::Toml => toml::withdraw(target, ours)?,
        Format::Json => json::withdraw(target, ours)?,
        Format::Yaml => yaml::withdraw(target, ours)?,
    };
    Ok(Zeroizing::new(content))
}

/// True when nothing is left in such a file: blanks alone, or an object without members.
pub fn is_blank(format: &Format, content: &[u8]) -> bool {
    let rest: Vec<u8> = content.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    rest.is_empty() || (*format == Format::Json && rest == b"{}")
}
