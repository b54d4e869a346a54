//! provisioning.jwt, the token of a server that wants to be provisioned (choria.md 6.2).

use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    Claims, DEFAULT_OU, PURPOSE_PROVISIONING, StandardClaims, TokenError, VerifyKey, check_times, decode,
    decode_unverified,
};
use crate::choria::chain::{self, ChainError};
use crate::choria::token::shown;
use crate::time::WallClock;

/// The claims of a provisioning token in the peer's own words and order. `Debug` shows neither token nor password.
#[derive(Clone, Serialize)]
pub struct ProvisioningClaims {
    /// The shared provisioning token, clear text. Secret.
    pub cht: String,
    /// Whether protocol security is on; without effect on current servers.
    pub chs: bool,
    /// Broker list, comma separated.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chu: String,
    /// SRV domain that names the brokers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chsrv: String,
    /// Whether the server provisions by default.
    pub chpd: bool,
    /// Path of the registration file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chrd: String,
    /// Paths of facts files.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chf: String,
    /// NATS user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chusr: String,
    /// NATS password. Secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chpwd: String,
    /// Free-form extensions: an object with sorted keys, null when absent.
    pub extensions: Option<Box<RawValue>>,
    /// Organisation.
    pub ou: String,
    /// Whether the server speaks protocol 2.
    #[serde(skip_serializing_if = "is_false")]
    pub v2: bool,
    /// Whether release_update is allowed.
    #[serde(skip_serializing_if = "is_false")]
    pub update: bool,
    /// The standard claims.
    #[serde(flatten)]
    pub standard: StandardClaims,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands the field over by reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl fmt::Debug for ProvisioningClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvisioningClaims")
            .field("ou", &shown(&self.ou))
            .field("v2", &self.v2)
            .field("update", &self.update)
            .field("exp", &self.standard.exp)
            .finish_non_exhaustive()
    }
}

impl ProvisioningClaims {
    fn read(claims: &Claims) -> Result<Self, TokenError> {
        Ok(Self {
            cht: claims.text("cht")?,
            chs: claims.flag("chs")?,
            chu: claims.text("chu")?,
            chsrv: claims.text("chsrv")?,
            chpd: claims.flag("chpd")?,
            chrd: claims.text("chrd")?,
            chf: claims.text("chf")?,
            chusr: claims.text("chusr")?,
            chpwd: claims.text("chpwd")?,
            extensions: claims.sorted_object("extensions")?,
            ou: claims.text_given("ou")?.unwrap_or_else(|| DEFAULT_OU.to_owned()),
            v2: claims.flag("v2")?,
            update: claims.flag("update")?,
            standard: StandardClaims::read(claims)?,
        })
    }

    /// The claims as the helper receives them under the key `jwt`: compact, the peer's order, empty ones left out.
    ///
    /// # Errors
    /// None that can happen: text, numbers and checked JSON always serialise; the error type is kept for honesty.
    pub fn helper_json(&self) -> Result<Box<RawValue>, TokenError> {
        serde_json::value::to_raw_value(self)
            .map_err(|_| TokenError::Malformed { what: "claims cannot be written" })
    }
}

/// A provisioning token whose signature and purpose are verified, which stays true; its times are looked at each time.
#[derive(Debug, Clone)]
pub struct SignedProvisioning(ProvisioningClaims);

impl SignedProvisioning {
    /// Verifies the signature by the configured key's own algorithms, and the purpose (claim `purpose` or `sub`).
    pub fn verify(jwt: &str, key: &VerifyKey) -> Result<Self, TokenError> {
        let claims = ProvisioningClaims::read(&decode(jwt, key)?)?;
        check_recognised(&claims)?;
        Ok(Self(claims))
    }

    /// The claims, if they hold at `now`: times without leeway, and, when there is a trust chain signature, an unexpired
    /// chain issuer (choria.md 6.2).
    pub fn at(&self, now: WallClock) -> Result<ProvisioningClaims, TokenError> {
        let Self(claims) = self;
        check_times(&claims.standard, now)?;
        if claims.standard.tcs.is_some() {
            if !claims.standard.iss.as_deref().is_some_and(|iss| iss.starts_with(chain::CHAIN_PREFIX)) {
                return Err(TokenError::Chain(ChainError::NotChained));
            }
            if let Some(at) = claims.standard.issexp
                && now >= WallClock::from_seconds(at)
            {
                return Err(TokenError::Chain(ChainError::IssuerExpired { at, now: now.seconds() }));
            }
        }
        Ok(claims.clone())
    }
}

/// Verifies a provisioning token and everything it says that can be wrong at `now`.
pub fn verify_provisioning(
    jwt: &str,
    key: &VerifyKey,
    now: WallClock,
) -> Result<ProvisioningClaims, TokenError> {
    SignedProvisioning::verify(jwt, key)?.at(now)
}

/// Reads a provisioning token without verifying anything but its purpose, as the server that owns it does.
pub fn parse_provisioning(jwt: &str) -> Result<ProvisioningClaims, TokenError> {
    let claims = ProvisioningClaims::read(&decode_unverified(jwt)?)?;
    check_recognised(&claims)?;
    Ok(claims)
}

fn check_recognised(claims: &ProvisioningClaims) -> Result<(), TokenError> {
    if claims.standard.sub.as_deref() == Some(PURPOSE_PROVISIONING) {
        return Ok(());
    }
    claims.standard.check_purpose(PURPOSE_PROVISIONING)
}
