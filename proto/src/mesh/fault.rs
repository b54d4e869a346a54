//! Why a key or a value of the mesh was refused.

use crate::{json::JsonError, text::escape_bounded};

/// Longest place shown, in characters.
const MAX_PLACE: usize = 160;

/// One fault and its place, such as `provisioning.files[2].path: is not absolute`. Nothing of the value itself is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", shown(place))]
pub struct Fault {
    /// Members and positions from the outside in; empty for the whole.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

fn shown(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{}: ", escape_bounded(place, MAX_PLACE)) }
}

impl Fault {
    /// A fault at this place.
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }

    /// A document that is no JSON of the expected form.
    pub(super) fn json(place: &str, error: &JsonError) -> Self {
        Self::new(place, error.to_string())
    }
}
