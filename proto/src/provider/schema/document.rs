//! What a schema says.

use std::{collections::BTreeMap, time::Duration};

use crate::provider::{
    types::{Type, is_name_part, is_name_start},
    values::Value,
};

use super::extension::Extensions;

/// The protocol that is spoken.
pub const PROTOCOL: &str = "1";
/// Longest name of an action or attribute, in bytes.
pub const MAX_NAME: usize = 255;

/// Attributes by name.
pub type Attrs = BTreeMap<String, AttrSchema>;

/// What a provider says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// Its name, for messages.
    pub name: String,
    /// Its version, any text.
    pub version: String,
    /// What `configure` takes.
    pub config: Attrs,
    /// What it can do, by the action's name.
    pub actions: BTreeMap<String, ActionSchema>,
    /// What it declares beyond the common protocol; `None` when it declares nothing.
    pub extensions: Option<Extensions>,
    /// The protocols it offers; empty when it only names the one it speaks.
    pub protocols: Vec<String>,
}

/// One action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionSchema {
    /// What it does; may be empty.
    pub description: String,
    /// What it takes.
    pub attrs: Attrs,
    /// What it gives; `None` when nothing.
    pub outputs: Option<AttrSchema>,
    /// It is safe to repeat with the same attributes.
    pub idempotent: bool,
    /// Its limit unless the step has one; zero for no limit.
    pub timeout: Option<Duration>,
    /// No other call may run at the same time.
    pub exclusive: bool,
    /// Whether it answers with an undo, if it says.
    pub returns_undo: Option<bool>,
}

/// One attribute, or the outputs of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttrSchema {
    /// The type of its values.
    pub ty: Type,
    /// It must be given.
    pub required: bool,
    /// What it is when it is not given, already converted to the type.
    pub default: Option<Value>,
    /// What it means; may be empty.
    pub description: String,
    /// Its values are masked wherever they are shown.
    pub sensitive: bool,
    /// It is a path, taken from the directory of the file that declares the step.
    pub is_path: bool,
    /// Why it should no longer be used.
    pub deprecated: Option<String>,
    /// The only values it may have, already converted to the type; empty for any.
    pub choices: Vec<Value>,
}

impl AttrSchema {
    /// An attribute of this type that may be left out.
    pub const fn new(ty: Type) -> Self {
        Self {
            ty,
            required: false,
            default: None,
            description: String::new(),
            sensitive: false,
            is_path: false,
            deprecated: None,
            choices: Vec::new(),
        }
    }
}

/// Whether a text can name an action, an attribute or a field: a letter or `_`, then letters, digits, `_` and `-`.
pub fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME && text.starts_with(is_name_start) && text.chars().all(is_name_part)
}
