//! What the vault's own file remembers of a value that is kept elsewhere.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Which version of a value was seen: its number there, and when it was made. The number alone would not do, since it begins
/// anew when all versions of a name were deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The number.
    pub version: u64,
    /// When, as the store wrote it.
    pub created: String,
}

/// What a mark is beside the one that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The same.
    Same,
    /// A change.
    New,
    /// From before the one that is remembered.
    Old,
}

impl Mark {
    /// The row that remembers it.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads such a row; none when it is something else.
    pub fn read(row: &[u8]) -> Option<Self> {
        serde_json::from_slice(row).ok()
    }

    /// What this one is beside the one that is remembered.
    pub fn beside(&self, remembered: Option<&Self>) -> Seen {
        let Some(remembered) = remembered else { return Seen::New };
        if self == remembered {
            return Seen::Same;
        }
        let moment = |mark: &Self| OffsetDateTime::parse(&mark.created, &Rfc3339).ok();
        let is_older = self.version < remembered.version && moment(self) <= moment(remembered);
        if is_older { Seen::Old } else { Seen::New }
    }
}
