//! Signatures that lead from an organisation's issuer to a token.

use crate::choria::ksuid::Ksuid;
use crate::choria::sign::{SigningKey, ed25519_verifies, key_from_hex};
use crate::choria::token::{ClientClaims, StandardClaims, VerifyKey};
use crate::time::WallClock;

/// Prefix of `iss` in a token signed by the organisation's issuer for a chain issuer.
pub const ISSUER_PREFIX: &str = "I-";
/// Prefix of `iss` in a token signed by a chain issuer.
pub const CHAIN_PREFIX: &str = "C-";

/// Why a chain of trust does not hold or cannot be extended.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ChainError {
    /// The signing token was not made for issuing.
    #[error("no Trust Chain Signature claim in JWT Signing Token")]
    NoTrustChainSignature,
    /// A claim the chain needs is absent or empty.
    #[error("no `{claim}` claim, which the chain of trust needs")]
    Missing {
        /// The claim.
        claim: &'static str,
    },
    /// `tcs` is there but the issuer is no chain issuer.
    #[error("claim `tcs` is present but `iss` does not name a chain issuer (`{CHAIN_PREFIX}…`)")]
    NotChained,
    /// The chain issuer's own token has expired.
    #[error("the issuer's token is expired: exp {at}, now {now} (Unix seconds)")]
    IssuerExpired {
        /// When, Unix seconds.
        at: i64,
        /// The moment it was checked at, Unix seconds.
        now: i64,
    },
    /// A claim does not have the form the chain needs.
    #[error("claim `{claim}` does not have the form of the chain of trust")]
    Form {
        /// The claim.
        claim: &'static str,
    },
    /// The id was not made from the second the token was issued at.
    #[error("id is not based on issued time")]
    IdNotFromIssuedTime,
    /// The organisation's issuer did not vouch for the chain issuer.
    #[error("the organisation's issuer did not sign the chain issuer")]
    IssuerSignature,
    /// The chain issuer did not vouch for this token.
    #[error("the chain issuer did not sign this token's id")]
    TokenSignature,
    /// Chains are made with Ed25519 keys only.
    #[error("the chain of trust needs Ed25519 keys")]
    NotEd25519,
    /// The signing key is not the one the signing token speaks of.
    #[error("the signing key does not belong to the signing token: its `public_key` is another")]
    ForeignKey,
    /// The library refused to sign.
    #[error("failed to sign")]
    Sign,
}

/// The chain issuer `S` as its own token describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainIssuer {
    /// `jti` of its token.
    pub jti: String,
    /// Its Ed25519 key, 64 lower-case hexadecimal digits.
    pub public_key: String,
    /// The organisation's signature in its token.
    pub tcs: String,
    /// When its token expires, Unix seconds.
    pub exp: i64,
}

impl ChainIssuer {
    /// Takes what is needed from the signing token (choria.md 6.4).
    ///
    /// # Errors
    /// [`ChainError::NoTrustChainSignature`] when the token was not made with `--issuer`, [`ChainError::Missing`] for the rest.
    pub fn from_client(claims: &ClientClaims) -> Result<Self, ChainError> {
        let standard = &claims.standard;
        let missing = |claim| ChainError::Missing { claim };
        Ok(Self {
            tcs: standard.tcs.clone().ok_or(ChainError::NoTrustChainSignature)?,
            jti: standard.jti.clone().ok_or(missing("jti"))?,
            public_key: standard.public_key.clone().ok_or(missing("public_key"))?,
            exp: standard.exp.ok_or(missing("exp"))?,
        })
    }

    /// `iss` of the tokens this issuer signs.
    pub fn issuer_claim(&self) -> String {
        format!("{CHAIN_PREFIX}{}.{}", self.jti, self.public_key)
    }

    /// `tcs` of the token with id `jti`, signed with this issuer's `key`.
    pub fn trust_signature(&self, key: &SigningKey, jti: &str) -> Result<String, ChainError> {
        let public = key.ed25519_public().ok_or(ChainError::NotEd25519)?;
        if hex::encode(public) != self.public_key {
            return Err(ChainError::ForeignKey);
        }
        let signature = key.sign(format!("{jti}.{}", self.tcs).as_bytes()).map_err(|_| ChainError::Sign)?;
        Ok(format!("{}.{}", self.tcs, hex::encode(signature)))
    }
}

/// `iss` of a chain issuer's own token: the organisation's public key.
pub fn organisation_claim(organisation_public: &[u8; 32]) -> String {
    format!("{ISSUER_PREFIX}{}", hex::encode(organisation_public))
}

/// `tcs` of a chain issuer's own token: the organisation's signature over its id and key.
pub fn issuer_signature(
    organisation: &SigningKey,
    jti: &str,
    public_key: &str,
) -> Result<String, ChainError> {
    organisation.ed25519_public().ok_or(ChainError::NotEd25519)?;
    let signature =
        organisation.sign(format!("{jti}.{public_key}").as_bytes()).map_err(|_| ChainError::Sign)?;
    Ok(hex::encode(signature))
}

/// Follows the chain of a token issued by a chain issuer, up to the organisation's issuer, and gives the key that must have
/// signed the token itself. Everything but that signature is checked here, the times of token and issuer included.
pub fn verify_chain(
    token: &StandardClaims,
    organisation: &[u8; 32],
    now: WallClock,
) -> Result<[u8; 32], ChainError> {
    let need = |claim: &'static str, value: Option<&str>| {
        value.filter(|text| !text.is_empty()).map(ToOwned::to_owned).ok_or(ChainError::Missing { claim })
    };
    let iss = need("iss", token.iss.as_deref())?;
    let tcs = need("tcs", token.tcs.as_deref())?;
    let jti = need("jti", token.jti.as_deref())?;
    need("public_key", token.public_key.as_deref())?;
    let iat = token.iat.ok_or(ChainError::Missing { claim: "iat" })?;
    let exp = token.exp.ok_or(ChainError::Missing { claim: "exp" })?;
    let issexp = token.issexp.ok_or(ChainError::Missing { claim: "issexp" })?;

    let id: Ksuid = jti.parse().map_err(|_| ChainError::Form { claim: "jti" })?;
    if id.seconds() != iat {
        return Err(ChainError::IdNotFromIssuedTime);
    }
    let issuer = iss.strip_prefix(CHAIN_PREFIX).ok_or(ChainError::NotChained)?;
    let (issuer_jti, issuer_public) = two_parts("iss", issuer)?;
    let (by_organisation, by_issuer) = two_parts("tcs", &tcs)?;
    let issuer_key = key_from_hex("iss", issuer_public).map_err(|_| ChainError::Form { claim: "iss" })?;
    let vouched = format!("{issuer_jti}.{issuer_public}");
    if !ed25519_verifies(organisation, vouched.as_bytes(), &signature(by_organisation)?) {
        return Err(ChainError::IssuerSignature);
    }
    let signed = format!("{jti}.{by_organisation}");
    if !ed25519_verifies(&issuer_key, signed.as_bytes(), &signature(by_issuer)?) {
        return Err(ChainError::TokenSignature);
    }
    let at = exp.min(issexp);
    if now >= WallClock::from_seconds(at) {
        return Err(ChainError::IssuerExpired { at, now: now.seconds() });
    }
    Ok(issuer_key)
}

/// The key that must have signed a server or client token: the configured one, or the chain issuer's when the token names
/// one and the configured key is an organisation's Ed25519 key.
pub(crate) fn signer_of(
    token: &StandardClaims,
    configured: &VerifyKey,
    now: WallClock,
) -> Result<VerifyKey, ChainError> {
    let chained = token.iss.as_deref().is_some_and(|iss| iss.starts_with(CHAIN_PREFIX));
    match configured {
        VerifyKey::Ed25519(organisation) if chained => {
            verify_chain(token, organisation, now).map(VerifyKey::Ed25519)
        }
        _ => Ok(configured.clone()),
    }
}

fn two_parts<'a>(claim: &'static str, text: &'a str) -> Result<(&'a str, &'a str), ChainError> {
    match text.split_once('.') {
        Some((first, second)) if !first.is_empty() && !second.is_empty() && !second.contains('.') => {
            Ok((first, second))
        }
        _ => Err(ChainError::Form { claim }),
    }
}

fn signature(text: &str) -> Result<[u8; 64], ChainError> {
    let mut bytes = [0_u8; 64];
    hex::decode_to_slice(text, &mut bytes).map_err(|_| ChainError::Form { claim: "tcs" })?;
    Ok(bytes)
}
