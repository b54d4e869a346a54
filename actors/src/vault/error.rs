//! Why the vault could not do something. No message shows a secret.

use std::io;
use std::path::PathBuf;

use quartermaster_proto::choria::chain::{ChainError, IssueError};
use quartermaster_proto::choria::ecdh::EcdhError;
use quartermaster_proto::choria::pem::PemError;
use quartermaster_proto::choria::sign::SignError;
use quartermaster_proto::choria::token::TokenError;

use super::outside::NoRandomness;
use crate::supervise::AskError;

/// Why the vault could not do something.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// A file cannot be read.
    #[error("failed to read {what} `{}`", path.display())]
    Read {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is no text of acceptable length.
    #[error("{what} `{}` is not a text of at most {limit} bytes", path.display())]
    NotText {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The longest text that is read, bytes.
        limit: u64,
    },
    /// A key file holds no usable key.
    #[error("{what} `{}` holds no usable key", path.display())]
    Key {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: SignError,
    },
    /// A NATS credentials file cannot be used.
    #[error("NATS credentials `{}` cannot be used: {why}", path.display())]
    NatsCredentials {
        /// The file.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// The challenge could not be signed with the seed of the NATS credentials.
    #[error("the broker's challenge could not be signed with the NATS credentials")]
    NatsSign,
    /// A token file holds no usable token, or a verification key file no key.
    #[error("{what} `{}` cannot be used", path.display())]
    Token {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: TokenError,
    },
    /// `jwt_verify_cert` is neither an existing file nor a key.
    #[error("jwt_verify_cert is neither an existing file nor an Ed25519 public key of 64 hexadecimal digits")]
    VerifyKeyUnusable,
    /// Something needed is not configured.
    #[error("{what} is not configured")]
    NotConfigured {
        /// The setting.
        what: &'static str,
    },
    /// The seed does not belong to the client token.
    #[error("the key in `{}` is not the one the token in `{}` speaks of", seed.display(), token.display())]
    SeedMismatch {
        /// The seed's file.
        seed: PathBuf,
        /// The token's file.
        token: PathBuf,
    },
    /// The signing token and key cannot issue server tokens.
    #[error("jwt_signing_token and jwt_signing_key cannot issue server tokens")]
    Chain(#[source] ChainError),
    /// A TLS file holds nothing usable.
    #[error("{what} `{}` cannot be used for TLS: {why}", path.display())]
    TlsFile {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The TLS files do not go together.
    #[error("failed to set up TLS")]
    Tls(#[source] rustls::Error),
    /// A host's provisioning token is refused.
    #[error("failed to verify the provisioning token")]
    Verify(#[source] TokenError),
    /// A server token could not be issued.
    #[error("failed to issue the server token")]
    Issue(#[source] IssueError),
    /// A signature failed.
    #[error("failed to sign")]
    Sign(#[source] SignError),
    /// The host's public key cannot be used.
    #[error("failed to encrypt the private key for the host")]
    Exchange(#[source] EcdhError),
    /// The helper's private key cannot be used.
    #[error("failed to encrypt the private key for the host")]
    Encrypt(#[source] PemError),
    /// No randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// As much work is waiting as may.
    #[error("the vault has {queue} requests waiting already")]
    Busy {
        /// The bound.
        queue: usize,
    },
    /// The work ended in a panic, which is a fault in the vault.
    #[error("the vault failed unexpectedly")]
    Panicked,
    /// The vault did not answer.
    #[error("the vault did not answer")]
    Unanswered(#[source] AskError),
}

impl VaultError {
    /// True when the host or its helper sent something that will not get better by itself; false when our own files or load
    /// are the reason and a later try may succeed.
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Verify(_) | Self::Exchange(_) | Self::Encrypt(_) => true,
            Self::Read { .. }
            | Self::NotText { .. }
            | Self::NatsCredentials { .. }
            | Self::NatsSign
            | Self::Key { .. }
            | Self::Token { .. }
            | Self::VerifyKeyUnusable
            | Self::NotConfigured { .. }
            | Self::SeedMismatch { .. }
            | Self::Chain(_)
            | Self::TlsFile { .. }
            | Self::Tls(_)
            | Self::Issue(_)
            | Self::Sign(_)
            | Self::Randomness(_)
            | Self::Busy { .. }
            | Self::Panicked
            | Self::Unanswered(_) => false,
        }
    }
}
