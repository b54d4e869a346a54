//! The head row: how many changes there were, and what the rows are together.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

/// What is known of a row without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// The number of the change that wrote it.
    pub(super) version: u64,
    /// False for a name that was deleted: its number stays, so that versions never fall.
    pub(super) is_there: bool,
}

/// Every name with its mark.
pub(super) type Marks = BTreeMap<String, Mark>;

/// The content of the head row: the number of changes, and a hash over all names and marks.
pub(super) fn content(changes: u64, marks: &Marks) -> Vec<u8> {
    let mut hash = Sha256::new();
    for (name, mark) in marks {
        // Lengths first, so that no two lists run together into the same bytes.
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
        hash.update(mark.version.to_be_bytes());
        hash.update([u8::from(mark.is_there)]);
    }
    let mut content = changes.to_be_bytes().to_vec();
    content.extend_from_slice(&hash.finalize());
    content
}
