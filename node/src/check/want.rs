//! What a module wants from elsewhere.

use quartermaster_proto::mesh::{Kind, vault::SecretName};

/// One value that somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Want {
    /// A config value of the module.
    Config(String),
    /// A value of the vault.
    Vault(SecretName),
    /// What a provider serves the module.
    Bound {
        /// The provider.
        provider: String,
        /// The provision.
        provision: String,
        /// Which of several.
        local: Option<String>,
    },
    /// All items of a collection on this machine.
    Collection(String),
    /// Everybody who is bound to a provision of this module.
    Consumers(String),
}

impl Want {
    /// The kind whose owner is asked.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Config(_) => Kind::Config,
            Self::Vault(_) => Kind::Secret,
            Self::Bound { .. } => Kind::Bound,
            Self::Collection(_) => Kind::Collected,
            Self::Consumers(_) => Kind::Consumers,
        }
    }
}
