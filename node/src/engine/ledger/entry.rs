//! What is written down.

use serde::{Deserialize, Serialize};

use crate::engine::disk::{Attributes, FilePath};
use crate::engine::managed::Keys;
use crate::engine::program::Program;

/// One file that the engine wrote, or found as it would have written it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The module it belongs to.
    pub module: String,
    /// How it is written.
    pub kept: Kept,
    /// SHA-256 of what was last filled, in hexadecimal: the whole content, or our part of a managed file.
    pub sha256: String,
    /// Owner, group and permission bits it had then.
    pub attributes: Attributes,
    /// The engine made the file; false when it was there before.
    pub created: bool,
}

impl Row {
    /// The keys of a managed file that are ours.
    pub fn ours(&self) -> Keys {
        match &self.kept {
            Kept::Managed { ours, .. } => ours.clone(),
            Kept::Owned | Kept::Seed => Keys::new(),
        }
    }
}

/// How a file is written, with what is needed to take it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// Whole.
    Owned,
    /// Once, when absent.
    Seed,
    /// Our part of it.
    Managed {
        /// The format.
        format: crate::engine::managed::Format,
        /// The keys that are ours.
        ours: Keys,
    },
}

impl Kept {
    /// True when both are of one kind, and of one format.
    pub fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Owned, Self::Owned) | (Self::Seed, Self::Seed) => true,
            (Self::Managed { format: a, .. }, Self::Managed { format: b, .. }) => a == b,
            _ => false,
        }
    }
}

/// A program that has to be told of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    /// Whose change it was.
    pub module: String,
    /// What to tell.
    pub program: Program,
    /// Grows with each change, so that telling of an older one does not clear a newer one.
    pub number: u64,
}

/// One change of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file's row, or none any more.
    File {
        /// Where.
        path: FilePath,
        /// What is known of it.
        row: Option<Box<Row>>,
    },
    /// A folder that the engine made, or that is gone.
    Folder {
        /// Where.
        path: FilePath,
        /// False when it is gone.
        is_ours: bool,
    },
    /// A program is owed.
    Owe(Owed),
    /// A program was told of changes up to this one.
    Told(Owed),
}
