//! The chain of trust (choria.md 6.5) and the server tokens issued with it (choria.md 6.3).
//!
//! `O` is the organisation's issuer, `S` the chain issuer (our own client token and its key), `T` a token that `S` issues.
//! Signed are always the ASCII bytes of identifiers and hexadecimal texts joined by dots.

mod issue;
mod trust;

pub use issue::{
    ISSUER_TEXT, IssueError, IssueWarning, IssuedServerToken, MIN_VALIDITY, NOT_BEFORE_SLACK,
    ServerTokenOrder, TokenIssuer, issue_server_token, sign_claims,
};
pub use trust::{
    CHAIN_PREFIX, ChainError, ChainIssuer, ISSUER_PREFIX, issuer_signature, organisation_claim, verify_chain,
};

pub(crate) use trust::signer_of;
