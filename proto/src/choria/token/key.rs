//! The key tokens are verified with, and the algorithms that go with its type (choria.md 6.1, 6.6).

use jsonwebtoken::{Algorithm, DecodingKey};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};
use x509_parser::x509::SubjectPublicKeyInfo;

use super::TokenError;

/// The longest key text that is looked at, in bytes.
const MAX_KEY_TEXT: usize = 64 * 1024;

/// A public key that verifies tokens. Its type alone decides which algorithms count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyKey {
    /// RS256, RS384 and RS512.
    Rsa {
        /// The RSAPublicKey of PKCS#1, DER.
        der: Vec<u8>,
    },
    /// EdDSA with Ed25519.
    Ed25519([u8; 32]),
}

impl VerifyKey {
    /// Reads the text of a verification key: a PEM `CERTIFICATE` or `PUBLIC KEY` is RSA, otherwise 64 hexadecimal digits
    /// are an Ed25519 key. White space around the text is ignored.
    pub fn from_text(text: &str) -> Result<Self, TokenError> {
        if text.len() > MAX_KEY_TEXT {
            return Err(TokenError::Key { what: "too long" });
        }
        let trimmed = text.trim();
        if trimmed.starts_with("-----BEGIN CERTIFICATE") || trimmed.starts_with("-----BEGIN PUBLIC KEY") {
            return rsa_from_pem(trimmed);
        }
        let mut key = [0_u8; 32];
        hex::decode_to_slice(trimmed, &mut key)
            .map_err(|_| TokenError::Key { what: "not 64 hexadecimal digits" })?;
        Ok(Self::Ed25519(key))
    }

    /// What the key verifies, for messages.
    pub const fn accepts(&self) -> &'static str {
        match self {
            Self::Rsa { .. } => "RS256, RS384 or RS512",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    pub(super) fn algorithms(&self) -> Vec<Algorithm> {
        match self {
            Self::Rsa { .. } => vec![Algorithm::RS256, Algorithm::RS384, Algorithm::RS512],
            Self::Ed25519(_) => vec![Algorithm::EdDSA],
        }
    }

    pub(super) fn allows(&self, header_alg: &str) -> bool {
        match self {
            Self::Rsa { .. } => matches!(header_alg, "RS256" | "RS384" | "RS512"),
            Self::Ed25519(_) => header_alg == "EdDSA",
        }
    }

    pub(super) fn decoding_key(&self) -> DecodingKey {
        match self {
            Self::Rsa { der } => DecodingKey::from_rsa_der(der),
            Self::Ed25519(key) => DecodingKey::from_ed_der(key),
        }
    }
}

fn rsa_from_pem(text: &str) -> Result<VerifyKey, TokenError> {
    let not_rsa = TokenError::Key { what: "the PEM block holds no RSA public key" };
    let Ok((_, block)) = parse_x509_pem(text.as_bytes()) else {
        return Err(TokenError::Key { what: "broken PEM block" });
    };
    let spki_der = if block.label == "CERTIFICATE" {
        match X509Certificate::from_der(&block.contents) {
            Ok((_, certificate)) => certificate.public_key().raw.to_vec(),
            Err(_) => return Err(TokenError::Key { what: "broken certificate" }),
        }
    } else {
        block.contents
    };
    match SubjectPublicKeyInfo::from_der(&spki_der) {
        Ok((_, spki))
            if spki.parsed().is_ok_and(|key| matches!(key, x509_parser::public_key::PublicKey::RSA(_))) =>
        {
            Ok(VerifyKey::Rsa { der: spki.subject_public_key.data.to_vec() })
        }
        // The label PUBLIC KEY around the bare RSAPublicKey of PKCS#1 is what Choria servers write themselves.
        Err(_) if aws_lc_rs::rsa::PublicKey::from_der(&spki_der).is_ok() => {
            Ok(VerifyKey::Rsa { der: spki_der })
        }
        _ => Err(not_rsa),
    }
}
