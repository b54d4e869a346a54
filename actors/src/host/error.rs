//! Why a cycle failed.

use super::steps::Step;

/// Why a cycle failed. The text says what was being done; the cause is one of a fixed set and labels a counter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// A call failed for good.
    #[error("{} failed after {tries} tries: {reason}", step.name())]
    Call {
        /// The step.
        step: Step,
        /// How often it was tried.
        tries: u32,
        /// The last reason.
        reason: String,
    },
    /// A call answered with something that cannot be used.
    #[error("{} answered with something unusable: {reason}", step.name())]
    Answer {
        /// The step.
        step: Step,
        /// What is wrong with it.
        reason: String,
    },
    /// The provisioning token does not verify.
    #[error("its provisioning token was refused: {0}")]
    Token(String),
    /// It could not prove that it holds the key it claims.
    #[error("it could not prove that it holds its ed25519 key: {0}")]
    KeyProof(String),
    /// The CSR is not acceptable.
    #[error("its certificate request was refused: {0}")]
    Csr(String),
    /// The helper failed.
    #[error("the helper failed: {0}")]
    Helper(String),
    /// The helper returned no configuration.
    #[error("the helper returned an empty configuration")]
    EmptyConfiguration,
    /// The server token could not be issued.
    #[error("could not issue its server token: {0}")]
    ServerToken(String),
    /// The private key could not be encrypted.
    #[error("could not encrypt the private key for it: {0}")]
    SealKey(String),
    /// Upgrades are not possible.
    #[error("could not update it to version {version}: {reason}")]
    Update {
        /// The wanted version.
        version: String,
        /// Why not.
        reason: String,
    },
    /// The right to work on it ended between configure and restart.
    #[error("the right to work on it ended before it was told to restart")]
    Barred,
    /// Two different replies to one request arrived.
    #[error("two different replies to one request arrived, one of them is forged")]
    Conflict,
}

impl HostError {
    /// The fixed cause.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::Call { step, .. } | Self::Answer { step, .. } => step.name(),
            Self::Token(_) => "token",
            Self::KeyProof(_) => "key_proof",
            Self::Csr(_) => "csr",
            Self::Helper(_) => "helper",
            Self::EmptyConfiguration => "empty_configuration",
            Self::ServerToken(_) => "server_token",
            Self::SealKey(_) => "seal_key",
            Self::Update { .. } => "update",
            // As when the reply to the restart is lost: it may still come up as a server.
            Self::Barred => Step::Restart.name(),
            Self::Conflict => "conflict",
        }
    }
}
