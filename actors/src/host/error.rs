//! Why a cycle failed.

use super::steps::Step;

/// The cause of a failure of a provider's step.
const STEP: &str = "step";
/// The cause of a failure that an operator has to look into.
pub const STEP_UNKNOWN: &str = "step_unknown";
/// The cause of a failure to take back what providers did.
const TAKE_BACK: &str = "take_back";

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
    /// A step of a provider failed.
    #[error("step {step} failed: {error}")]
    Provided {
        /// The step.
        step: String,
        /// Why.
        error: String,
    },
    /// Nobody knows whether a step of a provider was done.
    #[error("whether step {step} was done is unknown: {error}")]
    ProvidedUnknown {
        /// The step.
        step: String,
        /// Why.
        error: String,
    },
    /// What providers did could not be taken back.
    #[error("{}not taken back: {left}", first.as_ref().map(|first| format!("{first}; ")).unwrap_or_default())]
    NotTakenBack {
        /// Why the cycle failed before that.
        first: Option<String>,
        /// What is left.
        left: String,
        /// Only an operator can tell what became of it.
        asks_operator: bool,
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
            Self::Provided { .. } => STEP,
            Self::ProvidedUnknown { .. } | Self::NotTakenBack { asks_operator: true, .. } => STEP_UNKNOWN,
            Self::NotTakenBack { .. } => TAKE_BACK,
        }
    }
}
