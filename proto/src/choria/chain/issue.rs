//! Building and signing a server token (choria.md 6.3).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;

use super::{ChainError, ChainIssuer};
use crate::choria::identity::Identity;
use crate::choria::ksuid::Ksuid;
use crate::choria::sign::{SignError, SigningKey};
use crate::choria::token::{
    ClientClaims, DEFAULT_OU, PURPOSE_SERVER, ServerClaims, ServerPermissions, StandardClaims,
};
use crate::helper::{PermissionsOrder, ServerClaimsOrder};
use crate::time::WallClock;

/// `iss` of a token without a chain of trust, the peer's own words.
pub const ISSUER_TEXT: &str = "Choria Provisioner";

/// A validity of this many seconds or less is taken for a mistake, as by the peer.
pub const MIN_VALIDITY: i64 = 3600;

/// How far before `iat` a token becomes valid, so that a broker whose clock is a little behind takes it at once.
pub const NOT_BEFORE_SLACK: i64 = 60;

/// What a server token is to say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerTokenOrder {
    /// The server's identity as discovered.
    pub identity: String,
    /// Its public key from gen25519, 64 hexadecimal digits, already proven.
    pub public_key: String,
    /// Collectives, never empty.
    pub collectives: Vec<String>,
    /// Organisation.
    pub ou: String,
    /// Permissions, if the helper gave any.
    pub permissions: Option<ServerPermissions>,
    /// Further subjects to publish to.
    pub pub_subjects: Vec<String>,
    /// Absolute expiry the helper asked for, Unix seconds.
    pub exp: Option<i64>,
}

impl ServerTokenOrder {
    /// The order for one server, by the rules of choria.md 6.3: what the helper's `server_claims` say, else collectives from
    /// its `configuration` (key `collectives`, split at commas and not trimmed), else `choria` when that sets
    /// `plugin.security.provider` to `choria`, else `mcollective`; organisation `choria` unless named.
    /// `public_key` is the key the server has proven to own.
    pub fn new(
        identity: &Identity,
        public_key: [u8; 32],
        claims: Option<&ServerClaimsOrder>,
        configuration: &BTreeMap<String, String>,
    ) -> Self {
        let claims = claims.cloned().unwrap_or_default();
        let collectives = match configuration.get("collectives") {
            _ if !claims.collectives.is_empty() => claims.collectives,
            Some(list) if !list.is_empty() => list.split(',').map(ToOwned::to_owned).collect(),
            _ if configuration.get("plugin.security.provider").is_some_and(|name| name == "choria") => {
                vec!["choria".to_owned()]
            }
            _ => vec!["mcollective".to_owned()],
        };
        Self {
            identity: identity.to_string(),
            public_key: hex::encode(public_key),
            collectives,
            ou: claims.ou.unwrap_or_else(|| DEFAULT_OU.to_owned()),
            permissions: claims.permissions.map(ServerPermissions::from),
            pub_subjects: claims.pub_subjects,
            exp: claims.exp,
        }
    }
}

impl From<PermissionsOrder> for ServerPermissions {
    fn from(order: PermissionsOrder) -> Self {
        let PermissionsOrder { submission, streams, governor, service_host } = order;
        Self { submission, streams, governor, service_host }
    }
}

/// The key server tokens are signed with and, in an organisation with a chain of trust, who we are in it.
pub struct TokenIssuer {
    key: Arc<SigningKey>,
    chain: Option<ChainIssuer>,
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenIssuer").field("key", &self.key).field("chained", &self.chain.is_some()).finish()
    }
}

impl TokenIssuer {
    /// An issuer; `signing_token` holds the claims of the configured signing token.
    ///
    /// # Errors
    /// [`ChainError`] when the signing token cannot issue or is not this key's.
    pub fn new(
        key: impl Into<Arc<SigningKey>>,
        signing_token: Option<&ClientClaims>,
    ) -> Result<Self, ChainError> {
        let key = key.into();
        let chain = signing_token.map(ChainIssuer::from_client).transpose()?;
        if let Some(chain) = &chain {
            let public = key.ed25519_public().ok_or(ChainError::NotEd25519)?;
            if hex::encode(public) != chain.public_key {
                return Err(ChainError::ForeignKey);
            }
        }
        Ok(Self { key, chain })
    }

    /// The chain issuer, if there is one.
    pub const fn chain(&self) -> Option<&ChainIssuer> {
        self.chain.as_ref()
    }
}

/// Why a server token could not be issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The order has nothing in a field that must not be empty.
    #[error("failed to issue a server token: {what} is empty")]
    Empty {
        /// The field.
        what: &'static str,
    },
    /// The chain of trust cannot be extended.
    #[error("failed to issue a server token")]
    Chain(#[from] ChainError),
    /// The signature failed.
    #[error("failed to sign a server token")]
    Sign(#[from] SignError),
    /// The claims could not be written.
    #[error("failed to write the claims of a server token")]
    Encode(#[from] serde_json::Error),
}

/// Something that was corrected on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IssueWarning {
    /// The helper asked for an hour or less.
    #[error(
        "server_claims exp {exp} is {validity} s away, an hour or less: using the configured validity of {used} s"
    )]
    ValidityTooShort {
        /// What the helper asked for, Unix seconds.
        exp: i64,
        /// How far away that is, seconds; negative when past.
        validity: i64,
        /// The validity used, seconds.
        used: i64,
    },
}

/// A server token and what it says.
#[derive(Debug)]
pub struct IssuedServerToken {
    /// The token as it is sent in configure.
    pub jwt: SecretString,
    /// Its claims.
    pub claims: ServerClaims,
    /// What was corrected.
    pub warning: Option<IssueWarning>,
}

/// Builds and signs a server token. `default_validity` is the configured `server_jwt_validity` in seconds, `random` makes
/// the id unique; the id's time is the issued-at time, as the chain of trust demands.
pub fn issue_server_token(
    order: &ServerTokenOrder,
    issuer: &TokenIssuer,
    default_validity: i64,
    now: WallClock,
    random: [u8; 16],
) -> Result<IssuedServerToken, IssueError> {
    let empty = |what| IssueError::Empty { what };
    if order.identity.is_empty() {
        return Err(empty("identity"));
    }
    if order.public_key.is_empty() {
        return Err(empty("public_key"));
    }
    if order.collectives.is_empty() {
        return Err(empty("collectives"));
    }
    let iat = now.seconds();
    let jti = Ksuid::new(iat, random).to_string();
    let (mut exp, warning) = expiry(order.exp, default_validity, iat);
    let (iss, tcs, issexp) = match &issuer.chain {
        None => (ISSUER_TEXT.to_owned(), None, None),
        Some(chain) => {
            if iat >= chain.exp {
                return Err(ChainError::IssuerExpired { at: chain.exp, now: iat }.into());
            }
            exp = exp.min(chain.exp);
            (chain.issuer_claim(), Some(chain.trust_signature(&issuer.key, &jti)?), Some(chain.exp))
        }
    };
    let claims = ServerClaims {
        identity: order.identity.clone(),
        collectives: order.collectives.clone(),
        permissions: order.permissions,
        ou: if order.ou.is_empty() { DEFAULT_OU.to_owned() } else { order.ou.clone() },
        pub_subjects: order.pub_subjects.clone(),
        standard: StandardClaims {
            purpose: PURPOSE_SERVER.to_owned(),
            tcs,
            public_key: Some(order.public_key.clone()),
            issexp,
            iss: Some(iss),
            sub: None,
            exp: Some(exp),
            nbf: Some(iat.saturating_sub(NOT_BEFORE_SLACK)),
            iat: Some(iat),
            jti: Some(jti),
        },
    };
    let jwt = SecretString::from(sign_claims(&claims, &issuer.key)?);
    Ok(IssuedServerToken { jwt, claims, warning })
}

/// A signed token of any claims: header `alg` by the key's type and `typ` JWT, claims in the order they serialise.
pub fn sign_claims<T: serde::Serialize>(claims: &T, key: &SigningKey) -> Result<String, IssueError> {
    let header = format!(r#"{{"alg":"{}","typ":"JWT"}}"#, key.algorithm());
    let mut jwt = URL_SAFE_NO_PAD.encode(header);
    jwt.push('.');
    URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(claims)?, &mut jwt);
    let signature = key.sign(jwt.as_bytes())?;
    jwt.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut jwt);
    Ok(jwt)
}

fn expiry(wanted: Option<i64>, default_validity: i64, iat: i64) -> (i64, Option<IssueWarning>) {
    let default = iat.saturating_add(default_validity);
    let Some(exp) = wanted else { return (default, None) };
    let validity = exp.saturating_sub(iat);
    if validity > MIN_VALIDITY {
        return (exp, None);
    }
    (default, Some(IssueWarning::ValidityTooShort { exp, validity, used: default_validity }))
}
