//! How a program is told.

use serde::{Deserialize, Serialize};

/// How a program is told of a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// The unit is restarted, if it runs.
    Restart {
        /// The unit's name.
        unit: String,
        /// It is also started when it does not run.
        start: bool,
    },
    /// The unit is asked to read its files again, if it runs.
    Reload {
        /// The unit's name.
        unit: String,
        /// It is also started when it does not run.
        start: bool,
    },
    /// A program is run.
    Command(Vec<String>),
}
