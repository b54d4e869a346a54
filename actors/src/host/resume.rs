//! What a cycle that was cut off leaves for the next one to make good.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

/// What `configure` sends but for the site's token, as JSON: the helper's decision and what was made of it. The same bytes
/// are sent again when the reply was lost. Shows nothing of itself.
#[derive(Clone)]
pub struct Material(Arc<Zeroizing<String>>);

impl Material {
    /// Material from its JSON.
    pub fn new(json: Zeroizing<String>) -> Self {
        Self(Arc::new(json))
    }

    /// The JSON.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Material(..)")
    }
}

impl PartialEq for Material {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Material {}

/// Where a cycle begins instead of at its first step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// `configure` may have been sent and its reply is not known: the same is sent again.
    Configure(Material),
    /// The host is configured: it is told to restart, and nothing else.
    Restart {
        /// It may have been told already, so silence is no failure.
        sent: bool,
    },
    /// What providers did for it is taken back, and nothing else.
    TakeBack,
}
