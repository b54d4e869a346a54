//! The token of a provisioned server (choria.md 6.3).

use serde::{Deserialize, Serialize};

use super::{
    Claims, PURPOSE_SERVER, StandardClaims, TokenError, VerifyKey, check_times, decode, decode_unverified,
};
use crate::choria::chain;
use crate::time::WallClock;

/// What a server may do beyond serving; false ones are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServerPermissions {
    /// Publish to submission streams.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub submission: bool,
    /// Read streams.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams: bool,
    /// Use governors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub governor: bool,
    /// Host services.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub service_host: bool,
}

/// The claims of a server token in the order they are emitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerClaims {
    /// The server's identity.
    pub identity: String,
    /// Its collectives, at least one.
    pub collectives: Vec<String>,
    /// Its permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<ServerPermissions>,
    /// Organisation.
    pub ou: String,
    /// Further subjects it may publish to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pub_subjects: Vec<String>,
    /// The standard claims.
    #[serde(flatten)]
    pub standard: StandardClaims,
}

impl ServerClaims {
    fn read(claims: &Claims) -> Result<Self, TokenError> {
        let read = Self {
            identity: claims.text_given("identity")?.ok_or(TokenError::Missing { claim: "identity" })?,
            collectives: claims.texts("collectives")?,
            permissions: claims.object("permissions", "an object of true and false")?,
            ou: claims.text("ou")?,
            pub_subjects: claims.texts("pub_subjects")?,
            standard: StandardClaims::read(claims)?,
        };
        read.standard.check_purpose(PURPOSE_SERVER)?;
        Ok(read)
    }
}

/// Verifies a server token. With an Ed25519 `key` (the organisation issuer's) a token from a chain issuer is followed
/// through the chain of trust (choria.md 6.5); otherwise `key` must have signed it directly.
pub fn verify_server(jwt: &str, key: &VerifyKey, now: WallClock) -> Result<ServerClaims, TokenError> {
    let issuer = StandardClaims::read(&decode_unverified(jwt)?)?;
    if issuer.tcs.is_some() && !issuer.iss.as_deref().is_some_and(|iss| iss.starts_with(chain::CHAIN_PREFIX))
    {
        return Err(TokenError::Chain(chain::ChainError::NotChained));
    }
    let key = chain::signer_of(&issuer, key, now).map_err(TokenError::Chain)?;
    let claims = ServerClaims::read(&decode(jwt, &key)?)?;
    check_times(&claims.standard, now)?;
    Ok(claims)
}

/// Reads a server token without verifying more than its purpose, as the server that owns it does.
pub fn parse_server(jwt: &str) -> Result<ServerClaims, TokenError> {
    ServerClaims::read(&decode_unverified(jwt)?)
}
