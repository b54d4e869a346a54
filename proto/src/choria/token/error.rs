//! Why a token is refused.

use crate::choria::chain::ChainError;
use crate::text::escape_bounded;

/// The most characters of foreign text that a message of this module and its neighbours repeats.
const MAX_SHOWN: usize = 96;

/// Foreign text, safe and short enough for a message.
pub(crate) fn shown(text: &str) -> String {
    escape_bounded(text, MAX_SHOWN)
}

/// Why a token is refused. Messages are bounded, printable, and repeat no claim that may be secret.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The text is longer than [`MAX_TOKEN`](super::MAX_TOKEN).
    #[error("token of {bytes} bytes is longer than {} bytes", super::MAX_TOKEN)]
    TooLong {
        /// Length of the token, bytes.
        bytes: usize,
    },
    /// The text is no JSON Web Token at all.
    #[error("token is malformed: {what}")]
    Malformed {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The token is signed in another way than the configured key allows.
    #[error("token is signed with `{found}` but the configured key takes {expected}")]
    Algorithm {
        /// The algorithm of the token's header, bounded and printable.
        found: String,
        /// What the configured key verifies.
        expected: &'static str,
    },
    /// The signature does not verify with the configured key.
    #[error("token signature does not verify with the configured key")]
    Signature,
    /// A claim is absent.
    #[error("token has no claim `{claim}`")]
    Missing {
        /// The claim.
        claim: &'static str,
    },
    /// A claim has another type than it must have.
    #[error("token claim `{claim}` must be {expected} but is {found}")]
    Type {
        /// The claim.
        claim: &'static str,
        /// The type it must have.
        expected: &'static str,
        /// The type it has.
        found: &'static str,
    },
    /// The token serves another purpose.
    #[error("token purpose is `{found}`, expected `{expected}`")]
    Purpose {
        /// The purpose claimed, bounded and printable.
        found: String,
        /// The purpose needed.
        expected: &'static str,
    },
    /// The token has expired.
    #[error("token is expired: exp {at}, now {now} (Unix seconds)")]
    Expired {
        /// When it expired, Unix seconds.
        at: i64,
        /// The moment it was checked at, Unix seconds.
        now: i64,
    },
    /// The token is not valid yet.
    #[error("token is not yet valid: nbf {from}, now {now} (Unix seconds)")]
    NotYetValid {
        /// When it becomes valid, Unix seconds.
        from: i64,
        /// The moment it was checked at, Unix seconds.
        now: i64,
    },
    /// The configured verification key cannot be used.
    #[error(
        "verification key is neither a certificate or public key in PEM nor 64 hexadecimal digits: {what}"
    )]
    Key {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The chain of trust does not hold.
    #[error("token's chain of trust does not hold")]
    Chain(#[source] ChainError),
}
