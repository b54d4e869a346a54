//! The token of a client, as the provisioner's own login (choria.md 6.4).

use serde::{Deserialize, Serialize};

use super::{
    Claims, PURPOSE_CLIENT, StandardClaims, TokenError, VerifyKey, check_times, decode, decode_unverified,
};
use crate::choria::chain;
use crate::time::WallClock;

/// What a client may do; false ones are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientPermissions {
    /// Administer streams.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams_admin: bool,
    /// Use streams.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams_user: bool,
    /// Watch lifecycle events.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub events_viewer: bool,
    /// Take part in elections.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub election_user: bool,
    /// Use the system account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub system_user: bool,
    /// Use governors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub governor: bool,
    /// Administer the organisation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub org_admin: bool,
    /// Manage the fleet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fleet_management: bool,
    /// Manage the fleet through a signing service only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed_fleet_management: bool,
    /// Long-lived service token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub service: bool,
    /// Sign requests for others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub authentication_delegator: bool,
    /// Log in as the provisioner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisioner: bool,
}

/// The claims of a client token that matter here, in the order they are emitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientClaims {
    /// The caller id, any format.
    pub callerid: String,
    /// Agents it may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Organisation.
    pub ou: String,
    /// Its permissions.
    pub permissions: ClientPermissions,
    /// Further subjects it may publish to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pub_subjects: Vec<String>,
    /// Further subjects it may subscribe to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sub_subjects: Vec<String>,
    /// The standard claims.
    #[serde(flatten)]
    pub standard: StandardClaims,
}

impl ClientClaims {
    fn read(claims: &Claims) -> Result<Self, TokenError> {
        let read = Self {
            callerid: claims.text_given("callerid")?.ok_or(TokenError::Missing { claim: "callerid" })?,
            agents: claims.texts("agents")?,
            ou: claims.text("ou")?,
            permissions: claims.object("permissions", "an object of true and false")?,
            pub_subjects: claims.texts("pub_subjects")?,
            sub_subjects: claims.texts("sub_subjects")?,
            standard: StandardClaims::read(claims)?,
        };
        read.standard.check_purpose(PURPOSE_CLIENT)?;
        Ok(read)
    }
}

/// Reads a client token of our own without verifying its signature or times: the key that could verify it is the
/// broker's, not ours.
pub fn parse_client(jwt: &str) -> Result<ClientClaims, TokenError> {
    ClientClaims::read(&decode_unverified(jwt)?)
}

/// Verifies a client token as a broker does; see [`verify_server`](super::verify_server) for chain issuers.
pub fn verify_client(jwt: &str, key: &VerifyKey, now: WallClock) -> Result<ClientClaims, TokenError> {
    let issuer = StandardClaims::read(&decode_unverified(jwt)?)?;
    let key = chain::signer_of(&issuer, key, now).map_err(TokenError::Chain)?;
    let claims = ClientClaims::read(&decode(jwt, &key)?)?;
    check_times(&claims.standard, now)?;
    Ok(claims)
}
