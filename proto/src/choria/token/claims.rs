//! From a token's text to typed claims, with every type error named.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Validation;
use jsonwebtoken::errors::ErrorKind;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{TokenError, VerifyKey};
use crate::choria::token::shown;
use crate::json::{self, Limits};
use crate::time::WallClock;

/// The longest token that is looked at, in bytes.
pub const MAX_TOKEN: usize = 64 * 1024;

/// Purpose of a provisioning token.
pub const PURPOSE_PROVISIONING: &str = "choria_provisioning";
/// Purpose of a server token.
pub const PURPOSE_SERVER: &str = "choria_server";
/// Purpose of a client token.
pub const PURPOSE_CLIENT: &str = "choria_client_id";

/// The organisation assumed when a token names none.
pub const DEFAULT_OU: &str = "choria";

/// Limits on the claims of one token, checked before they are parsed.
const LIMITS: Limits = Limits { max_bytes: MAX_TOKEN, max_depth: 32, max_items: 4_096 };

/// The claims every Choria token carries, in the order they are emitted (choria.md 6.1).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StandardClaims {
    /// What the token is for.
    pub purpose: String,
    /// Trust chain signatures: one, or two joined by a dot (choria.md 6.5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcs: Option<String>,
    /// The holder's Ed25519 key, 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// When the issuer's own token expires, Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issexp: Option<i64>,
    /// Who issued it: free text, `I-…` or `C-…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iss: Option<String>,
    /// The subject; in provisioning tokens the purpose once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// When it expires, Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exp: Option<i64>,
    /// From when it is valid, Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbf: Option<i64>,
    /// When it was issued, Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iat: Option<i64>,
    /// Its id, a KSUID made from `iat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
}

impl StandardClaims {
    pub(super) fn read(claims: &Claims) -> Result<Self, TokenError> {
        Ok(Self {
            purpose: claims.text("purpose")?,
            tcs: claims.text_given("tcs")?,
            public_key: claims.text_given("public_key")?,
            issexp: claims.time("issexp")?,
            iss: claims.text_given("iss")?,
            sub: claims.text_given("sub")?,
            exp: claims.time("exp")?,
            nbf: claims.time("nbf")?,
            iat: claims.time("iat")?,
            jti: claims.text_given("jti")?,
        })
    }

    pub(super) fn check_purpose(&self, expected: &'static str) -> Result<(), TokenError> {
        if self.purpose == expected {
            return Ok(());
        }
        Err(TokenError::Purpose { found: shown(&self.purpose), expected })
    }
}

/// Refuses a token that is expired or not yet valid at `now`; a claim that is absent is not checked. No leeway: a token is
/// expired from its `exp` on and valid from its `nbf` on.
pub(crate) fn check_times(claims: &StandardClaims, now: WallClock) -> Result<(), TokenError> {
    if let Some(at) = claims.exp
        && now >= WallClock::from_seconds(at)
    {
        return Err(TokenError::Expired { at, now: now.seconds() });
    }
    if let Some(from) = claims.nbf
        && now < WallClock::from_seconds(from)
    {
        return Err(TokenError::NotYetValid { from, now: now.seconds() });
    }
    Ok(())
}

/// The claims of one token, each still as the JSON it arrived as. The last of two claims with one name counts.
pub(crate) struct Claims(BTreeMap<String, Box<RawValue>>);

/// Verifies the signature with `key` and gives the claims. Times and purposes are the caller's to check.
pub(crate) fn decode(jwt: &str, key: &VerifyKey) -> Result<Claims, TokenError> {
    let (jwt, header) = outer(jwt)?;
    if !key.allows(&header.alg) {
        return Err(TokenError::Algorithm { found: shown(&header.alg), expected: key.accepts() });
    }
    let mut validation = Validation {
        algorithms: key.algorithms(),
        validate_exp: false,
        validate_nbf: false,
        validate_aud: false,
        ..Validation::default()
    };
    validation.required_spec_claims.clear();
    match jsonwebtoken::decode::<Box<RawValue>>(jwt, &key.decoding_key(), &validation) {
        Ok(token) => Claims::read(token.claims.get()),
        Err(error) => Err(match error.kind() {
            ErrorKind::InvalidSignature => TokenError::Signature,
            ErrorKind::Base64(_) => TokenError::Malformed { what: "not base64" },
            ErrorKind::Json(_) => TokenError::Malformed { what: "the claims are not JSON" },
            _ => TokenError::Malformed { what: "not a signed JSON Web Token" },
        }),
    }
}

/// The claims of a token whose signature is not looked at: for files of our own, never for what a host sent.
pub(crate) fn decode_unverified(jwt: &str) -> Result<Claims, TokenError> {
    let (jwt, _) = outer(jwt)?;
    let payload = jwt.split('.').nth(1).unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD
        .decode(payload)
        .map_err(|_| TokenError::Malformed { what: "the claims are not base64" })?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| TokenError::Malformed { what: "the claims are not UTF-8" })?;
    Claims::read(text)
}

#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    alg: Cow<'a, str>,
}

struct OwnedHeader {
    alg: String,
}

fn outer(jwt: &str) -> Result<(&str, OwnedHeader), TokenError> {
    if jwt.len() > MAX_TOKEN {
        return Err(TokenError::TooLong { bytes: jwt.len() });
    }
    let jwt = jwt.trim();
    if jwt.split('.').count() != 3 {
        return Err(TokenError::Malformed { what: "not three parts joined by dots" });
    }
    let head = jwt.split('.').next().unwrap_or_default();
    let head = URL_SAFE_NO_PAD
        .decode(head)
        .map_err(|_| TokenError::Malformed { what: "the header is not base64" })?;
    let no_alg = TokenError::Malformed { what: "the header is not an object with a text `alg`" };
    json::check(&head, &LIMITS)
        .map_err(|_| TokenError::Malformed { what: "the header is not JSON within limits" })?;
    let header: Header<'_> = serde_json::from_slice(&head).map_err(|_| no_alg)?;
    Ok((jwt, OwnedHeader { alg: header.alg.into_owned() }))
}

impl Claims {
    fn read(text: &str) -> Result<Self, TokenError> {
        json::check(text.as_bytes(), &LIMITS)
            .map_err(|_| TokenError::Malformed { what: "the claims are not JSON within limits" })?;
        serde_json::from_str(text)
            .map(Self)
            .map_err(|_| TokenError::Malformed { what: "the claims are not an object" })
    }

    fn get(&self, claim: &str) -> Option<&RawValue> {
        self.0.get(claim).map(AsRef::as_ref).filter(|raw| raw.get() != "null")
    }

    fn typed<'a, T: Deserialize<'a>>(
        &'a self,
        claim: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, TokenError> {
        let Some(raw) = self.get(claim) else { return Ok(None) };
        match serde_json::from_str(raw.get()) {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(TokenError::Type { claim, expected, found: kind(raw) }),
        }
    }

    /// A text; empty when absent.
    pub(super) fn text(&self, claim: &'static str) -> Result<String, TokenError> {
        Ok(self.typed(claim, "a string")?.unwrap_or_default())
    }

    /// A text; none when absent or empty.
    pub(super) fn text_given(&self, claim: &'static str) -> Result<Option<String>, TokenError> {
        Ok(self.typed::<String>(claim, "a string")?.filter(|text| !text.is_empty()))
    }

    /// True or false; false when absent.
    pub(super) fn flag(&self, claim: &'static str) -> Result<bool, TokenError> {
        Ok(self.typed(claim, "true or false")?.unwrap_or_default())
    }

    /// A list of texts; empty when absent.
    pub(super) fn texts(&self, claim: &'static str) -> Result<Vec<String>, TokenError> {
        Ok(self.typed(claim, "a list of strings")?.unwrap_or_default())
    }

    /// A value of any shape that `T` takes; default when absent.
    pub(super) fn object<'a, T: Deserialize<'a> + Default>(
        &'a self,
        claim: &'static str,
        expected: &'static str,
    ) -> Result<T, TokenError> {
        Ok(self.typed(claim, expected)?.unwrap_or_default())
    }

    /// An object as it stands, keys sorted as the peer writes them; none when absent or null.
    pub(super) fn sorted_object(&self, claim: &'static str) -> Result<Option<Box<RawValue>>, TokenError> {
        let Some(raw) = self.get(claim) else { return Ok(None) };
        let wrong = || TokenError::Type { claim, expected: "an object", found: kind(raw) };
        if !raw.get().starts_with('{') {
            return Err(wrong());
        }
        let text = json::sorted(raw.get()).map_err(|_| wrong())?;
        RawValue::from_string(text).map(Some).map_err(|_| wrong())
    }

    /// A NumericDate in whole seconds (fractions are cut off); none when absent.
    pub(super) fn time(&self, claim: &'static str) -> Result<Option<i64>, TokenError> {
        let Some(raw) = self.get(claim) else { return Ok(None) };
        if let Ok(seconds) = serde_json::from_str::<i64>(raw.get()) {
            return Ok(Some(seconds));
        }
        let wrong = TokenError::Type { claim, expected: "a number of Unix seconds", found: kind(raw) };
        let seconds = serde_json::from_str::<f64>(raw.get()).map_err(|_| wrong)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float beyond i64 saturates, which is as far away as can be"
        )]
        Ok(Some(seconds.floor() as i64))
    }
}

fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}
